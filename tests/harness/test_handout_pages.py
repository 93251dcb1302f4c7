"""Pages and notebooks from a small course with the real templates: nothing hidden is in them, nothing is missing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import jinja2
import pytest

from grader.checking.catalog import ListedCheck
from grader.checking.course import read_course
from grader.checking.spec import MODULES, CheckSpec
from grader.cluster.svg import Figure, Picture
from grader.handout import build, compare, leaks, pages, publish
from grader.handout.build import HandoutError
from grader.handout.messages import Messages
from grader.handout.questions import QuestionError, read_answers
from grader.handout.stubs import read_sources

ROOT = Path(__file__).parents[2]

SOURCE = '''\
"""Area of circles: π · r², and no {{ braces }} are lost."""

from dataclasses import dataclass


@dataclass
class Circle:
    """A circle."""

    radius: float

    def area(self) -> float:
        """Its area.

        Example: radius 2.0 gives 12.566.
        """
        # BEGIN SOLUTION
        # STUB: raise NotImplementedError("multiply the square of the radius by pi")
        return 3.1415926536 * self.radius * self.radius
        # END SOLUTION


LIMITS: dict[str, float] = {}
'''

QUESTIONS = """\
[choices.second_letter]
module = "accounting"
question = "Which letter is the *second* of the alphabet?"
options = { a = "the letter A", b = "the letter B" }
answer = "b"
why = "Because the answer is explained in this sentence."

[open.third_letter]
module = "benchmark"
question = "Why is there a third letter?"
answer = "Staff alone read this one."
"""


def spec(module: str, name: str, **fields: object) -> CheckSpec:
    defaults: dict[str, object] = {
        "points": 3,
        "statement": f"{name} holds | always.",
        "worlds": (1, 2, 4),
        "needs": ("Circle",),
        "core": True,
        "bonus": False,
        "hidden": False,
    }
    return CheckSpec(name=f"{module}.{name}", module=module, **{**defaults, **fields})  # type: ignore[arg-type]


CHECKS = [check for module in MODULES for check in (spec(module, "shown"), spec(module, "kept_back", hidden=True))]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with six small modules, one question and the real templates."""
    (tmp_path / "reference").mkdir()
    for module in MODULES:
        (tmp_path / "reference" / f"{module}.py").write_text(SOURCE)
    templates = tmp_path / "handouts" / "templates"
    shutil.copytree(ROOT / "handouts" / "templates", templates)
    (templates / "questions.toml").write_text(QUESTIONS)
    shutil.copy(ROOT / "handouts" / "messages.json", tmp_path / "handouts")
    return tmp_path


