"""Public checks of the pure functions of pipeline_parallel.py: how layers and rows are split, and the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.checking import Check, CheckFailed, check, expect
from grader.checking.show import value_text
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs import cases
from tests.public.runs.pipeline_splits import compare_microbatches, compare_ranges


@check(
    "pipeline_parallel",
    points=1,
    statement="split_layers returns a range of consecutive layers for each stage, by the uneven rule, and leaves no "
    "layer out; fewer layers than stages is a ValueError.",
    needs=("split_layers",),
)
def test_split_layers(check: Check) -> None:
    from grader.given import piece_range

    allowed = [(layers, stages) for stages in range(1, 6) for layers in range(stages, 13)] + [(97, 8)]
    refused = [(0, 1), (1, 2), (3, 4), (2, 8), (4, 0)]
    named = [f"split_layers({layers}, {stages})" for layers, stages in allowed + refused]
    values = check.run(1, "pipeline_plans.split_layers", joined=False, cases=named, calls=allowed + refused)
    for value, what, (layers, stages) in zip(values[0], named, allowed + refused, strict=True):
        if (layers, stages) in refused:
            expect.raised(value, "ValueError", what=what, rank=0)
            continue
        ranges = [piece_range(layers, stage, stages) for stage in range(stages)]
        came = expect.sequence(expect.returned(value, what=what, rank=0), stages, what=what, rank=0)
        compare_ranges(came, ranges, what=what)


@check(
    "pipeline_parallel",
    points=1,
    statement="split_microbatches returns exactly num_microbatches views of the batch's rows, in order, by the uneven "
    "rule; fewer than 1, or more than there are rows, is a ValueError.",
    needs=("split_microbatches",),
)
def test_split_microbatches(check: Check) -> None:
    allowed: list[tuple[tuple[int, ...], str, int, bool]] = [
        ((8, 3), "float32", 4, False),
        ((8, 3), "float32", 8, False),
        ((10, 3), "float64", 4, False),
        ((5, 2), "float32", 4, False),
        ((7,), "int64", 3, False),
        ((9, 2, 2), "float32", 2, False),
        ((6, 4), "float32", 4, True),
        ((1, 3), "float32", 1, False),
        ((17, 1), "float32", 6, False),
    ]
    refused: list[tuple[tuple[int, ...], str, int, bool]] = [
        ((4, 2), "float32", 0, False),
        ((4, 2), "float32", -1, False),
        ((4, 2), "float32", 5, False),
        ((0, 2), "float32", 1, False),
    ]
    calls = allowed + refused
    named = [f"split_microbatches(batch of {shape[0]} rows, {m})" for shape, _, m, _ in calls]
    batches = [cases.tensor(check, 0, shape, dtype, shape) for shape, dtype, _, _ in calls]
    values = check.run(
        1,
        "pipeline_plans.split_microbatches",
        joined=False,
        cases=named,
        batches=batches,
        calls=[{"num_microbatches": m, "transposed": transposed} for _, _, m, transposed in calls],
    )
    for value, what, call, batch in zip(values[0], named, calls, batches, strict=True):
        came = expect.mapping(value, "outcome", "views", "batch", what=what, rank=0)
        expect.same(came["batch"], batch, what=f"the batch after {what}", rank=0, contiguous=False)
        if call in refused:
            expect.raised(came["outcome"], "ValueError", what=what, rank=0)
            continue
        m = call[2]
        pieces = expect.returned(came["outcome"], what=what, rank=0)
        compare_microbatches(pieces, batch, oracle.microbatches(batch, m), what=what)
        expect.true(
            came["views"] == [True] * m,
            f"{what} copied rows",
            expected="views of the batch, which share its memory",
            actual=f"views: {value_text(came['views'])}",
            help="slicing the batch gives views",
        )


@check(
    "pipeline_parallel",
    points=1,
    statement="gpipe_schedule returns the Actions of one stage in GPipe's order, for any numbers of stages and "
    "microbatches; a stage out of range or fewer than 1 microbatch is a ValueError.",
    needs=("gpipe_schedule",),
)
def test_gpipe_schedule(check: Check) -> None:
    allowed = [(stage, stages, m) for stages in (1, 2, 3, 4, 6) for stage in range(stages) for m in (1, 2, 3, 5)]
    refused = [(-1, 2, 2), (2, 2, 2), (1, 1, 4), (0, 0, 1), (0, 2, 0), (1, 2, -3)]
    named = [f"gpipe_schedule({', '.join(map(str, call))})" for call in allowed + refused]
    values = check.run(1, "pipeline_plans.gpipe_schedule", joined=False, cases=named, calls=allowed + refused)
    for value, what, call in zip(values[0], named, allowed + refused, strict=True):
        if call in refused:
            expect.raised(value, "ValueError", what=what, rank=0)
        else:
            _compare_schedule(expect.returned(value, what=what, rank=0), oracle.schedule(*call), what=what)


def _compare_schedule(value: Any, expected: Sequence[str], *, what: str) -> None:
    if not isinstance(value, list):
        raise CheckFailed(f"{what} did not return a list", expected="a list of Action", actual=value_text(value))
    foreign = [(number, entry) for number, entry in enumerate(value) if not isinstance(entry, str)]
    if foreign:
        number, entry = foreign[0]
        raise CheckFailed(
            f"entry {number} of {what} is not an Action with a Kind and an int",
            expected="Action(Kind.FORWARD, 0), or another of its kind",
            actual=value_text(entry.get("no action") if isinstance(entry, dict) else entry),
        )
    places = range(min(len(value), len(expected)))
    wrong = next((number for number in places if value[number] != expected[number]), None)
    if wrong is not None or len(value) != len(expected):
        where = f"{len(value)} actions came" if wrong is None else f"action {wrong} is {value[wrong]!r}"
        wanted = f"{len(expected)} were expected" if wrong is None else f"{expected[wrong]!r} was expected"
        raise CheckFailed(
            f"{what} is not GPipe's schedule: {where}, {wanted}",
            expected=" ".join(expected),
            actual=" ".join(value)[:1000],
        )
