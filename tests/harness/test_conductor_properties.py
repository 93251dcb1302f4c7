"""Random programs and random messages for the conductor, without processes."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.world.conductor import EVENTS, Conductor
from grader.world.report import Finding
from tests.harness.scripts import Script, scripts
from tests.harness.simulated import SimulatedWorld


@given(scripts(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_valid_programs_complete_in_any_interleaving(script: Script, random: Random) -> None:
    world = SimulatedWorld(script.programs())
    assert world.run(random.choice) is None
    assert all(rank.ended for rank in world.ranks)
    met = world.conductor.trace.met
    for rank in world.ranks:
        order = [operation.seq for group in met for operation in group if operation.rank == rank.rank]
        assert rank.started == order, "every rank starts its operations in the one order of the world"
    for operations in met:
        assert len({operation.place.line for operation in operations}) == 1, "those that belong together have met"
    assert sorted({group[0].place.line for group in met}) == [step.line for step in script.steps]


@given(scripts(alike=True), st.data(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_an_operation_that_is_missing_ends_in_a_report_that_names_who_waits(
    script: Script, data: st.DataObject, random: Random
) -> None:
    several = [step for step in script.steps if len(step.members) > 1]
    if not several:
        return
    step = data.draw(st.sampled_from(several))
    absent = data.draw(st.sampled_from(step.members))
    world = SimulatedWorld(script.programs(without=(step, absent)))
    report = world.run(random.choice)
    assert report is not None
    assert report.finding is Finding.DEADLOCK
    waiting = {stand.rank for stand in report.stands if stand.doing.startswith("waits in")}
    assert waiting, report
    assert {stand.rank for stand in report.stands} == set(range(script.size)), "it says where every rank is"
    named = {int(number) for number in re.findall(r"\d+", report.sentence.split(":")[0].split("[")[0])}
    assert named & waiting, report.sentence
    assert not all(rank.ended for rank in world.ranks)


@given(scripts(), st.randoms(use_true_random=False), st.data())
@settings(max_examples=30, deadline=None)
def test_a_slow_rank_is_never_called_stuck(script: Script, random: Random, data: st.DataObject) -> None:
    slow = data.draw(st.integers(0, script.size - 1))
    world = SimulatedWorld(script.programs())

    def others_first(able: list[int]) -> int:
        return random.choice([rank for rank in able if rank != slow] or able)

    assert world.run(others_first) is None
    assert all(rank.ended for rank in world.ranks)


_NUMBERS = st.one_of(st.integers(-2, 5), st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=3))
_SPECS = st.lists(
    st.tuples(st.sampled_from(["float32", "no", 3]), st.lists(_NUMBERS, max_size=3)).map(list), max_size=4
)
_ANYTHING = _NUMBERS | st.lists(_NUMBERS, max_size=3) | st.dictionaries(st.text(max_size=2), _NUMBERS, max_size=2)
_HEADS = st.fixed_dictionaries(
    {"event": st.sampled_from(sorted(EVENTS))},
    optional={
        **dict.fromkeys(("s", "g", "name", "ranks", "of", "wrote", "threads", "async", "at"), _ANYTHING),
        **dict.fromkeys(("peer", "root", "tag", "reduce_op"), _NUMBERS),
        "op": st.sampled_from(["all_reduce", "send", "recv", "scatter", "gather", "all_to_all", "barrier", "no", 1]),
        "reads": _SPECS | _ANYTHING,
        "writes": _SPECS | _ANYTHING,
    },
)


@given(st.lists(st.tuples(st.integers(0, 1), _HEADS), max_size=6))
@settings(max_examples=100, deadline=None)
def test_what_no_rank_says_raises_what_the_record_refuses(heads: list[tuple[int, dict[str, object]]]) -> None:
    conductor = Conductor(2)
    for rank in (0, 1):
        conductor.heard(rank, {"event": "form", "g": 0, "name": "0", "ranks": [0, 1], "at": None})
    for rank, head in heads:
        try:
            conductor.heard(rank, head)
            conductor.settle()
        except (LookupError, ValueError, TypeError, AttributeError, StopIteration):
            return  # the record ends the world at the first


@pytest.mark.parametrize(
    "head",
    [
        {"event": "issue", "s": 0, "g": 0, "op": "scatter", "reads": [], "writes": [["float32", [1]]], "root": 0},
        {"event": "issue", "s": 0, "g": 0, "op": "all_to_all", "reads": [["float32", [1]]], "writes": []},
        {"event": "issue", "s": 0, "g": 0, "op": "broadcast", "reads": [["float32", [1]]], "root": 2},
        {"event": "issue", "s": 0, "g": 0, "op": "send", "reads": [["float32", [1]]], "peer": None, "tag": 0},
        {"event": "issue", "s": 0, "g": 0, "op": "all_reduce", "reads": [["float32", [-1]]]},
        {"event": "issue", "s": 1, "g": 0, "op": "barrier"},
        {"event": "issue", "s": 0, "g": 7, "op": "barrier"},
        {"event": "wait", "s": 0},
        {"event": "race", "s": 0},
        {"event": "form", "g": 1, "name": "1", "ranks": [0, 5]},
        {"event": "form", "g": 1, "name": "1", "ranks": [1]},
        {"event": "hold", "of": 9, "name": "x"},
        {"event": "mark", "name": "x" * 1000},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(head: dict[str, object]) -> None:
    conductor = Conductor(2)
    for rank in (0, 1):
        conductor.heard(rank, {"event": "form", "g": 0, "name": "0", "ranks": [0, 1], "at": None})
    with pytest.raises((LookupError, ValueError, TypeError, AttributeError, StopIteration)):
        conductor.heard(0, head)
