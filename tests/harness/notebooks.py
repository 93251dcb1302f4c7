"""What the tests of notebooks share: the notebook of a module, student's or staff's, with a short page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from grader.handout import tags
from grader.handout.notebook import module_notebook
from grader.handout.pages import template_environment
from grader.handout.stubs import build_stubs, read_sources

ROOT = Path(__file__).parents[2]
PAGE = "# A module\n\nAbout it.\n\n## The contract\n\nWhat it promises.\n\n## What is checked\n\nAll of it.\n"


@cache
def stubs() -> dict[str, str]:
    """The stub of every module by filename; made once, since it compares all with all."""
    return build_stubs(read_sources(ROOT / "reference"))


@cache
def solutions() -> dict[str, str]:
    """The solved text of every module by filename."""
    return {file: tags.solved(text, file) for file, text in read_sources(ROOT / "reference").items()}


def notebook_of(module: str, *, solved: bool = False, page: str = PAGE) -> str:
    """The notebook as text, from the real reference and the real cells."""
    source = (solutions() if solved else stubs())[f"{module}.py"]
    environment = template_environment(ROOT / "handouts" / "templates")
    return module_notebook(environment, module, page, source, {}, solved=solved)
