"""Wrong values beside those of the other ranks: the two tables that a student reads."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grader.checking import CheckFailed, expect
from grader.checking.rank_tables import WIDTH, rank_tables
from grader.world.values import Foreign, ReturnedTensor

WANT = {0: torch.tensor([6.0, 10.0, 14.5]), 1: torch.tensor([6.0, 10.0, 14.5])}


def came(tensor: torch.Tensor, *, contiguous: bool = True) -> ReturnedTensor:
    return ReturnedTensor(tensor, contiguous, False, "cpu")


def test_wrong_values_are_shown_for_all_ranks_and_nothing_else_changes() -> None:
    values = {0: came(WANT[0]), 1: came(torch.tensor([1.0, 2.0, 3.0]))}
    with pytest.raises(CheckFailed) as bare:
        expect.close(values[1], WANT[1], what="all_reduce()", rank=1)
    with pytest.raises(CheckFailed) as shown, expect.by_rank(values, WANT):
        expect.close(values[1], WANT[1], what="all_reduce()", rank=1)
    before, after = bare.value.explanation, shown.value.explanation
    assert (after.rationale, after.help, after.where) == (before.rationale, before.help, before.where)
    assert shown.value.status is bare.value.status
    assert after.expected == "float32 (3,)\nrank 0     6   10 14.5\nrank 1     6   10 14.5"
    assert after.actual == "float32 (3,)\nrank 0     6   10 14.5\nrank 1     1    2    3"


@pytest.mark.parametrize("value", [None, came(WANT[0].double()), came(WANT[0], contiguous=False)])
def test_what_is_wrong_about_the_form_is_shown_as_it_is(value: Any) -> None:
    with pytest.raises(CheckFailed) as bare:
        expect.same(value, WANT[1], what="it", rank=1)
    with pytest.raises(CheckFailed) as shown, expect.by_rank({0: value, 1: value}, WANT):
        expect.same(value, WANT[1], what="it", rank=1)
    assert shown.value.explanation == bare.value.explanation


def test_what_is_right_passes_whatever_other_ranks_returned() -> None:
    with expect.by_rank({0: came(WANT[0]), 1: Foreign("x")}, WANT):
        expect.close(came(WANT[0]), WANT[0], what="it", rank=0)


def test_only_the_root_has_a_result() -> None:
    actual, expected = rank_tables({1: came(WANT[0]), 3: came(WANT[1])}, {1: WANT[0], 3: None})
    assert expected == "float32 (3,)\nrank 1     6   10 14.5\nrank 3  None"
    assert actual == "float32 (3,)\nrank 1     6   10 14.5\nrank 3     6   10 14.5"


def test_shapes_that_differ_stand_in_the_rows() -> None:
    _, expected = rank_tables({}, {0: torch.arange(4).reshape(2, 2), 1: torch.arange(2).reshape(2, 1)})
    assert expected == "rank 0  int64 (2, 2) 0 1 2 3\nrank 1  int64 (2, 1) 0 1"


def test_a_long_tensor_is_shown_from_its_first_wrong_number_on() -> None:
    whole = torch.arange(40.0).reshape(4, 10)
    wrong = whole.clone()
    wrong[2, 3] = -1
    actual, expected = rank_tables({0: came(whole), 1: came(wrong)}, {0: whole, 1: whole})
    assert expected.splitlines()[0] == "float32 (4, 10), from element 23 on"
    assert expected.splitlines()[2] == "rank 1  23 24 25 26 27 28 29 30 …"
    assert actual.splitlines()[2] == "rank 1  -1 24 25 26 27 28 29 30 …"


def test_numbers_have_the_digits_that_tell_them_apart() -> None:
    right = torch.tensor([1.0, 2.0], dtype=torch.float64)
    actual, expected = rank_tables({0: came(right * (1 + 1e-8))}, {0: right})
    assert actual != expected
    assert "1.00000001" in actual


def test_of_many_ranks_the_first_are_shown() -> None:
    numbers = {rank: float(rank) for rank in range(7)}
    actual, expected = rank_tables(numbers, numbers)
    assert actual == expected
    assert expected.splitlines()[4:] == ["rank 4  4.0", "(and 2 more ranks)"]


DTYPES = [torch.float32, torch.float16, torch.float64, torch.complex64, torch.bool, torch.int64, torch.uint16]
TENSORS = st.builds(
    lambda shape, dtype, fill: torch.full(shape, fill).to(dtype),
    st.sampled_from([(), (0,), (3,), (2, 3), (40, 3), (3, 0)]),
    st.sampled_from(DTYPES),
    st.sampled_from([0.0, 1.0, -123456.7, float("nan"), float("inf")]),
)
VALUES = st.one_of(
    TENSORS,
    TENSORS.map(came),
    st.sampled_from([None, 3, 10**5000, "x" * 1000, "a\nb\x1b[2J", Foreign("mine.Liar"), [1] * 99, {"a": ()}, 0.5]),
)


@given(st.dictionaries(st.integers(0, 6), VALUES), st.dictionaries(st.integers(0, 6), VALUES, min_size=1))
def test_whatever_comes_is_a_small_table(came: dict[int, Any], expected: dict[int, Any]) -> None:
    for table in rank_tables(came, expected):
        assert len(table.splitlines()) <= 7
        assert all(len(line) <= WIDTH and line.isprintable() for line in table.split("\n"))
