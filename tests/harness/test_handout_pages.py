"""Pages and notebooks from a small course with the real templates: nothing hidden is in them, nothing is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jinja2
import nbformat
import pytest

from grader.checking.spec import MODULES, CheckSpec
from grader.handout import build, pages
from grader.handout.build import HandoutError
from grader.handout.notebook import build_notebook, split_page
from grader.handout.questions import QuestionError, read_questions

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

CHOICES = """\
[second_letter]
question = "Which letter is the *second* of the alphabet?"
options = { a = "the letter A", b = "the letter B" }
answer = "b"
why = "Because the answer is explained in this sentence."
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
    (templates / "choices.toml").write_text(CHOICES)
    return tmp_path


def test_each_module_has_a_page_and_a_notebook(root: Path):
    files = build.plan_pages(root, CHECKS)
    assert set(files) == {"index.md"} | {f"{module}.{kind}" for module in MODULES for kind in ("md", "ipynb")}


def test_a_page_shows_contract_and_checks(root: Path):
    page = build.plan_pages(root, CHECKS)["benchmark.md"]
    assert "    def area(self) -> float:" in page
    assert "Example: radius 2.0 gives 12.566." in page
    assert "LIMITS: dict[str, float]" in page
    assert "{{ braces }}" in page
    assert "| `benchmark.shown` | 3 | 1, 2, 4 | shown holds \\| always. |" in page
    assert "| `benchmark.kept_back` | 3 | 1, 2, 4 | kept_back holds \\| always. |" in page
    assert page.index("benchmark.shown") < page.index("run when your work is graded") < page.index("kept_back")
    assert "worth 6 of the 36 points" in page
    assert "collectives.shown" not in page


def test_the_solution_is_in_no_file(root: Path):
    for text in build.plan_pages(root, CHECKS).values():
        assert "3.1415926536" not in text
        assert "SOLUTION" not in text
        assert "STUB" not in text


def test_questions_are_shown_without_answers(root: Path):
    files = build.plan_pages(root, CHECKS)
    page = files["accounting.md"]
    assert "Which letter is the *second* of the alphabet?" in page
    assert "- (a) the letter A" in page
    assert "- (b) the letter B" in page
    assert not [name for name, text in files.items() if "explained in this sentence" in text]
    other = (root / "handouts" / "templates" / "choices.toml").read_text().replace('answer = "b"', 'answer = "a"')
    (root / "handouts" / "templates" / "choices.toml").write_text(other)
    assert build.plan_pages(root, CHECKS) == files


def test_points_follow_the_checks(root: Path):
    dearer = [*CHECKS[:2], spec("benchmark", "shown", points=40), *CHECKS[3:]]
    files = build.plan_pages(root, dearer)
    assert "worth 43 of the 73 points" in files["benchmark.md"]
    assert "| `assignment/benchmark.py` | 43 |" in files["index.md"]
    bonus = [*CHECKS, spec("collectives", "extra", points=2, bonus=True)]
    assert "| `assignment/collectives.py` | 6 and 2 bonus |" in build.plan_pages(root, bonus)["index.md"]
    assert "6 of the 36 points, and 2 bonus points on top." in build.plan_pages(root, bonus)["collectives.md"]
    assert "2 (bonus)" in build.plan_pages(root, bonus)["collectives.md"]


def test_a_second_build_changes_no_byte(root: Path):
    assert build.plan_pages(root, CHECKS) == build.plan_pages(root, CHECKS)


def test_writing_and_comparing(root: Path):
    files, folder = build.plan_pages(root, CHECKS), root / "handouts" / "built"
    assert build.differing(files, folder) == sorted(files)
    assert build.write(files, folder) == sorted(files)
    assert build.write(files, folder) == []
    (folder / "index.md").write_text("by hand")
    (folder / "benchmark.ipynb").unlink()
    assert build.differing(files, folder) == ["benchmark.ipynb", "index.md"]