class AnyFigure(dict[str, Figure]):
    """A picture for every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Figure:
        return Figure(name, "A caption.", f"The numbers of {name}.", Picture(10, 10, title=name, description="d"))


def pages_of(root: Path, checks: list[CheckSpec], term: Mapping[str, object] | None = None) -> dict[str, str]:
    """The Markdown pages of a course with these checks, and with all public checks that messages are quoted of."""
    offer = read_course(ROOT / "handouts" / "course.toml")
    course = offer.model_copy(update={"offer": offer.offer.model_copy(update=dict(term or {}))})
    listed = [ListedCheck(each, print, Path("tests/public/test_x.py")) for each in checks]
    sources = read_sources(root / "reference")
    answers = read_answers((root / build.QUESTIONS).read_text(), "questions.toml")
    asked = [answer.question for answer in answers]
    material = build.gather_material(root, course, listed, AnyFigure(), sources, asked)
    material = replace(material, messages=AnyMessage({}, ()))
    return build.plan_texts(pages.template_environment(root / "handouts" / "templates"), material)


class AnyMessage(Messages):
    """A line for every mistake."""

    def quote(self, module: str, mutant: str) -> str:  # noqa: ARG002  the page, which has none of its own
        return f"the first line for {mutant}"


def test_each_module_has_a_page(root: Path):
    assert set(pages_of(root, CHECKS)) == {"index", *MODULES}
    assert set(pages_of(root, CHECKS, {"modules": ("benchmark",)})) == {"index", "benchmark"}


def test_a_page_shows_contract_and_checks(root: Path):
    page = pages_of(root, CHECKS)["benchmark"]
    assert "    def area(self) -> float:" in page
    assert "Example: radius 2.0 gives 12.566." in page
    assert "LIMITS: dict[str, float]" in page
    assert "{{ braces }}" in page
    assert "| `benchmark.shown` | 3 | 1, 2, 4 | shown holds \\| always. |" in page
    assert "| `benchmark.kept_back` | 3 | 1, 2, 4 | kept_back holds \\| always. |" in page
    assert page.index("benchmark.shown") < page.index("run when your work is graded") < page.index("kept_back")
    assert "worth 6 of the 36 points" in page
    assert "collectives.shown" not in page


def test_the_solution_is_in_no_page(root: Path):
    for text in pages_of(root, CHECKS).values():
        assert "3.1415926536" not in text
        assert "SOLUTION" not in text
        assert "STUB" not in text


def test_questions_are_shown_without_answers(root: Path):
    files = pages_of(root, CHECKS)
    assert "Which letter is the *second* of the alphabet?" in files["accounting"]
    assert "- (a) the letter A" in files["accounting"]
    assert "- (b) the letter B" in files["accounting"]
    assert "Why is there a third letter?" in files["benchmark"]
    shown = "".join(files.values())
    assert "explained in this sentence" not in shown
    assert "Staff alone read this" not in shown
    path = root / "handouts" / "templates" / "questions.toml"
    path.write_text(path.read_text().replace('answer = "b"', 'answer = "a"'))
    assert pages_of(root, CHECKS) == files


def test_points_follow_the_checks(root: Path):
    dearer = [*CHECKS[:2], spec("benchmark", "shown", points=40), *CHECKS[3:]]
    files = pages_of(root, dearer)
    assert "worth 43 of the 73 points" in files["benchmark"]
    bonus = [*CHECKS, spec("collectives", "extra", points=2, bonus=True)]
    assert "6 of the 36 points, and 2 bonus points on top." in pages_of(root, bonus)["collectives"]
    assert "2 (bonus)" in pages_of(root, bonus)["collectives"]


def test_the_core_tier_leaves_checks_out(root: Path):
    checks = [*CHECKS, spec("benchmark", "far", core=False)]
    assert "benchmark.far" in pages_of(root, checks)["benchmark"]
    assert "benchmark.far" not in pages_of(root, checks, {"tier": "core"})["benchmark"]


def test_a_second_build_changes_no_byte(root: Path):
    assert pages_of(root, CHECKS) == pages_of(root, CHECKS)


def test_a_check_that_needs_an_unknown_name_stops_the_build(root: Path):
    with pytest.raises(HandoutError, match=r"benchmark\.extra needs Circel, which benchmark\.py does not define"):
        pages_of(root, [*CHECKS, spec("benchmark", "extra", needs=("Circel",))])
    pages_of(root, [*CHECKS, spec("benchmark", "extra", needs=("Circle.area", "LIMITS"))])


def test_an_unknown_name_in_a_template_stops_the_build(root: Path):
    path = root / "handouts" / "templates" / "benchmark.md.j2"
    path.write_text(path.read_text().replace("[% block lecture %]", "[% block lecture %][[ no_such_name ]]"))
    with pytest.raises(jinja2.UndefinedError, match="no_such_name"):
        pages_of(root, CHECKS)


def test_writing_comparing_and_what_an_earlier_build_left(tmp_path: Path):
    files: dict[str, str | bytes] = {"a.md": "text", "figures/b.svg": "<svg/>", "c.zip": b"x"}
    assert compare.differing(files, tmp_path) == ["a.md", "figures/b.svg"], "a zip need not be there"
    assert publish.write(files, tmp_path) == ["a.md", "c.zip", "figures/b.svg"]
    assert publish.write(files, tmp_path) == []
    (tmp_path / "a.md").write_text("by hand")
    (tmp_path / "figures" / "old.svg").write_text("")
    assert compare.differing(files, tmp_path) == ["a.md"]
    assert compare.strays(files, tmp_path) == ["figures/old.svg"]
    assert publish.remove_strays(files, tmp_path) == ["figures/old.svg"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("page.html", "<pre><span class=k>return</span> <b>3.14</b> * self.radius &#42; self.radius + 1</pre>"),
        ("page.md", "`return 3.14*self.radius * self.radius +1`"),
        ("book.ipynb", '{"cells": [{"source": ["x\\n", "return 3.14 * self.radius * self.radius + 1"]}]}'),
        ("module.py", b"    return 3.14 * self.radius * self.radius + 1\n"),
    ],
)
def test_a_line_of_a_solution_is_found_in_every_form(name: str, content: str | bytes):
    source = SOURCE.replace("3.1415926536 * self.radius * self.radius", "3.14 * self.radius * self.radius + 1")
    hidden = leaks.hidden_lines({"circle.py": source})
    (found,) = leaks.find_leaks(leaks.text_of(name, content), hidden)
    assert (found.filename, found.line) == ("circle.py", 19)


def test_in_the_harness_a_row_of_lines_is_a_solution_and_a_single_line_is_none():
    block = ["first = compute(self.radius, 1)", "second = compute(first, 2, 3)", "return combine(first, second, 4)"]
    code = "".join(f"        {line}\n" for line in block)
    source = SOURCE.replace("        return 3.1415926536 * self.radius * self.radius\n", code)
    passages = leaks.hidden_passages({"circle.py": source})
    assert leaks.find_leaks(block[0] + "\n" + block[2], passages) == []
    assert [leak.line for leak in leaks.find_leaks("\n\n".join(block), passages)] == [19]
    assert leaks.hidden_passages({"circle.py": source}, given=["\n".join(block)]) == []


def test_formulas_and_braces_pass_through_the_templates(tmp_path: Path):
    (tmp_path / "m.md.j2").write_text("$$\\frac{{a}}{b}$$ {# no comment #} {% no block %} [[ 1 + 1 ]] <b>\n")
    environment = pages.template_environment(tmp_path)
    rendered = environment.get_template("m.md.j2").render()
    assert rendered == "$$\\frac{{a}}{b}$$ {# no comment #} {% no block %} 2 <b>\n"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('answer = "b"', 'answer = "c"', r"questions\.toml: \[choices\.second_letter\] answer is 'c'"),
        ('why = "', 'wy = "', r"questions\.toml: \[choices\.second_letter\] needs exactly the fields"),
        ('options = { a = "the letter A", b', "options = { b", r"\[choices\.second_letter\] options"),
        ("[choices.second_letter]", "[second_letter", r"questions\.toml: .*line 1"),
    ],
)
def test_malformed_questions_name_file_and_question(old: str, new: str, message: str):
    with pytest.raises(QuestionError, match=message):
        read_answers(QUESTIONS.replace(old, new), "questions.toml")


def test_answers_are_read_with_their_questions():
    first, second = read_answers(QUESTIONS, "questions.toml")
    assert (first.letter, first.question.graded) == ("b", True)
    assert (second.letter, second.question.graded, second.text) == ("", False, "Staff alone read this one.")
    with pytest.raises(QuestionError, match=r"\[closed\] is neither"):
        read_answers("[closed.x]\n", "questions.toml")
