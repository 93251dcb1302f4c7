"""The table as text of 80 columns, as Markdown and as JSON: pure functions of the rows."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from tests.mistakes.rows import Row
from tests.mistakes.titles import TITLES

WIDTH = 80


def as_text(rows: Sequence[Row], missing: Sequence[int]) -> str:
    """For each mistake its number and title; below it, for each mutant, check, verdict and message."""
    lines = []
    shown = 0
    for row in rows:
        if row.task.number != shown:
            shown = row.task.number
            lines += ["", f"{shown:>2}  {TITLES[shown]}"]
        lines.append(f"    {row.task.check}: {row.status}{'' if row.caught else '  <-- not caught'}")
        indent = " " * 6
        lines += textwrap.wrap(row.line, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([*lines[1:], "", _summary(rows, missing)]) + "\n"


def as_markdown(rows: Sequence[Row], missing: Sequence[int]) -> str:
    """A table to paste; a mistake without a mutant has a row that says so."""
    entries = [(row.task.number, row.task.check, str(row.status), row.line) for row in rows]
    entries += [(number, "", "missing", "") for number in missing]
    lines = ["| no. | mistake | check | verdict | first line of the message |", "|---:|---|---|---|---|"]
    for number, check, status, line in sorted(entries, key=lambda entry: entry[0]):
        cells = [str(number), TITLES[number], f"`{check}`" if check else "", status, _cell(line)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", _summary(rows, missing)]) + "\n"


def as_json(rows: Sequence[Row], missing: Sequence[int]) -> str:
    """{"rows": [...], "missing": [...]}, with the mutant of each row."""
    entries = [
        {
            "number": row.task.number,
            "mistake": TITLES[row.task.number],
            "module": row.task.module,
            "mutant": row.task.mutant,
            "check": row.task.check,
            "status": str(row.status),
            "line": row.line,
        }
        for row in rows
    ]
    return json.dumps({"rows": entries, "missing": list(missing)}, indent=1, ensure_ascii=False) + "\n"


def _cell(text: str) -> str:
    """Text that Markdown shows as it is."""
    for mark in ("\\", "|", "*", "_", "`", "<"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _summary(rows: Sequence[Row], missing: Sequence[int]) -> str:
    numbers = {row.task.number for row in rows}
    wrong = sum(not row.caught for row in rows)
    text = f"{len(numbers)} mistakes in {len(rows)} submissions; {wrong} not caught; without a submission: "
    names = ", ".join(f"{number} ({TITLES[number]})" for number in missing) or "none"
    return textwrap.fill(text + names, WIDTH)
