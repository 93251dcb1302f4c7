"""`make mistakes`: which mistakes there are, and what the table shows of them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from grader.checking import Status
from tests.mistakes import views
from tests.mistakes.__main__ import main
from tests.mistakes.rows import Row, Task, missing, numbers_of, tasks_of
from tests.mistakes.titles import TITLES

WITHOUT_A_MODULE = {*range(42, 51), 56, 57, 64}
ROWS = [
    Row(Task(1, "collectives", "root_is_always_0", "collectives.broadcast"), Status.FAIL, "rank 0: a | b " * 12),
    Row(Task(3, "collectives", "ring_off_by_one", "collectives.reduce_scatter"), Status.PASS, ""),
]


def test_every_mistake_with_a_module_has_a_title() -> None:
    assert set(TITLES) == set(range(1, 66)) - WITHOUT_A_MODULE
    assert all(0 < len(title) < 60 for title in TITLES.values())


def test_rows_are_chosen_by_number() -> None:
    assert numbers_of("1-3, 25") == [1, 2, 3, 25]
    assert numbers_of("55-58") == [55, 58]
    for wrong in ("a", "", "3-1", "45", "1,,2"):
        with pytest.raises(ValueError, match=r"."):
            numbers_of(wrong)


def test_tasks_are_the_first_check_of_each_mutant() -> None:
    tasks = tasks_of([1, 3])
    assert [task.number for task in tasks] == sorted(task.number for task in tasks)
    assert Task(3, "collectives", "ring_off_by_one", "collectives.reduce_scatter") in tasks
    assert len(tasks_of([1, 3], every=True)) > len(tasks)
    assert missing([1, 3, 65], tasks) == [65]


def test_views() -> None:
    text = views.as_text(ROWS, [2])
    assert max(map(len, text.splitlines())) <= views.WIDTH
    assert "collectives.reduce_scatter: pass  <-- not caught" in text
    assert "1 not caught" in text
    markdown = views.as_markdown(ROWS, [2]).splitlines()
    assert [line.split(" | ")[0] for line in markdown[2:5]] == ["| 1", "| 2", "| 3"]
    assert all(line.replace("\\|", "").count("|") == 6 for line in markdown[:5])
    assert json.loads(views.as_json(ROWS, [2]))["missing"] == [2]


def test_one_row_from_the_command_line() -> None:
    result = CliRunner().invoke(main, ["--rows", "4", "--json"])
    assert result.exit_code == 0
    (row,) = json.loads(result.stdout)["rows"]
    assert row["status"] == "fail"
    assert row["line"].endswith("gave a sum that counts ranks 2 and 3 twice")
    assert CliRunner().invoke(main, ["--rows", "45"]).exit_code == 2
