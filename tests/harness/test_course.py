"""course.toml: every fault is named by file and key; what is selected is what pytest and the pages get."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.checking.course import CourseError, merged, read_course
from grader.checking.selection import INI, Selection, from_ini
from grader.checking.spec import MODULES, CheckSpec

COURSE = Path(__file__).parents[2] / "handouts" / "course.toml"


def spec(**fields: object) -> CheckSpec:
    known: dict[str, object] = {
        "name": "collectives.broadcast",
        "module": "collectives",
        "points": 2,
        "statement": "It holds.",
        "worlds": (1, 2, 4),
        "needs": (),
        "core": True,
        "bonus": False,
        "hidden": False,
    }
    return CheckSpec(**{**known, **fields})  # type: ignore[arg-type]


def test_the_course_of_the_repository_gives_everything() -> None:
    assert read_course(COURSE).selection == Selection()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('tier = "full"', 'tier = "ful"', "offer.tier: "),
        ('term = "Spring 2027"', 'trem = "Spring 2027"', "term: this key is missing"),
        ('term = "Spring 2027"', 'term = "Spring 2027"\ntrem = 1', "trem: there is no such key"),
        ("staff@course.example", "staff", "contact.email: "),
        ("due = 2027-05-03T23:59:00-07:00", "due = 2027-04-03T23:59:00-07:00", "dates: due lies before released"),
        ("due = 2027-05-03T23:59:00-07:00", "due = 2027-05-03T23:59:00", "dates: write dates with an offset"),
        ("due = 2027-05-03T23:59:00-07:00", "due = 2027-05-03", "dates.due: "),
        ("world_sizes = [1, 2, 3, 4, 5]", "world_sizes = [1, 9]", "offer.world_sizes.1: "),
        ('"accounting"]', '"acounting"]', "offer.modules.5: "),
        ("scale = 1", "scale = 0.5", "points.scale: "),
        ("benchmark = { full", "bench = { full", "points.modules.bench"),
    ],
)
def test_a_fault_names_the_file_and_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = COURSE.read_text()
    assert old in text
    path = tmp_path / "course.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(CourseError) as caught:
        read_course(path)
    assert any(line.startswith(f"{path}: {message}") for line in str(caught.value).splitlines()), caught.value


def test_all_faults_are_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "course.toml"
    path.write_text(COURSE.read_text().replace('tier = "full"', 'tier = "ful"').replace("scale = 1", "scale = 0"))
    with pytest.raises(CourseError) as caught:
        read_course(path)
    assert len(str(caught.value).splitlines()) == 2


def test_a_file_that_is_missing_or_no_toml_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"course\.toml: No such file"):
        read_course(tmp_path / "course.toml")
    (tmp_path / "course.toml").write_text("title = ")
    with pytest.raises(CourseError, match=r"course\.toml: Invalid value"):
        read_course(tmp_path / "course.toml")


def test_a_term_needs_what_differs_alone(tmp_path: Path) -> None:
    term = tmp_path / "fall.toml"
    term.write_text('term = "Fall 2027"\n[dates]\ndue = 2027-11-03T23:59:00-08:00\n[offer]\ntier = "core"\n')
    course = read_course(COURSE, term)
    assert (course.term, course.dates.due.year, course.selection.tier) == ("Fall 2027", 2027, "core")
    assert course.title == read_course(COURSE).title
    term.write_text("[offer]\nteir = 1\n")
    with pytest.raises(CourseError, match=r"with .*fall\.toml: offer\.teir: there is no such key"):
        read_course(COURSE, term)


def test_tables_are_merged_and_lists_replaced() -> None:
    assert merged({"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 2}


def test_what_is_selected() -> None:
    core = Selection(modules=("collectives",), tier="core", world_sizes=(1, 2), scale=3)
    assert core.takes(spec())
    assert not core.takes(spec(core=False))
    assert not core.takes(spec(module="benchmark"))
    applied = core.applied(spec())
    assert (applied.worlds, applied.points) == ((1, 2), 6)
    assert core.applied(spec(worlds=())).worlds == ()
    assert core.applied(spec(worlds=(1,))).worlds == (1,)
    with pytest.raises(ValueError, match=r"world_sizes: collectives\.broadcast runs in worlds of 3, 5"):
        core.applied(spec(worlds=(3, 5)))


def test_pytest_is_told_the_same() -> None:
    for selection in (Selection(), Selection(MODULES[1:3], "core", (2, 4), 5)):
        assert from_ini(selection.to_ini()) == selection
    assert from_ini(INI) == Selection()


@pytest.mark.parametrize(
    ("name", "value"),
    [("grader_modules", "colectives"), ("grader_tier", "Core"), ("grader_worlds", "1 6"), ("grader_scale", "1.5")],
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"{name}: "):
        from_ini({**INI, name: value})
