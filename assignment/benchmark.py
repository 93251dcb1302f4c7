"""Module 2. How fast is a collective? Timing it right, and turning seconds into comparable bandwidths.

Sizes are in bytes, times in seconds, bandwidths in bytes per second: 1 GB/s is 10⁹ bytes per second, not
1024³. S is the size of the *whole* array: the input of reduce-scatter, the output of all-gather, one rank's
send buffer of all-to-all, and one rank's tensor otherwise. From grader.given come `synchronize`, and the
tensor forms of two collectives by names that every torch has: `all_gather_single`, `reduce_scatter_single`.

Two departures from the lecture, on purpose: the barrier stands outside the timed region (it can cost more than a
small collective does), and the slowest rank counts, not the mean over ranks (nobody goes on before it).

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_benchmark
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from grader.given import Group, Measurement, Operation


def algorithm_bandwidth(num_bytes: int, seconds: float) -> float:
    """Bytes per second as the caller sees it: num_bytes / seconds. Raises ValueError for seconds <= 0."""
    raise NotImplementedError("divide the bytes by the seconds")


def bus_bandwidth(operation: Operation, num_bytes: int, seconds: float, world_size: int) -> float:
    """The lecture's effective bandwidth: the bytes per second that each link carries.

    The algorithm bandwidth of S = num_bytes times a factor: 2(W − 1)/W for all_reduce; (W − 1)/W for
    reduce_scatter, all_gather and all_to_all; 1 for broadcast and reduce. A world of 1 moves nothing: 0.0.
    Source: PERFORMANCE.md of NVIDIA's nccl-tests.

        bus_bandwidth("all_reduce", 4 * 10**9, 1.0, world_size=4) == 6e9

    Raises ValueError for seconds <= 0, world_size < 1 and an operation that is not listed.
    """
    raise NotImplementedError("multiply the algorithm bandwidth by the operation's factor")


def time_collective(
    run: Callable[[], object],
    *,
    warmup: int = 5,
    iterations: int = 20,
    synchronize: Callable[[], None],
    barrier: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Times run() and returns this rank's own seconds, one for each iteration.

    First run() alone, `warmup` times: no clock, no synchronize, no barrier. Then each iteration is exactly
    synchronize(), barrier(), clock(), run(), synchronize(), clock(); its time lies between the two clocks.

    synchronize: waits until this rank's device is done. A GPU's calls return before their work is done.
    barrier:     waits until every rank is here, so that all start together. It must come after synchronize.
    Raises ValueError for warmup < 0 or iterations < 1.
    """
    raise NotImplementedError("warm up, then time each iteration between two readings of the clock")


def benchmark_collective(
    operation: Operation,
    num_elements: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    warmup: int = 5,
    iterations: int = 20,
    synchronize: Callable[[], None] | None = None,
    barrier: Callable[[], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    group: Group = None,
) -> Measurement:
    """Measures one of torch's collectives; every rank of the group calls, and all return the same.

    The whole array has num_elements elements, rounded up to a multiple of the world size; its bytes are the
    measurement's num_bytes. The buffers are allocated once, before anything is timed, and their values stay
    finite however often the collective runs. Times are taken by `time_collective`; `seconds` is
    `statistics.median` over iterations of the maximum over ranks.

    synchronize, barrier: None means the device's own (`grader.given.synchronize`) and the group's own.
    Raises ValueError, before anything is sent, for an operation that is not listed, num_elements < 1,
    warmup < 0 or iterations < 1, and on a rank outside the group.
    """
    raise NotImplementedError("make the buffers, time the collective, take the slowest ranks' times")