def test_notebooks_are_valid_and_unexecuted(root: Path):
    for module in MODULES:
        text = build.plan_pages(root, CHECKS)[f"{module}.ipynb"]
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(cell.execution_count is None and cell.outputs == [] for cell in code)
        assert [cell.source.split("\n")[0] for cell in code][1] == f"%%writefile {module}.py"
        assert 'raise NotImplementedError("multiply the square' in code[1].source
        assert f"-k {module} --submission" in code[2].source
        compile(code[0].source, module, "exec")
        assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
        assert text.endswith("}\n")


def test_the_stub_cell_holds_the_stub_byte_for_byte(root: Path):
    stub = build.plan_stubs(root)["benchmark.py"]
    notebook = json.loads(build.plan_pages(root, CHECKS)["benchmark.ipynb"])
    cells = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert f"%%writefile benchmark.py\n{stub.rstrip()}" in cells


def test_a_check_that_needs_an_unknown_name_stops_the_build(root: Path):
    with pytest.raises(HandoutError, match=r"benchmark\.extra needs Circel, which benchmark\.py does not define"):
        build.plan_pages(root, [*CHECKS, spec("benchmark", "extra", needs=("Circel",))])
    build.plan_pages(root, [*CHECKS, spec("benchmark", "extra", needs=("Circle.area", "LIMITS"))])


def test_a_template_that_shows_a_solution_line_stops_the_build(root: Path):
    path = root / "handouts" / "templates" / "benchmark.md.j2"
    hint = "Hint: `return 3.1415926536*self.radius * self.radius`\n[% endblock %]"
    path.write_text(path.read_text().replace("[% endblock %]", hint, 2))
    with pytest.raises(HandoutError, match=r"^benchmark\.md shows accounting\.py:19, a line of the solution"):
        build.plan_pages(root, CHECKS)


def test_an_unknown_name_in_a_template_stops_the_build(root: Path):
    path = root / "handouts" / "templates" / "benchmark.md.j2"
    path.write_text(path.read_text().replace("[% block lecture %]", "[% block lecture %][[ no_such_name ]]"))
    with pytest.raises(jinja2.UndefinedError, match="no_such_name"):
        build.plan_pages(root, CHECKS)


def test_formulas_and_braces_pass_through_the_templates(tmp_path: Path):
    (tmp_path / "m.md.j2").write_text("$$\\frac{{a}}{b}$$ {# no comment #} {% no block %} [[ 1 + 1 ]] <b>\n")
    environment = pages.template_environment(tmp_path)
    rendered = environment.get_template("m.md.j2").render()
    assert rendered == "$$\\frac{{a}}{b}$$ {# no comment #} {% no block %} 2 <b>\n"


def test_a_page_is_split_at_headings_and_markers_but_not_in_fences():
    page = "# T\n\n## A\n```\n## no heading\n<!-- code: no -->\n```\n<!-- code: run -->\ntext\n## B\n"
    assert list(split_page(page)) == [
        ("markdown", "# T"),
        ("markdown", "## A\n```\n## no heading\n<!-- code: no -->\n```"),
        ("code", "run"),
        ("markdown", "text"),
        ("markdown", "## B"),
    ]


def test_markers_and_code_cells_must_agree():
    with pytest.raises(ValueError, match="no code cell named 'run'"):
        build_notebook("m", "<!-- code: run -->\n", {})
    with pytest.raises(ValueError, match="no marker for the code cell 'run'"):
        build_notebook("m", "text\n", {"run": "1"})


def test_ids_follow_place_and_source():
    one, same, other = (
        [cell["id"] for cell in json.loads(build_notebook("m", text, {}))["cells"]]
        for text in ("## A\n## B\n", "## A\n## B\n", "## A\n## C\n")
    )
    assert one == same
    assert one[0] == other[0]
    assert one[1] != other[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('answer = "b"', 'answer = "c"', r"choices\.toml: \[second_letter\] answer is 'c'"),
        ('why = "', 'wy = "', r"choices\.toml: \[second_letter\] needs exactly the fields"),
        ('options = { a = "the letter A", b', "options = { b", r"\[second_letter\] options"),
        ("[second_letter]", "[second_letter", r"choices\.toml: .*line 1"),
    ],
)
def test_malformed_questions_name_file_and_question(old: str, new: str, message: str):
    with pytest.raises(QuestionError, match=message):
        read_questions(CHOICES.replace(old, new), "choices.toml")
