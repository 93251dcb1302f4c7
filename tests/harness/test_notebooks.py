"""Notebooks as text: pictures and links of the page, the cells in their order, the solution without its tags."""

from __future__ import annotations

import ast
import base64
import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import nbformat
import pytest

from grader.checking.spec import MODULES
from grader.handout import tags
from grader.handout.notebook import after_contract, build_notebook, readable_text
from tests.harness.notebooks import PAGE, ROOT, notebook_of, stubs

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="8">4 ranks</text></svg>\n'


def sources(text: str, kind: str) -> list[str]:
    return [cell.source for cell in nbformat.reads(text, as_version=4).cells if cell.cell_type == kind]


class Images(HTMLParser):
    """The attributes of every <img> that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.append(dict(attrs))


def test_a_picture_of_the_page_lies_in_its_cell():
    page = 'Look:\n\n![rank 0 holds \\[1, 2\\] & "all"](figures/ring-steps.svg)\n*The ring.*\n'
    (text,) = sources(build_notebook("m", page, {}, {"ring-steps": SVG}), "markdown")
    (image,) = Images(text).found
    assert image["alt"] == 'rank 0 holds [1, 2] & "all"'
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/svg+xml;base64"
    picture = ElementTree.fromstring(base64.b64decode(data))
    ground, words = list(picture)
    assert ground.attrib == {"width": "100%", "height": "100%", "fill": "#fff"}
    assert words.text == "4 ranks"
    assert text.startswith("Look:\n\n<img")
    assert text.endswith(">\n*The ring.*")


def test_an_unknown_picture_stops_the_build():
    with pytest.raises(ValueError, match="m: no figure named 'ring-step'"):
        build_notebook("m", "![a](figures/ring-step.svg)\n", {}, {"ring-steps": SVG})


def test_links_between_pages_lead_to_the_handout_beside_the_notebooks():
    page = "[one](index.md#rules) [two](benchmark.md) [three](https://example.org/a.md)\n```\n[four](index.md)\n```\n"
    (text,) = sources(build_notebook("m", page, {}), "markdown")
    assert "[one](../handout/index.html#rules) [two](../handout/benchmark.html)" in text
    assert "[three](https://example.org/a.md)" in text
    assert "\n[four](index.md)\n" in text, "in a fence it is code"


def test_pictures_in_a_fence_are_code():
    page = "```\n![a](figures/none.svg)\n```\n"
    assert sources(build_notebook("m", page, {}), "markdown") == [page.strip("\n")]


def test_the_cells_stand_where_the_contract_ends():
    page = "# T\n\n## The contract\n\n```\n## What is checked\n```\n\n## Questions\n\nWhy?\n"
    whole = after_contract("m", page, "## Write it here\n\n<!-- code: run -->\n")
    heads = [text.split("\n")[0] for text in sources(build_notebook("m", whole, {"run": "1"}), "markdown")]
    assert heads == ["# T", "## The contract", "## Write it here", "## Questions"]
    with pytest.raises(ValueError, match="m: the page has no section '## The contract'"):
        after_contract("m", "# T\n\n## Contract\n", "x")


@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("module", MODULES)
def test_every_notebook_is_valid_unexecuted_and_the_same_bytes_again(module: str, solved: bool):
    text = notebook_of(module, solved=solved)
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert text == notebook_of(module, solved=solved)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and cell.outputs == [] for cell in code)
    folder, written, checks, *timeline = [cell.source for cell in code]
    ast.parse(folder)
    place = "out/solved" if solved else "assignment"
    assert written.partition("\n")[0] == f"%%writefile {place}/{module}.py"
    assert f"-k test_{module} --submission {place}" in checks
    assert [f'"draw", "{module}"' in source for source in timeline] == ([] if module == "accounting" else [True])
    for source in timeline:
        ast.parse(source)


@pytest.mark.parametrize("module", MODULES)
def test_the_cell_holds_the_module_byte_for_byte(module: str):
    stub = stubs()[f"{module}.py"]
    (written,) = [text for text in sources(notebook_of(module), "code") if text.startswith("%%writefile")]
    assert written.partition("\n")[2] + "\n" == stub


@pytest.mark.parametrize("module", MODULES)
def test_students_see_no_solution_and_staff_see_all_of_it(module: str):
    tagged = (ROOT / "reference" / f"{module}.py").read_text()
    hidden = [line for block in tags.parse(tagged, module) for line in block.solution]
    staff = readable_text(notebook_of(module, solved=True)).split("\n")
    assert [line for line in hidden if line.strip() and line not in staff] == []
    assert "SOLUTION" not in "\n".join(staff)
    assert "# STUB" not in "\n".join(staff)
    student = readable_text(notebook_of(module))
    only_staff = [line for line in hidden if len(line) > 40 and line not in tags.outside(tagged, module)]
    assert only_staff, "the comparison below compares something"
    assert [line for line in only_staff if line in student] == []


def test_what_a_leak_check_reads_has_no_escapes():
    text = build_notebook("m", 'a "quoted" word\n\n<!-- code: run -->\n', {"run": 'print("x")'})
    assert 'a "quoted" word' in readable_text(text)
    assert 'print("x")' in readable_text(text)
    assert 'print("x")' not in text
    assert json.loads(text)["nbformat"] == 4


def test_text_of_the_page_is_all_there():
    text = readable_text(notebook_of("benchmark"))
    for line in filter(None, PAGE.split("\n")):
        assert line in text


# The solution without its tags

TAGGED = '''\
"""A module."""

# BEGIN SOLUTION
import math

# END SOLUTION

def area(radius: float) -> float:
    """Of a circle."""
    # BEGIN SOLUTION
    # STUB: raise NotImplementedError("multiply")
    square = radius * radius

    return math.pi * square
    # END SOLUTION


# BEGIN SOLUTION


def half(x: float) -> float:
    return x / 2


# END SOLUTION
'''

SOLVED = '''\
"""A module."""

import math

def area(radius: float) -> float:
    """Of a circle."""
    square = radius * radius

    return math.pi * square


def half(x: float) -> float:
    return x / 2
'''


def test_the_solution_is_the_source_without_its_tags():
    assert tags.solved(TAGGED, "m.py") == SOLVED


def test_source_without_tags_stays():
    assert tags.solved(SOLVED, "m.py") == SOLVED


def test_a_wrong_tag_is_an_error_there_too():
    with pytest.raises(tags.SourceError, match=r"^m\.py:3"):
        tags.solved(TAGGED.replace("# BEGIN SOLUTION", "# BEGIN SOLUTIONS", 1), "m.py")


@pytest.mark.parametrize("module", MODULES)
def test_every_solution_is_the_reference_for_python(module: str):
    tagged = (ROOT / "reference" / f"{module}.py").read_text()
    assert ast.dump(ast.parse(tags.solved(tagged, module))) == ast.dump(ast.parse(tagged))
