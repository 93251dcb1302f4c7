"""Public checks of accounting.py: numbers that can be worked out by hand."""

from __future__ import annotations

from fractions import Fraction

from grader.checking import Check, check
from tests.public.runs.pure import Call, expect_refused, expect_values

MICROSECOND = Fraction(1, 10**6)
GB = 10**9


@check(
    "accounting",
    points=1,
    statement="training_bytes counts weights, gradients and optimizer state; gpus_to_hold is the smallest number of "
    "GPUs that hold them, and at least 1.",
    needs=("training_bytes", "gpus_to_hold"),
    core=False,
    bonus=True,
)
def test_training_memory(check: Check) -> None:
    mixed = {"weight_bytes": 2, "grad_bytes": 2, "optimizer_bytes": 12}
    expect_values(
        check,
        [
            (Call("training_bytes", [10**9]), 16 * GB),
            (Call("training_bytes", [7], mixed), 112),
            (Call("training_bytes", [10], {"weight_bytes": 1, "grad_bytes": 20, "optimizer_bytes": 300}), 3210),
            (Call("training_bytes", [0]), 0),
            (Call("gpus_to_hold", [10**12, 192 * GB]), 84),
            (Call("gpus_to_hold", [12 * GB, 192 * GB]), 1),
            (Call("gpus_to_hold", [12 * GB + 1, 192 * GB]), 2),
            (Call("gpus_to_hold", [100 * GB, 80 * GB], {"bytes_per_parameter": 2}), 3),
            (Call("gpus_to_hold", [10**30 + 1, 16]), 10**30 + 1),
            (Call("gpus_to_hold", [0, 80 * GB]), 1),
        ],
    )


@check(
    "accounting",
    points=1,
    statement="ring_bytes_sent is S(W−1)/W for all-gather and reduce-scatter and twice that for all-reduce; "
    "ring_seconds adds the latency of each step; other operations are a ValueError.",
    needs=("ring_bytes_sent", "ring_seconds"),
    core=False,
    bonus=True,
)
def test_rings(check: Check) -> None:
    fast = {"latency": 5 * MICROSECOND, "bandwidth": 100 * GB}
    slow = {"latency": 2 * MICROSECOND, "bandwidth": GB}
    odd = {"latency": Fraction(1, 3), "bandwidth": 7}
    expect_values(
        check,
        [
            (Call("ring_bytes_sent", ["all_gather", 1200, 4]), Fraction(900)),
            (Call("ring_bytes_sent", ["reduce_scatter", 1200, 4]), Fraction(900)),
            (Call("ring_bytes_sent", ["all_reduce", 1200, 4]), Fraction(1800)),
            (Call("ring_bytes_sent", ["all_gather", 10, 4]), Fraction(15, 2)),
            (Call("ring_bytes_sent", ["all_reduce", 10, 3]), Fraction(40, 3)),
            (Call("ring_bytes_sent", ["all_reduce", 1200, 1]), Fraction(0)),
            (Call("ring_seconds", ["all_reduce", 400 * 10**6, 4], fast), Fraction(603, 10**5)),
            (Call("ring_seconds", ["all_reduce", 1200, 4], slow), Fraction(138, 10**7)),
            (Call("ring_seconds", ["all_gather", 1200, 4], slow), Fraction(69, 10**7)),
            (Call("ring_seconds", ["reduce_scatter", 10, 4], odd), Fraction(29, 14)),
            (Call("ring_seconds", ["all_gather", 1200, 1], slow), Fraction(0)),
        ],
    )
    others = ("broadcast", "reduce", "all_to_all", "ring")
    refused = [(Call("ring_bytes_sent", [operation, 1200, 4]), operation) for operation in others]
    refused += [(Call("ring_seconds", [operation, 1200, 4], slow), operation) for operation in others]
    expect_refused(check, refused)


