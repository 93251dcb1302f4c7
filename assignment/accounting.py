"""Bonus module 6. Accounting: what parallel training costs in bytes and seconds, before it runs.

Every function is pure and exact: whole numbers are int, all else is a Fraction, never a float. Bytes sent are
those that one rank sends. A bandwidth is in bytes per second, in one direction; a latency is in seconds. What
cannot be split evenly is counted as if it could: S bytes in W pieces are Fraction(S, W) each.

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_accounting
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from grader.given import Operation


def training_bytes(num_parameters: int, *, weight_bytes: int = 4, grad_bytes: int = 4, optimizer_bytes: int = 8) -> int:
    """Bytes for weights, gradients and optimizer state, which every rank holds in full under DDP.

    The keyword arguments are bytes per parameter; the defaults are float32 and AdamW with its two moments. In
    mixed precision 2 + 2 + 12 make the same 16 (Rajbhandari et al., 2020, "ZeRO", section 3.1). Activations
    come on top.

    Example: training_bytes(1_000_000_000) == 16_000_000_000.
    """
    raise NotImplementedError("return the bytes of weights, gradients and optimizer state")


def gpus_to_hold(num_parameters: int, hbm_bytes: int, *, bytes_per_parameter: int = 16) -> int:
    """The fewest GPUs of `hbm_bytes` each that hold the training state, all sharded evenly; at least 1.

    Example: 10**12 parameters, 16 bytes each, on GPUs of 192 * 10**9 bytes need 84.
    """
    raise NotImplementedError("return the number of GPUs, rounded up")


def ring_bytes_sent(operation: Operation, num_bytes: int, world_size: int) -> Fraction:
    """The bytes that each rank sends in a ring collective on a whole array of `num_bytes` = S bytes.

    In each step every rank sends one piece of S / W. That makes S (W - 1) / W for all_gather and
    reduce_scatter, and twice that for all_reduce (Patarasuk and Yuan, 2009; NVIDIA's nccl-tests,
    doc/PERFORMANCE.md). A world of 1 sends nothing.

    Raises ValueError for any other operation.
    """
    raise NotImplementedError("return the bytes that one rank sends")


def ring_seconds(
    operation: Operation, num_bytes: int, world_size: int, *, latency: Fraction, bandwidth: int
) -> Fraction:
    """How long a ring collective lasts by the alpha-beta model: steps * latency + bytes sent / bandwidth.

    W - 1 steps for all_gather and reduce_scatter, 2 (W - 1) for all_reduce. Raises ValueError for any other
    operation.

    Example: all_reduce of 400 MB on 4 ranks, 5 µs and 100 GB/s: 6 * 5 µs + 600 MB / (100 GB/s) = 6.03 ms.
    """
    raise NotImplementedError("add the latency of all steps and the time of all bytes")


def data_parallel_bytes(num_parameters: int, element_size: int, world_size: int) -> Fraction:
    """The bytes that each rank sends in one step of DDP: one ring all-reduce of all gradients.

    It does not depend on the number of rows.
    """
    raise NotImplementedError("return the bytes that one rank sends in a step")


def tensor_parallel_bytes(rows: int, sizes: Sequence[int], element_size: int, world_size: int) -> Fraction:
    """The bytes that each rank sends in forward and backward of a `ColumnParallelMLP(sizes)` on `rows` rows.

    `sizes` are the widths, from the input's to the output's. Every collective is a ring, every layer is split
    evenly, and each message belongs to an array of rows x width elements: the gathers of forward, the
    reduce-scatters of backward, and the all-reduce of the input's gradient. Module 4 says where each of them
    stands. The number of parameters does not matter.

    Raises ValueError if there are fewer than two sizes.

    Example: tensor_parallel_bytes(1, [2, 3, 4], element_size=1, world_size=2) == 7.
    """
    raise NotImplementedError("add up the bytes of all collectives, forward and backward")


def pipeline_bytes(rows: int, width: int, element_size: int, stage: int, num_stages: int) -> int:
    """The bytes that one stage sends in one train_step, all microbatches together.

    Each row of `width` elements goes to the next stage in forward, and its gradient to the previous one in
    backward. The first stage sends no gradient and the last no activation; how the rows are cut into
    microbatches does not matter.

    Raises ValueError if the stage is not in range(num_stages).
    """
    raise NotImplementedError("count the activations and the gradients that this stage sends")


def bubble_fraction(num_stages: int, num_microbatches: int) -> Fraction:
    """The part of a step in which a stage is idle: (p - 1) / (m + p - 1) for p equal stages, m microbatches.

    A phase lasts m + p - 1 slots, of which each stage works in m (Huang et al., 2019, "GPipe", section 2.3).
    Some papers divide by the time without a bubble instead and write (p - 1) / m.

    Raises ValueError if either number is below 1.
    """
    raise NotImplementedError("return the fraction of the step that is idle")


def microbatches_needed(num_stages: int, largest_bubble: Fraction) -> int:
    """The smallest number of microbatches whose bubble is at most `largest_bubble`; 1 if there is one stage.

    Raises ValueError if `largest_bubble` is not in (0, 1], or num_stages is below 1.

    Example: 2 stages and at most a fifth need 4, for 1 / (4 + 1) = 1 / 5.
    """
    raise NotImplementedError("solve the bubble's formula for the number of microbatches")


def rows_to_hide_all_reduce(world_size: int, element_size: int, *, peak_flops: int, bandwidth: int) -> int:
    """The fewest rows per rank for which backward lasts at least as long as the gradients' ring all-reduce.

    Backward takes 4 floating-point operations for each parameter and row: 2 for the gradient of the input and
    2 for that of the weight (Kaplan et al., 2020, section 2.1). Both times grow with the number of parameters,
    so it cancels. Compute runs at `peak_flops` per second; latency is left out. A world of 1 sends nothing: 0.

    Example: 8 ranks, float32, 10**15 flops and 450 * 10**9 bytes per second need 3,889 rows each.
    """
    raise NotImplementedError("set the two times equal and solve for the rows, rounded up")


# Your answers to the questions of the handout: one letter each, such as CHOICES["q1_..."] = "a". The keys are
# q1_bus_bandwidth_factor, q2_gigabytes, q3_barrier_order, q4_links, q5_bubble, q6_zero_padding, q7_memory and
# q8_who_blocks; each stands on the page of its module.
CHOICES: dict[str, str] = {}
