"""Hidden checks of benchmark.py: the buffers, the device's own synchronize, other groups, and wrong arguments."""

from __future__ import annotations

from grader.checking import Check, check, expect
from tests.public.oracles import benchmark as oracle
from tests.public.runs.measured import Run
from tests.public.runs.measurements import measure
from tests.public.runs.pure import Call, expect_refused
from tests.public.runs.traffic import Traffic


@check(
    "benchmark",
    points=1,
    statement="benchmark_collective times one complete collective in each iteration, on buffers that are allocated "
    "once and stay finite however often it runs.",
    worlds=(2,),
    needs=("benchmark_collective",),
)
def test_buffers_stay_finite(check: Check) -> None:
    runs = [
        Run("all_reduce", 4, "float16", warmup=60, iterations=3),
        Run("reduce", 4, "float16", warmup=60, iterations=3),
        Run("all_reduce", 8, "float32", warmup=280, iterations=1),
        Run("broadcast", 8, "float32", warmup=3, iterations=4),
        Run("all_gather", 8, "float32", warmup=3, iterations=4),
        Run("reduce_scatter", 8, "float64", warmup=3, iterations=4),
    ]
    for size in check.worlds:
        for measured in measure(check, size, runs):
            measured.expect_iterations()
            measured.expect_warmup()
            measured.expect_buffers()
            measured.expect_finite()


@check(
    "benchmark",
    points=1,
    statement="With synchronize and barrier None, benchmark_collective uses grader.given.synchronize and the group's "
    "own barrier in their places.",
    worlds=(2,),
    needs=("benchmark_collective",),
)
def test_own_synchronize_and_barrier(check: Check) -> None:
    runs = [Run(operation, 4, injected=False, warmup=1, iterations=3) for operation in ("all_reduce", "broadcast")]
    for size in check.worlds:
        for measured in measure(check, size, runs):
            measured.expect_iterations()
            measured.expect_seconds()


@check(
    "benchmark",
    points=1,
    statement="benchmark_collective measures a group of any size, also one with other ranks than the world's, for "
    "every operation; a rank outside the group gets a ValueError.",
    worlds=(3, 5),
    needs=("benchmark_collective",),
    core=False,
)
def test_any_group(check: Check) -> None:
    for size in check.worlds:
        groups = {3: [], 5: [[0, 3], [1, 2, 4]]}[size]
        runs = [
            Run(operation, 7, dtype, warmup=1, iterations=4, injected=False, group="own" if groups else "default")
            for operation, dtype in zip(oracle.OPERATIONS, ("float32", "int32", "float64") * 2, strict=True)
        ]
        outside = [Run("all_reduce", 6, group="other", naming=())] if groups else []
        for measured in measure(check, size, [*runs, *outside], groups=groups):
            measured.expect_seconds()
            measured.expect_sizes()
            measured.expect_buffers()
            measured.expect_iterations()


@check(
    "benchmark",
    points=1,
    statement="A count, a size, a time or an operation that cannot be is a ValueError in every function that takes "
    "it, before anything is run or sent.",
    worlds=(2,),
    needs=("bus_bandwidth", "time_collective", "benchmark_collective"),
    core=False,
)
def test_wrong_arguments(check: Check) -> None:
    bandwidths = [
        (["ring", 8, 1.0, 2], "ring"),
        (["all_reduce", 8, 1.0, 0], "0"),
        (["all_reduce", 8, 1.0, -3], "-3"),
        (["broadcast", 8, 0.0, 2], "0"),
        (["all_gather", 8, -0.25, 2], "-0.25"),
        (["reduce", 8, 0.0, 1], "0"),
    ]
    expect_refused(check, [(Call("bus_bandwidth", arguments), naming) for arguments, naming in bandwidths])

    counts = [{"warmup": -1, "iterations": 2}, {"warmup": 1, "iterations": 0}, {"warmup": 1, "iterations": -2}]
    names = [f"time_collective(warmup={each['warmup']}, iterations={each['iterations']})" for each in counts]
    calls = [{"counts": each, "readings": [], "refused": True} for each in counts]
    (values,) = check.run(1, "benchmark.time_collective", cases=names, joined=False, calls=calls)
    traffic = Traffic(check, 1)
    for number, (what, value, name) in enumerate(zip(names, values, ("-1", "0", "-2"), strict=True)):
        expect.raised(value, "ValueError", what=what, rank=0, naming=[name])
        expect.same(traffic.marks(0, number), [], what=f"the list of calls in {what}, before it raises,", rank=0)

    runs = [
        Run("ring", 8, naming=["ring"]),
        Run("all_reduce", 0, naming=["0"]),
        Run("all_gather", -4, naming=["-4"]),
        Run("all_reduce", 8, warmup=-1, naming=["-1"]),
        Run("broadcast", 8, iterations=0, naming=["0"]),
        Run("broadcast", 8, iterations=-2, naming=["-2"]),
    ]
    for size in check.worlds:
        measure(check, size, runs)
