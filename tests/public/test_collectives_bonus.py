"""Public checks of the bonus functions of collectives.py: one mean over all ranks, and rows that find their rank."""

from __future__ import annotations

from grader.checking import Check, check
from tests.public.runs import cases
from tests.public.runs.dispatches import drawn, process, run_combines, run_dispatches
from tests.public.runs.moments import Moments, run_moments


@check(
    "collectives",
    points=1,
    statement="global_mean_and_variance gives every rank the mean and the population variance over all elements of "
    "all ranks, as 0-dimensional float64, by one all-reduce; a rank may hold nothing.",
    worlds=(1, 2, 4),
    needs=("global_mean_and_variance",),
    core=False,
    bonus=True,
)
def test_global_mean_and_variance(check: Check) -> None:
    for size in check.worlds:
        shapes = [(3, 2), (5,), (1,), (2, 2, 2)]
        uneven = [cases.signed(check, rank, shapes[rank], "float64", "uneven") for rank in range(size)]
        first = [cases.tensor(check, rank, (4 if rank == 0 else 0,), "float64", "first") for rank in range(size)]
        last = [cases.tensor(check, rank, (6 if rank == size - 1 else 0, 2), "float32", "last") for rank in range(size)]
        run_moments(
            check,
            size,
            [
                Moments("shapes that differ by rank", uneven),
                Moments("shapes that differ by rank", uneven, layout="strided"),
                Moments("shapes that differ by rank", uneven, layout="leaf"),
                Moments("only rank 0 holds elements", first),
                Moments("only the last rank holds elements", last),
                Moments("int64", cases.for_ranks(check, range(size), (3,), "int64")),
                Moments("0-dimensional tensors", cases.for_ranks(check, range(1, size + 1), ())),
            ],
        )


@check(
    "collectives",
    points=1,
    statement="dispatch_rows sends row i to rank destination[i], and to no other; what a rank receives is in the order "
    "of source ranks, then of rows.",
    worlds=(1, 2, 4),
    needs=("dispatch_rows",),
    core=False,
    bonus=True,
)
def test_dispatch_rows(check: Check) -> None:
    for size in check.worlds:
        six, last = [6] * size, {rank: [size - 1] for rank in range(size)}
        run_dispatches(
            check,
            size,
            [
                drawn(check, "6 rows on each rank", six),
                drawn(check, "6 rows on each rank", six, layout="strided"),
                drawn(check, "6 rows on each rank", six, layout="leaf"),
                drawn(check, "rows that differ by rank", [5, 0, 9, 2][:size], (2, 2), "float64"),
                drawn(check, "numbers as rows", [4, 7, 1, 3][:size], (), "int64"),
                drawn(check, "long rows, 24 on each rank", [24] * size, (64,)),
                drawn(check, "all to the last rank", [3, 2, 4, 1][:size], among=last),
                drawn(check, "no rows anywhere", [0] * size),
            ],
        )


@check(
    "collectives",
    points=1,
    statement="combine_rows sends each processed row back to its own rank: row i of the result is what became of row "
    "i, of any width and dtype, as often as the plan is used.",
    worlds=(1, 2, 4),
    needs=("dispatch_rows", "combine_rows"),
    core=False,
    bonus=True,
)
def test_combine_rows(check: Check) -> None:
    for size in check.worlds:
        run_combines(
            check,
            size,
            drawn(check, "rows that differ by rank", [18, 13, 0, 21][:size]),
            [
                process(3),
                process(64),
                process(1, "float64"),
                process(None, "int64"),
                process(7, layout="strided"),
                process(2, layout="leaf"),
                process(3),
            ],
        )
