"""The table at the end of a batch: a row per submission."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.batch.gradebook import Book
from grader.checking.spec import CheckSpec
from grader.checking.verdict import Status
from grader.report.escape import one_line
from grader.report.scores import COLUMNS, Tally, score, undecided

HEADINGS = {
    "collectives": "coll.",
    "benchmark": "bench.",
    "data_parallel": "data",
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipe.",
}
COLORS = {Status.PASS: "green", Status.INFRA: "bold magenta"}
OPEN = "?"  # no score yet: the grader failed on a check


def table_text(book: Book, *, width: int, color: bool) -> str:
    """The table in `width` columns. Without color it is plain text, for a pipe or a file; names wrap, none is cut."""
    points = {graded.name: score(book.checks, graded.verdicts) for graded in book.submissions}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold" if color else "")
    table.add_column(Text("submission\n"), overflow="fold")
    for module in COLUMNS:
        own_checks = [spec for spec in book.checks if spec.module == module and not spec.bonus]
        table.add_column(_heading(HEADINGS[module], own_checks), justify="right", no_wrap=True)
    table.add_column(_heading("bonus", [spec for spec in book.checks if spec.bonus]), justify="right", no_wrap=True)
    regular = [spec for spec in book.checks if not spec.bonus]
    table.add_column(_heading("total", regular), justify="right", no_wrap=True)
    table.add_column(Text("worst\n"), no_wrap=True)
    for name, own in points.items():
        tallies = [*(own.modules[module] for module in COLUMNS), own.bonus]
        table.add_row(
            Text(one_line(name)),
            *(Text(_shown(part)) for part in tallies),
            Text(_shown(own.total), style="bold" if color else ""),
            Text(own.worst.value, style=COLORS.get(own.worst, "red") if color else ""),
        )
    file = io.StringIO()
    Console(
        file=file, width=width, force_terminal=color, color_system="standard" if color else None, legacy_windows=False
    ).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"


def closing_text(book: Book, out: Path, *, terminal: Console) -> str:
    """What ends a batch: the table, whose scores are open, and where the files are."""
    width = terminal.width if terminal.is_terminal else max(terminal.width, 80)
    color = terminal.is_terminal and terminal.color_system is not None
    lines = [table_text(book, width=width, color=color)]
    missing = [graded.name for graded in book.submissions if undecided(book.checks, graded)]
    if missing:
        lines.append(
            f"{OPEN}: no score yet for {len(missing)} of {len(book.submissions)} submissions ({_some(missing)}):\n"
            "   not all their checks are judged, or the grader itself failed on some.\n"
            "   `grader grade` with the same arguments goes on there.\n"
        )
    lines.append(f"gradebook   {out / 'gradebook.db'}")
    lines.append(f"scores      {out / 'gradebook.csv'}")
    lines.append(f"each one    {out / '<submission>'}/results.json, feedback.md")
    return "\n".join(lines) + "\n"


def _some(names: Sequence[str], limit: int = 5) -> str:
    shown = ", ".join(one_line(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _heading(word: str, checks: Iterable[CheckSpec]) -> Text:
    return Text(f"{word}\n/{sum(spec.points for spec in checks)}")


def _shown(part: Tally) -> str:
    return OPEN if part.score is None else str(part.score)
