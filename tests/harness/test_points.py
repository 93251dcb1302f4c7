"""The points and the words of all checks together: what the assignment promises."""

from __future__ import annotations

from collections import Counter

import pytest

from grader.checking.spec import CheckSpec
from tests.harness import mutation

SPECS = [listed.spec for listed in mutation.checks().values()]
REGULAR = [spec for spec in SPECS if not spec.bonus]
BONUS = [spec for spec in SPECS if spec.bonus]
POINTS = {"collectives": 20, "benchmark": 10, "data_parallel": 28, "tensor_parallel": 18, "pipeline_parallel": 24}
BONUS_POINTS = {"collectives": 6, "accounting": 10}


def points(specs: list[CheckSpec]) -> int:
    return sum(spec.points for spec in specs)


def by_module(specs: list[CheckSpec]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for spec in specs:
        counted[spec.module] += spec.points
    return counted


def test_points_sum_to_100() -> None:
    assert points(REGULAR) == 100


@pytest.mark.parametrize("module", POINTS)
def test_points_of_each_module(module: str) -> None:
    assert by_module(REGULAR)[module] == POINTS[module]


def test_every_regular_point_is_in_modules_1_to_5() -> None:
    assert set(by_module(REGULAR)) == set(POINTS)


def test_55_to_65_points_are_public() -> None:
    assert 55 <= points([spec for spec in REGULAR if not spec.hidden]) <= 65


def test_core_tier_is_55_to_65_points() -> None:
    assert 55 <= points([spec for spec in REGULAR if spec.core]) <= 65


def test_bonus_comes_on_top() -> None:
    assert by_module(BONUS) == BONUS_POINTS
    assert not any(spec.core for spec in BONUS), "the shorter assignment has no bonus"


def test_points_are_whole_and_not_negative() -> None:
    assert all(type(spec.points) is int and spec.points >= 0 for spec in SPECS)


def test_statements_are_sentences_of_their_own() -> None:
    statements = [spec.statement for spec in SPECS]
    assert [each for each, count in Counter(statements).items() if count > 1] == []
    assert [each for each in statements if not each.endswith(".") or each != each.strip() or "\n" in each] == []


def test_names_are_unique_and_say_their_module() -> None:
    names = [spec.name for spec in SPECS]  # `load` has refused two of one name already
    assert len(names) == len(set(names))
    assert all(spec.name.startswith(f"{spec.module}.") for spec in SPECS)


def test_public_worlds_are_1_2_and_4_and_hidden_ones_up_to_5() -> None:
    public = {size for spec in SPECS if not spec.hidden for size in spec.worlds}
    hidden = {size for spec in SPECS if spec.hidden for size in spec.worlds}
    assert public == {1, 2, 4}
    assert {3, 5} <= hidden <= {1, 2, 3, 4, 5}
