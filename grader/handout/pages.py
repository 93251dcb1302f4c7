"""One Markdown page per module, from the templates, the stub's contract, the checks, the pictures and the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from grader.checking.course import Course
from grader.checking.spec import CheckSpec
from grader.cluster.svg import Figure
from grader.handout.contract import Contract
from grader.handout.messages import Messages
from grader.handout.questions import Question

TEMPLATES = Path("handouts/templates")  # in a checkout
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Material:
    """All that the pages are made of.

    contracts: of each module that is given. checks: those that are given, with the points that they are worth here.
    figures:   by name. messages: what the harness says of classic mistakes.
    """

    course: Course
    contracts: Mapping[str, Contract]
    checks: Sequence[CheckSpec]
    questions: Sequence[Question]
    figures: Mapping[str, Figure]
    messages: Messages

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that are given, in the lecture's order."""
        return self.course.selection.modules

    def left_out(self, module: str) -> list[str]:
        """The module's names that no check of this tier needs; [] in the full tier."""
        if self.course.selection.tier == "full":
            return []
        needed = {name.partition(".")[0] for each in self.checks if each.module == module for name in each.needs}
        definitions = self.contracts[module].definitions
        return [each.name for each in definitions if each.kind != "value" and each.name not in needed]


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


def render_page(environment: Environment, material: Material, module: str) -> str:
    """A module's page as Markdown."""
    checks = [check for check in material.checks if check.module == module]
    return environment.get_template(f"{module}.md.j2").render(
        **_shared(material, module),
        module=module,
        contract=material.contracts[module],
        left_out=material.left_out(module),
        public=[check for check in checks if not check.hidden],
        hidden=[check for check in checks if check.hidden],
        points=total_points(checks),
        bonus=total_points(checks, bonus=True),
        questions=material.questions,
    )


def render_index(environment: Environment, material: Material) -> str:
    """The first page: what it is, dates, rules for every function, the modules and their points, how to begin."""
    by_module = {module: [each for each in material.checks if each.module == module] for module in material.modules}
    return environment.get_template("index.md.j2").render(
        **_shared(material, "index"),
        points={module: total_points(checks) for module, checks in by_module.items()},
        bonus={module: total_points(checks, bonus=True) for module, checks in by_module.items()},
    )


def _shared(material: Material, page: str) -> dict[str, Any]:
    return {
        "modules": material.modules,
        "course": _facts(material.course),
        "total": total_points(material.checks),
        "public_total": total_points([check for check in material.checks if not check.hidden]),
        "figure": lambda name: _picture(material.figures, name, page),
        "message": lambda mutant: material.messages.quote(page, mutant),
    }


def _facts(course: Course) -> dict[str, Any]:
    """The course as the pages name its facts; dates in words, since the offset says where they hold."""
    return {
        "title": course.title,
        "term": course.term,
        "released": _date(course.dates.released),
        "due": _date(course.dates.due),
        "late_policy": course.late_policy,
        "contact_name": course.contact.name,
        "contact_email": course.contact.email,
        "scale": course.points.scale,
        "tier": course.offer.tier,
        "world_sizes": course.selection.world_sizes,
        "modules": course.selection.modules,
    }


def _date(moment: datetime) -> str:
    """ "Monday 3 May 2027, 23:59 (UTC-07:00)", in English whatever the locale is."""
    offset = moment.isoformat()[-6:]
    day = f"{DAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]} {moment.year}"
    return f"{day}, {moment:%H:%M} (UTC{offset})"


def _picture(figures: Mapping[str, Figure], name: str, page: str) -> str:
    """The picture as Markdown, its caption in italics below it. Raises ValueError for a name that is not drawn."""
    if name not in figures:
        raise ValueError(f"{page}: no figure named {name!r}; there are {', '.join(sorted(figures))}")
    figure = figures[name]
    alt = " ".join(figure.alt.split()).replace("[", "(").replace("]", ")")
    return f"![{alt}](figures/{name}.svg)\n*{figure.caption}*"


def total_points(checks: Sequence[CheckSpec], *, bonus: bool = False) -> int:
    """The points of the checks that are possible in total or, with `bonus`, of those that come on top."""
    return sum(check.points for check in checks if check.bonus == bonus)


def _table_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
