"""Slips: a wrong value that a classic mistake gives is explained by it, and by nothing that it does not equal."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.checking import CheckFailed, Slip, expect
from grader.world.values import ReturnedTensor

WANT = torch.tensor([1.0, 2.0, 3.0])
SUM = Slip("the sum, not the mean", "divide", WANT * 4)


def came(tensor: torch.Tensor) -> ReturnedTensor:
    return ReturnedTensor(tensor, True, False, "cpu")


def why(compare: Any, value: Any, expected: Any, slips: Any) -> str:
    with pytest.raises(CheckFailed) as caught:
        compare(value, expected, what="it", rank=2, slips=slips)
    return caught.value.explanation.rationale


@pytest.mark.parametrize("compare", [expect.same, expect.close])
def test_a_slip_explains_its_value_and_no_other(compare: Any) -> None:
    assert why(compare, came(WANT * 4), WANT, [SUM]) == "rank 2: it gave the sum, not the mean"
    assert "wrong values" in why(compare, came(WANT * 4.001), WANT, [SUM])
    assert "wrong values" in why(compare, came(WANT * torch.nan), WANT, [SUM])


def test_slips_are_asked_for_only_where_a_value_is_wrong() -> None:
    def slips() -> list[Slip]:
        asked.append(True)
        return [SUM]

    asked: list[bool] = []
    expect.close(came(WANT), WANT, what="it", rank=0, slips=slips)
    assert not asked
    assert "the sum" in why(expect.close, came(WANT * 4), WANT, slips)
    assert asked


def test_a_slip_may_have_another_shape_or_dtype_than_what_is_expected() -> None:
    short = Slip("all but the last", "", WANT[:2])
    assert "all but the last" in why(expect.same, came(WANT[:2]), WANT, [short])
    assert "nothing" in why(expect.same, came(WANT[:0]), WANT, [Slip("nothing", "", WANT[:0])])
    assert "wrong shape" in why(expect.same, came(WANT[1:]), WANT, [short])


def test_a_slip_that_gives_what_is_expected_explains_nothing() -> None:
    nearly = WANT * (1 + 2e-7)
    assert "wrong values" in why(expect.same, came(nearly), WANT, [Slip("the same", "", WANT)])


def test_plain_values_and_numbers_have_slips_too() -> None:
    assert "one short" in why(expect.same, [1, 2], [1, 2, 3], [Slip("one short", "", [1, 2])])
    assert "did not return" in why(expect.same, (1, 2), [1, 2, 3], [Slip("one short", "", [1, 2])])
    assert "W times" in why(expect.number, 8.0, 2.0, [Slip("W times it", "", 8.0)])
    assert "not the number" in why(expect.number, 8.1, 2.0, [Slip("W times it", "", 8.0)])
    assert "not the number" in why(expect.number, 10**400, 2.0, [Slip("W times it", "", 8.0)])


def test_a_lost_precision_is_named() -> None:
    want = WANT.double() / 7
    with pytest.raises(CheckFailed) as caught:
        expect.close(came(want.float().double()), want, what="it", rank=0)
    assert "float32" in caught.value.explanation.help
