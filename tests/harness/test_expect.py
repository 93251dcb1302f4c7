"""Comparisons: what passes, what fails, and what the student reads. No processes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grader.checking import CheckFailed, expect
from grader.world.values import Foreign, ReturnedTensor


def came(tensor: torch.Tensor, *, contiguous: bool = True, requires_grad: bool = False) -> ReturnedTensor:
    return ReturnedTensor(tensor, contiguous, requires_grad, "cpu")


def why(function: Any, *arguments: Any, **keywords: Any) -> CheckFailed:
    with pytest.raises(CheckFailed) as caught:
        function(*arguments, **keywords, what="reduce(dst=1)", rank=2)
    return caught.value


WANT = torch.tensor([1000.5, 1001.25, 1002.0])


@pytest.mark.parametrize(
    "wrong",
    [
        torch.zeros(3),
        torch.full((3,), float("nan")),
        torch.tensor([1000.5, float("inf"), 1002.0]),
        WANT + 0.1,
        WANT * 4,
        WANT[:2],
        WANT.double(),
        WANT.reshape(3, 1),
        torch.empty(0),
    ],
    ids=["zeros", "nan", "inf", "slightly wrong", "four times", "short", "dtype", "shape", "empty"],
)
@pytest.mark.parametrize("compare", [expect.same, expect.close])
def test_wrong_tensors_fail(compare: Any, wrong: torch.Tensor) -> None:
    assert str(why(compare, came(wrong), WANT)).startswith("rank 2: ")


@pytest.mark.parametrize("value", [None, 3, [WANT], Foreign("mine.Liar"), "text", {"a": 1}, float("nan")])
def test_what_is_no_tensor_fails(value: Any) -> None:
    failed = why(expect.same, value, WANT)
    assert failed.explanation.rationale == "rank 2: reduce(dst=1) did not return a tensor"
    assert failed.explanation.actual


def test_right_tensors_pass() -> None:
    expect.same(came(WANT.clone()), WANT, what="it", rank=0)
    expect.close(came(WANT * (1 + 1e-7)), WANT, what="it", rank=0)
    expect.same(came(torch.tensor([float("nan")])), torch.tensor([float("nan")]), what="it", rank=0)
    expect.close(came(torch.empty(0, 3)), torch.empty(0, 3), what="it", rank=0)


def test_views_with_gaps_and_results_in_autograd_fail() -> None:
    assert "not contiguous" in str(why(expect.same, came(WANT, contiguous=False), WANT))
    assert "takes part in autograd" in str(why(expect.same, came(WANT, requires_grad=True), WANT))
    expect.same(
        came(WANT, contiguous=False, requires_grad=True),
        WANT,
        what="it",
        rank=0,
        contiguous=False,
        outside_autograd=False,
    )


@given(factor=st.sampled_from([2.0, 3.0, 4.0, 0.5, 0.25]), size=st.integers(2, 9))
def test_a_common_factor_is_named(factor: float, size: int) -> None:
    want = torch.arange(1.0, size + 1)
    failed = why(expect.close, came(want * factor), want)
    word = f"too large by the factor {factor:g}" if factor > 1 else f"too small by the factor {1 / factor:g}"
    assert failed.explanation.help == f"every value is {word}"


@given(wide=st.floats(-1e6, 1e6, allow_nan=False), error=st.floats(2e-5, 10))
def test_the_tolerance_follows_the_largest_number(wide: float, error: float) -> None:
    want = torch.tensor([wide, 1.0, 0.0], dtype=torch.float32)
    wrong = want + torch.tensor([0.0, 0.0, error * max(abs(wide), 1.0)])
    why(expect.close, came(wrong), want)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, True),
        (1.0, 1),
        ("1", 1),
        (None, 0),
        ([1], (1,)),
        ([1, 2], [1]),
        (Foreign("numpy.int64"), 1),
        (float("nan"), 1.0),
    ],
)
def test_plain_values_are_of_one_type_and_equal(value: Any, expected: Any) -> None:
    why(expect.same, value, expected)


def test_numbers() -> None:
    expect.number(3, 3.0, what="it", rank=0)
    expect.number(0.1 + 0.2, 0.3, what="it", rank=0)
    assert why(expect.number, 8.0, 2.0).explanation.help == "every value is too large by the factor 4"
    for value in (float("nan"), True, "2.0", None, Foreign("numpy.float64")):
        why(expect.number, value, 2.0)


def test_errors_are_expected_by_class_and_by_what_they_name() -> None:
    outcome = {"raised": ["ValueError", "Exception"], "message": "dst is 7; expected 0 to 3"}
    expect.raised(outcome, "ValueError", what="it", rank=0, naming=("7", "3"))
    assert "does not name" in str(why(expect.raised, outcome, "ValueError", naming=("9",)))
    assert "wrong kind of error" in str(why(expect.raised, outcome, "RuntimeError"))
    assert "raised nothing" in str(why(expect.raised, {"value": came(WANT)}, "ValueError"))
    for broken in (None, [], {"raised": 3}, {"raised": []}):
        why(expect.raised, broken, "ValueError")


def test_lists_have_their_length() -> None:
    assert expect.sequence([1, 2], 2, what="it", rank=0) == [1, 2]
    for value in ([1], (1, 2), None, Foreign("x")):
        why(expect.sequence, value, 2)


def test_messages_stay_short_whatever_came() -> None:
    failed = why(expect.same, ["x" * 10**6] * 1000, 3)
    assert len(failed.explanation.actual) < 1000
    failed = why(expect.same, came(torch.arange(10**6)), torch.arange(10**6) + 1)
    assert len(failed.explanation.actual) < 1000


@pytest.mark.parametrize("huge", [10**400, 10**5000, -(10**5000)], ids=["large", "too large to print", "negative"])
def test_numbers_with_too_many_digits_fail_and_break_nothing(huge: int) -> None:
    assert "not the number expected" in str(why(expect.number, huge, 1.0))
    assert "did not return 3" in str(why(expect.same, huge, 3))
    assert "did not return Fraction" in str(why(expect.same, Fraction(huge, 3), Fraction(1, 3)))
    assert "a list of 2" in str(why(expect.sequence, [huge], 2))
