"""The section "not written yet" at the end of a run: every function that is to be written, and where to start."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.checking.folding import WIDTH
from grader.checking.unwritten import Unwritten
from grader.checking.verdict import Verdict
from grader.world.failure import printable

LINE = 5  # columns for a line number
Row = tuple[dict[str, Any], Verdict]


@dataclass(frozen=True)
class Todo:
    """What a student's own folder still asks for.

    functions: by module, those that are not written yet, in order; empty where the source is not to be parsed.
    folder:    as messages show it.
    again:     words that every command needs, such as --submission other.
    """

    functions: Mapping[str, Sequence[Unwritten]] = field(default_factory=dict)
    folder: str = "assignment"
    again: Sequence[str] = ()

    def place(self, module: str, name: str) -> str:
        """ "assignment/collectives.py:75" of a function; without the line where it is not known."""
        line = next((each.line for each in self.functions.get(module, ()) if each.name == name), 0)
        return f"{self.folder}/{module}.py" + (f":{line}" if line else "")


def section(rows: Sequence[Row], todo: Todo) -> list[str]:
    """The lines, of at most 80 columns; none where all that these checks call is written. Pure.

    rows: the checks that ran, in the order of the table. A function is named if one of them calls for it.
    """
    unwritten = [row for row in rows if row[1].unwritten]
    if not unwritten:
        return []
    lines: list[str] = []
    for module in dict.fromkeys(report["module"] for report, _ in unwritten):
        own = [row for row in unwritten if row[0]["module"] == module]
        lines += [f"{todo.folder}/{module}.py", *_functions(own, todo.functions.get(module, ())), ""]
    report, first = unwritten[0]
    command = ["pytest", "-k", first.check.partition(".")[2], *todo.again]
    lines.append(f"start here: {todo.place(report['module'], first.unwritten)}, {first.unwritten}")
    lines.append(f"then run:   {shlex.join(command)}")
    return lines


def _functions(rows: Iterable[Row], functions: Sequence[Unwritten]) -> list[str]:
    """A line for each function that a check of one module calls for: its line, its name, what to do."""
    raised: dict[str, None] = {}
    asked: set[str] = set()  # functions and classes
    for report, verdict in rows:
        raised[verdict.unwritten] = None
        asked |= {verdict.unwritten.partition(".")[0], *report["needs"]}
    listed = [each for each in functions if each.name.partition(".")[0] in asked]
    lines = [f"{each.line:>{LINE}}: {_told(each.name, each.sentence)}" for each in listed]
    names = {each.name for each in listed}
    return lines + [" " * (LINE + 2) + _told(name, "") for name in raised if name not in names]


def _told(name: str, sentence: str) -> str:
    text = f"{name}: {sentence}" if sentence else name
    return textwrap.shorten(printable(text, 4 * WIDTH), WIDTH - LINE - 2, placeholder=" …")
