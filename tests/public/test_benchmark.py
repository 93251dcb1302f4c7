"""Public checks of benchmark.py: bandwidths, one rank's own times, and the measurement that all ranks share."""

from __future__ import annotations

from functools import partial

from grader.checking import Check, check, expect
from tests.public.oracles import benchmark as oracle
from tests.public.runs.bandwidths import expect_algorithm_bandwidths, expect_bus_bandwidths
from tests.public.runs.iterations import expect_order
from tests.public.runs.measured import Run
from tests.public.runs.measurements import measure
from tests.public.runs.pure import Call, expect_refused
from tests.public.runs.seconds import own_seconds_told
from tests.public.runs.told import explained
from tests.public.runs.traffic import Traffic


@check(
    "benchmark",
    points=1,
    statement="algorithm_bandwidth is bytes per second, in units of 1 and not of 1024; seconds that are not above 0 "
    "are a ValueError.",
    needs=("algorithm_bandwidth",),
)
def test_algorithm_bandwidth(check: Check) -> None:
    right = [(400_000_000, 0.0016), (1, 3.0), (2**40, 0.5), (12, 1e-7), (0, 2.0)]
    expect_algorithm_bandwidths(check, right)
    expect_refused(
        check, [(Call("algorithm_bandwidth", [400, 0.0]), "0"), (Call("algorithm_bandwidth", [4, -1.5]), "-1.5")]
    )


@check(
    "benchmark",
    points=1,
    statement="bus_bandwidth is the algorithm bandwidth times 2(W−1)/W for all-reduce, (W−1)/W for reduce-scatter, "
    "all-gather and all-to-all, 1 for broadcast and reduce; in a world of 1 it is 0.0.",
    needs=("bus_bandwidth",),
)
def test_bus_bandwidth(check: Check) -> None:
    arguments = [
        (operation, num_bytes, seconds, world_size)
        for operation in oracle.OPERATIONS
        for num_bytes, seconds in ((400_000_000, 0.0016), (12, 3.0))
        for world_size in (4, 3, 2, 5, 512, 1)  # at 4 no two factors are alike
    ]
    expect_bus_bandwidths(check, arguments)


@check(
    "benchmark",
    points=1,
    statement="time_collective warms up with run() alone; then each iteration is exactly synchronize, barrier, clock, "
    "run, synchronize, clock.",
    needs=("time_collective",),
)
def test_order_of_an_iteration(check: Check) -> None:
    counts = [{"warmup": 3, "iterations": 2}, {"warmup": 0, "iterations": 1}, {"warmup": 1, "iterations": 4}, {}]
    calls = [{"counts": each, "readings": [float(number) for number in range(80)], "refused": False} for each in counts]
    names = [f"time_collective({', '.join(f'{name}={count}' for name, count in each.items())})" for each in counts]
    check.run(1, "benchmark.time_collective", cases=names, joined=False, calls=calls)
    traffic = Traffic(check, 1)
    for number, (what, each) in enumerate(zip(names, counts, strict=True)):
        expect_order(
            traffic.marks(0, number), warmup=each.get("warmup", 5), iterations=each.get("iterations", 20), what=what
        )


@check(
    "benchmark",
    points=1,
    statement="time_collective returns this rank's own seconds as a list, one for each iteration: the difference of "
    "the two clock readings around it.",
    needs=("time_collective",),
)
def test_own_seconds(check: Check) -> None:
    import torch

    counts = [{"warmup": 0, "iterations": 1}, {"warmup": 2, "iterations": 5}, {"warmup": 1, "iterations": 6}]
    numbers = torch.randint(1, 4096, (len(counts), 6), generator=check.generator("seconds")).tolist()
    seconds = [
        [number / 1024 for number in row[: each["iterations"]]] for row, each in zip(numbers, counts, strict=True)
    ]
    calls = [
        {"counts": each, "readings": oracle.readings(own, 1000.0), "refused": False}
        for each, own in zip(counts, seconds, strict=True)
    ]
    names = [f"time_collective(warmup={each['warmup']}, iterations={each['iterations']})" for each in counts]
    (values,) = check.run(1, "benchmark.time_collective", cases=names, joined=False, calls=calls)
    for what, value, own, call in zip(names, values, seconds, calls, strict=True):
        value = expect.mapping(value, "value", what=what, rank=0)
        came = expect.sequence(value["value"], len(own), what=what, rank=0)
        for iteration, (each, wanted) in enumerate(zip(came, own, strict=True)):
            entry = f"entry {iteration} of {what}"
            with explained(partial(own_seconds_told, each, call["readings"], iteration), what=entry, rank=0):
                expect.number(each, wanted, what=entry, rank=0)


@check(
    "benchmark",
    points=1,
    statement="benchmark_collective's seconds are the median over iterations of the slowest rank's time, the same "
    "number on every rank.",
    worlds=(1, 2, 4),
    needs=("benchmark_collective",),
)
def test_median_of_the_slowest(check: Check) -> None:
    runs = [
        Run("all_reduce", 8, warmup=2, iterations=5),
        Run("broadcast", 4, warmup=0, iterations=4),
        Run("all_reduce", 4, warmup=1, iterations=1),
        Run("reduce", 12, warmup=None, iterations=None),
    ]
    for size in check.worlds:
        for measured in measure(check, size, runs):
            measured.expect_seconds()


@check(
    "benchmark",
    points=1,
    statement="benchmark_collective runs the operation on a whole array of S bytes of the dtype, rounded up to a "
    "multiple of W elements, and gives S, W and both bandwidths.",
    worlds=(1, 2, 4),
    needs=("benchmark_collective",),
    core=False,
)
def test_size_of_the_whole_array(check: Check) -> None:
    sizes = ((8, "float32"), (5, "int64"), (1, "float64"), (11, "bfloat16"))
    runs = [
        Run(operation, count, dtype, warmup=0, iterations=1)
        for operation in oracle.OPERATIONS
        for count, dtype in sizes
    ]
    for size in check.worlds:
        for measured in measure(check, size, runs):
            measured.expect_sizes()
            measured.expect_buffers()