@check(
    "accounting",
    points=1,
    statement="data_parallel_bytes is one ring all-reduce of all gradients; pipeline_bytes counts the activations and "
    "gradients that one stage sends, and refuses a stage that is not there.",
    needs=("data_parallel_bytes", "pipeline_bytes"),
    core=False,
    bonus=True,
)
def test_bytes_of_data_and_pipeline_parallelism(check: Check) -> None:
    expect_values(
        check,
        [
            (Call("data_parallel_bytes", [1000, 4, 4]), Fraction(6000)),
            (Call("data_parallel_bytes", [10, 2, 3]), Fraction(80, 3)),
            (Call("data_parallel_bytes", [1000, 4, 1]), Fraction(0)),
            (Call("pipeline_bytes", [8, 16, 4, 0, 4]), 512),
            (Call("pipeline_bytes", [8, 16, 4, 1, 4]), 1024),
            (Call("pipeline_bytes", [8, 16, 4, 2, 4]), 1024),
            (Call("pipeline_bytes", [8, 16, 4, 3, 4]), 512),
            (Call("pipeline_bytes", [3, 5, 2, 0, 2]), 30),
            (Call("pipeline_bytes", [3, 5, 2, 1, 2]), 30),
            (Call("pipeline_bytes", [8, 16, 4, 0, 1]), 0),
        ],
    )
    stages = [(4, 4), (-1, 4), (1, 1)]
    expect_refused(check, [(Call("pipeline_bytes", [8, 16, 4, stage, count]), str(stage)) for stage, count in stages])


@check(
    "accounting",
    points=1,
    statement="tensor_parallel_bytes counts the gathers, reduce-scatters and the all-reduce that one forward and "
    "backward of ColumnParallelMLP send; fewer than two sizes are a ValueError.",
    needs=("tensor_parallel_bytes",),
    core=False,
    bonus=True,
)
def test_bytes_of_tensor_parallelism(check: Check) -> None:
    expect_values(
        check,
        [
            (Call("tensor_parallel_bytes", [1, [2, 3, 4], 1, 2]), Fraction(7)),
            (Call("tensor_parallel_bytes", [8, [16, 32, 32, 10], 4, 4]), Fraction(4080)),
            (Call("tensor_parallel_bytes", [2, [3, 5], 2, 3]), Fraction(88, 3)),
            (Call("tensor_parallel_bytes", [2, [3, 5, 7], 2, 1]), Fraction(0)),
        ],
    )
    expect_refused(check, [(Call("tensor_parallel_bytes", [2, sizes, 4, 2]), str(len(sizes))) for sizes in ([7], [])])


@check(
    "accounting",
    points=1,
    statement="bubble_fraction is (p−1)/(m+p−1), and microbatches_needed the smallest m whose bubble is small enough; "
    "counts below 1 and bubbles outside (0, 1] are ValueErrors.",
    needs=("bubble_fraction", "microbatches_needed"),
    core=False,
    bonus=True,
)
def test_bubbles(check: Check) -> None:
    expect_values(
        check,
        [
            (Call("bubble_fraction", [4, 16]), Fraction(3, 19)),
            (Call("bubble_fraction", [3, 14]), Fraction(1, 8)),
            (Call("bubble_fraction", [2, 1]), Fraction(1, 2)),
            (Call("bubble_fraction", [1, 5]), Fraction(0)),
            (Call("microbatches_needed", [4, Fraction(1, 10)]), 27),
            (Call("microbatches_needed", [3, Fraction(1, 8)]), 14),
            (Call("microbatches_needed", [2, Fraction(49, 100)]), 2),
            (Call("microbatches_needed", [2, Fraction(1, 2)]), 1),
            (Call("microbatches_needed", [5, Fraction(1)]), 1),
            (Call("microbatches_needed", [1, Fraction(1, 10)]), 1),
        ],
    )
    refused = [(Call("bubble_fraction", counts), "0") for counts in ([0, 4], [4, 0])]
    refused += [(Call("microbatches_needed", [0, Fraction(1, 2)]), "0")]
    refused += [
        (Call("microbatches_needed", [4, largest]), str(largest))
        for largest in (Fraction(0), Fraction(-1, 2), Fraction(3, 2))
    ]
    expect_refused(check, refused)


@check(
    "accounting",
    points=1,
    statement="rows_to_hide_all_reduce is the smallest number of rows for which backward lasts as long as the ring "
    "all-reduce; in a world of 1 it is 0.",
    needs=("rows_to_hide_all_reduce",),
    core=False,
    bonus=True,
)
def test_rows_to_hide_all_reduce(check: Check) -> None:
    right = [
        ((8, 4), (10**15, 450 * GB), 3889),
        ((2, 4), (100, 10), 10),
        ((2, 4), (101, 10), 11),
        ((4, 2), (1000, 7), 108),
        ((2, 4), (10**30 + 1, 1), 10**30 + 1),
        ((1, 4), (10**15, 450 * GB), 0),
    ]
    expect_values(
        check,
        [
            (Call("rows_to_hide_all_reduce", sizes, {"peak_flops": peak_flops, "bandwidth": bandwidth}), rows)
            for sizes, (peak_flops, bandwidth), rows in right
        ],
    )
