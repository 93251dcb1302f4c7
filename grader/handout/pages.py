"""One Markdown page per module, from the templates, the stub's contract, the checks and the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.checking.spec import MODULES, CheckSpec
from grader.handout.contract import Contract
from grader.handout.questions import Question


@dataclass(frozen=True)
class Course:
    """All that the pages are made of: each module's contract, every check, and the questions."""

    contracts: dict[str, Contract]
    checks: tuple[CheckSpec, ...]
    questions: tuple[Question, ...]


def template_environment(templates: Path) -> Environment:
    """Jinja2 for Markdown: [[ ]] and [% %] leave braces in code and formulas alone; an unknown name fails."""
    environment = Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown, from our own sources
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = _table_cell
    return environment


def render_page(environment: Environment, course: Course, module: str, *, notebook: bool) -> str:
    """A module's page as Markdown. With `notebook`, marker lines stand where the notebook has code cells."""
    checks = [check for check in course.checks if check.module == module]
    return environment.get_template(f"{module}.md.j2").render(
        module=module,
        modules=MODULES,
        notebook=notebook,
        contract=course.contracts[module],
        public=[check for check in checks if not check.hidden],
        hidden=[check for check in checks if check.hidden],
        points=total_points(checks),
        bonus=total_points(checks, bonus=True),
        total=total_points(course.checks),
        questions=course.questions,
    )


def render_index(environment: Environment, course: Course) -> str:
    """The first page: rules for every function, the modules and their points, how to begin."""
    by_module = {module: [check for check in course.checks if check.module == module] for module in MODULES}
    return environment.get_template("index.md.j2").render(
        modules=MODULES,
        points={module: total_points(checks) for module, checks in by_module.items()},
        bonus={module: total_points(checks, bonus=True) for module, checks in by_module.items()},
        total=total_points(course.checks),
        public_total=total_points([check for check in course.checks if not check.hidden]),
    )


def total_points(checks: Sequence[CheckSpec], *, bonus: bool = False) -> int:
    """The points of the checks that are possible in total or, with `bonus`, of those that come on top."""
    return sum(check.points for check in checks if check.bonus == bonus)


def _table_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
