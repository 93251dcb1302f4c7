"""What stops a build, and what `grader handout diff` says: pure functions on small data."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.checking.catalog import ListedCheck
from grader.checking.course import Course, ModulePoints, read_course
from grader.checking.spec import CheckSpec
from grader.handout.bundle import zip_bytes
from grader.handout.cli import handout
from grader.handout.contract import read_contract
from grader.handout.facts import FILE_NAME, Facts, differences, facts_of, to_json
from grader.handout.messages import MessageError, Messages
from grader.handout.points import PointsError, require_points
from grader.handout.questions import Question

COURSE = Path(__file__).parents[2] / "handouts" / "course.toml"
STUB = (
    '"""Rules."""\n\n\ndef all_gather(piece):\n    """Gathers."""\n\n\ndef gather(piece):\n    """Gathers on one."""\n'
)


def listed(name: str, points: int = 1, *, core: bool = True, bonus: bool = False) -> ListedCheck:
    spec = CheckSpec(f"benchmark.{name}", "benchmark", points, f"{name} holds.", (1, 2), (), core, bonus, False)
    return ListedCheck(spec, print, Path("tests/public/test_benchmark.py"))


def course(full: int, core: int = 2, bonus: int = 0) -> Course:
    whole = read_course(COURSE)
    offer = whole.offer.model_copy(update={"modules": ("benchmark",)})
    modules = {**whole.points.modules, "benchmark": ModulePoints(full=full, core=core, bonus=bonus)}
    return whole.model_copy(update={"offer": offer, "points": whole.points.model_copy(update={"modules": modules})})


CHECKS = [listed("one"), listed("two"), listed("three", core=False)]
BEFORE = [{"name": check.spec.name, "points": check.spec.points} for check in CHECKS]


def test_points_that_sum_to_what_the_course_says_are_taken() -> None:
    require_points(course(3), CHECKS, BEFORE)
    require_points(course(3, bonus=4), [*CHECKS, listed("extra", 4, bonus=True)], [])


def test_a_removed_check_stops_the_build_and_is_named() -> None:
    with pytest.raises(PointsError) as caught:
        require_points(course(3), CHECKS[:2], BEFORE)
    assert str(caught.value).splitlines() == [
        "tests/public/test_benchmark.py: the checks of benchmark sum to 2 points, "
        "and points.modules.benchmark.full in course.toml says 3",
        "since the last build: the check benchmark.three is gone (1 points)",
    ]


def test_a_changed_point_stops_the_build_and_is_named() -> None:
    changed = [listed("one", 5), *CHECKS[1:]]
    with pytest.raises(PointsError) as caught:
        require_points(course(3), changed, BEFORE)
    assert "tests/public/test_benchmark.py::print is worth 5, and was worth 1" in str(caught.value)
    assert "benchmark.core" in str(caught.value)


def facts() -> Facts:
    contracts = {"collectives": read_contract(STUB)}
    specs = [check.spec for check in CHECKS]
    questions = [Question("q1", "benchmark", "Which?", (("a", "this"), ("b", "that")))]
    return json.loads(to_json(facts_of(course(3), contracts, specs, questions)))  # type: ignore[no-any-return]


def test_the_facts_hold_no_answer_and_no_sum_to_hold_to() -> None:
    assert set(facts()) == {"course", "contracts", "checks", "questions"}
    assert "points" not in facts()["course"]


def test_two_handouts_that_are_the_same_have_no_difference() -> None:
    assert differences(facts(), facts()) == []


def test_what_a_student_would_notice() -> None:
    old, new = facts(), copy.deepcopy(facts())
    new["course"]["dates"]["due"] = "2027-05-04T23:59:00-07:00"
    new["checks"][0]["points"] = 2
    del new["checks"][1]
    new["checks"][1]["statement"] = "three holds always."
    new["checks"].append({**old["checks"][0], "name": "benchmark.four"})
    definitions = new["contracts"]["collectives"]["definitions"]
    definitions[0]["docstring"] = "Gathers all."
    definitions[1]["name"] = "collect"
    new["questions"][0]["options"][1][1] = "neither"
    assert differences(old, new) == [
        "dates.due: 2027-05-03T23:59:00-07:00 -> 2027-05-04T23:59:00-07:00",
        "collectives.py: the contract of all_gather has another text",
        "collectives.py: gather is gone",
        "collectives.py: collect is new",
        "check benchmark.one: 1 public point -> 2 public points",
        "check benchmark.two: gone (1 public point)",
        "check benchmark.three: now states: three holds always.",
        "check benchmark.four: new (1 public point)",
        "question q1: another text",
    ]


def test_a_module_that_is_no_longer_offered_is_one_line() -> None:
    new = replace_contracts(facts(), {})
    assert differences(facts(), new) == ["collectives.py: no longer offered"]


def replace_contracts(one: Facts, contracts: dict[str, object]) -> Facts:
    return {**one, "contracts": contracts}


def test_diff_takes_folders_and_zips_and_says_in_one_line_what_is_neither(tmp_path: Path) -> None:
    old, packed = tmp_path / "old", tmp_path / "student.zip"
    old.mkdir()
    (old / FILE_NAME).write_text(to_json(facts()))
    later = facts()
    later["course"]["term"] = "Fall 2027"
    packed.write_bytes(zip_bytes({f"handout/{FILE_NAME}": to_json(later).encode()}))
    run = CliRunner()
    result = run.invoke(handout, ["diff", str(old), str(packed)])
    assert (result.exit_code, result.output) == (0, "term: Spring 2027 -> Fall 2027\n")
    assert run.invoke(handout, ["diff", "--exit-code", str(old), str(packed)]).exit_code == 1
    assert run.invoke(handout, ["diff", "--exit-code", str(old), str(old)]).exit_code == 0
    (tmp_path / "junk").write_text("junk")
    for wrong, said in (
        (tmp_path, "holds no handout.json"),
        (tmp_path / "junk", "is no zip"),
        ("no-such", "no revision"),
    ):
        result = run.invoke(handout, ["diff", str(wrong), str(old)])
        assert result.exit_code == 2
        assert said in " ".join(result.output.split())


ROWS = json.dumps(
    {
        "rows": [
            {"module": "benchmark", "mutant": "shown", "check": "benchmark.one", "line": "rank 0 is late"},
            {"module": "benchmark", "mutant": "hidden", "check": "benchmark.secret", "line": "secret"},
        ]
    }
)


def test_messages_of_public_checks_are_quoted_and_no_others() -> None:
    messages = Messages.read(ROWS, "messages.json", public={"benchmark.one"})
    assert messages.quote("benchmark", "shown") == "rank 0 is late"
    assert messages.quote("index", "shown") == "rank 0 is late"
    with pytest.raises(MessageError, match=r"belongs to benchmark\.secret, which is hidden"):
        messages.quote("benchmark", "hidden")
    with pytest.raises(MessageError, match="no message, or more than one, for the mistake 'shwon'"):
        messages.quote("benchmark", "shwon")


@pytest.mark.parametrize("text", ["{", "[]", '{"rows": [{}]}', "{}"])
def test_a_malformed_table_of_messages_is_named(text: str) -> None:
    with pytest.raises(MessageError, match=r"messages\.json is not what"):
        Messages.read(text, "messages.json", public=set())
