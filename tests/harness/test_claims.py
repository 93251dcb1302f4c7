"""What a rank says for itself is read with care: nothing in it breaks the judge, fills it, or reaches a screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.checking import Check, CheckFailed, Slip, Status, expect
from grader.checking.catalog import ListedCheck
from grader.checking.context import Grading
from grader.checking.judging import judge
from grader.checking.spec import CheckSpec
from grader.checking.submission import Submission
from grader.world import Launcher
from grader.world.conductor import MAX_FORMS, MAX_LENGTHS, MAX_MARKS, MAX_OPEN, Conductor
from grader.world.failure import read_error
from grader.world.operation import NOWHERE
from grader.world.reading import read_place
from grader.world.values import MAX_DIGITS, Foreign, ReturnedTensor, ValueTreeError, decode, encode

ISSUE = {"event": "issue", "g": 0, "op": "all_reduce", "reads": [["float32", [4]]], "threads": True}


def conductor(size: int = 2) -> Conductor:
    made = Conductor(size)
    for rank in range(size):
        made.heard(rank, {"event": "form", "g": 0, "name": "0", "ranks": list(range(size))})
    return made


@pytest.mark.parametrize(
    "said",
    [
        {"root": 0},
        {"peer": 0},
        {"op": ["all_reduce"]},
        {"reads": [["float32", [2**40, 2**40]]]},
        {"reads": [["float32", [-1]]]},
        {"reads": [["float32", [True]]]},
        {"reads": [["float", [1]]]},
        {"event": "mark", "name": "computed\x1b[2J"},
        {"event": "hold", "of": 0, "name": "two\nlines"},
        {"event": "form", "g": 1, "name": "\ud800", "ranks": [0]},
        {"event": "form", "g": 1.5, "name": "1", "ranks": [0]},
    ],
)
def test_what_no_rank_says_is_refused(said: Mapping[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        conductor().heard(0, {**ISSUE, "s": 0, **said})


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (MAX_FORMS, lambda number: {"event": "form", "g": number, "name": f"of {number}", "ranks": [0]}),
        (MAX_MARKS, lambda _: {"event": "mark", "name": "the same"}),
        (MAX_OPEN, lambda number: {**ISSUE, "s": number}),
        (MAX_OPEN, lambda number: {**ISSUE, "s": number, "async": True}),
        (MAX_LENGTHS, lambda number: {**ISSUE, "s": number, "reads": [["bool", [1] * 60]] * 4000}),
    ],
    ids=["groups", "marks", "operations", "handles", "shapes"],
)
def test_what_a_rank_tells_takes_no_more_room_than_there_is(bound: int, said: Any) -> None:
    heard = conductor()

    def tell_on() -> None:
        for number in range(bound + 1):
            heard.heard(0, said(number))

    with pytest.raises(ValueError, match="than there is room for"):
        tell_on()


def test_messages_that_met_leave_nothing_behind() -> None:
    heard = conductor(2)
    for tag in range(100):
        spec = [["bool", [1]]]
        ends = {**ISSUE, "tag": tag, "s": tag, "reads": []}
        heard.heard(0, {**ends, "op": "send", "peer": 1, "reads": spec})
        heard.heard(1, {**ends, "op": "recv", "peer": 0, "writes": spec})
    assert not heard._meetings._messages


def test_a_place_is_printable_or_nowhere() -> None:
    assert read_place(["a.py", 3, "f\x1b[2J\n\u202eg", "submission"]).function == "f\N{REPLACEMENT CHARACTER}[2J" + (
        "\N{REPLACEMENT CHARACTER}" * 2 + "g"
    )
    assert read_place(["a.py", True, "f", "submission"]) == NOWHERE
    assert read_place([["a.py"], 3, "f", "submission"]) == NOWHERE


def test_an_error_is_text_or_nothing() -> None:
    error = {"type": [[1]], "message": {"a": 1}, "classes": [5, "ValueError"], "frames": [{"file": [], "line": True}]}
    failure = read_error(0, 0, {"phase": [], "error": error})
    assert (failure.error_type, failure.message, failure.phase) == ("an error", "", "")
    assert failure.classes == ("", "ValueError")
    assert failure.frames[0].line == 0


def test_numbers_with_more_digits_than_python_prints_do_not_cross() -> None:
    tree, _ = encode([10**5000, 10**4000])
    assert isinstance(decode(tree, b"")[0], Foreign)
    assert decode(tree, b"")[1] == 10**4000
    with pytest.raises(ValueTreeError):
        decode({"int": "f" * (MAX_DIGITS + 1)}, b"")
    with pytest.raises(ValueTreeError):
        decode({"fraction": ["f" * (MAX_DIGITS + 1), "1"]}, b"")


@pytest.mark.parametrize("value", [5e-324, -5e-324, 1e308, float("inf"), float("nan"), 2**1000, True])
def test_no_number_breaks_what_is_said_of_it(value: float) -> None:
    with pytest.raises(CheckFailed):
        expect.number(value, 3.0, what="f()", rank=0)


def test_a_slip_that_breaks_explains_nothing() -> None:
    def slips() -> list[Slip]:
        raise RuntimeError("Unsupported input type")

    came = ReturnedTensor(torch.ones(2, dtype=torch.complex64), True, False, "cpu")
    with pytest.raises(CheckFailed, match="wrong dtype"):
        expect.same(came, torch.ones(2), what="f()", rank=0, slips=slips)


def looks_closer(_: Check) -> None:
    try:
        raise CheckFailed("wrong", expected="1\x1b[2J", actual="\ud800" * 10)
    except CheckFailed:
        raise StopIteration from None


def breaks(_: Check) -> None:
    raise StopIteration


def test_a_check_that_breaks_over_its_words_keeps_its_verdict(launcher: Launcher) -> None:
    spec = CheckSpec("collectives.any", "collectives", 1, "It holds.", (1,), (), True, False, False)
    grading = Grading(Submission({"collectives": b""}, {}), launcher)
    verdict = judge(ListedCheck(spec, looks_closer, Path("tests/any.py")), grading, seed=1, root=Path())
    assert (verdict.status, verdict.explanation and verdict.explanation.rationale) == (Status.FAIL, "wrong")
    assert "StopIteration" in verdict.output
    assert verdict.explanation is not None
    assert verdict.explanation.expected == "1\\x1b[2J"
    assert verdict.explanation.actual == "\\ud800" * 10
    verdict = judge(ListedCheck(spec, breaks, Path("tests/any.py")), grading, seed=1, root=Path())
    assert verdict.status is Status.INFRA
