"""The end of a run as text: the table of checks, each failure explained, and the score."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol

from grader.checking.folding import WIDTH, folded
from grader.checking.spec import MODULES, CheckSpec
from grader.checking.todo import Row, Todo, section
from grader.checking.verdict import Status, Verdict

LABEL = 10
OUTPUT_HEAD, OUTPUT_TAIL = 30, 10  # lines of a check's output that are shown


class Terminal(Protocol):
    """What is used of pytest's terminal reporter."""

    def write_line(self, line: str, **markup: bool) -> None: ...
    def write_sep(self, sep: str, title: str, **markup: bool) -> None: ...


def graded(spec: CheckSpec, verdict: Verdict, place: int) -> dict[str, Any]:
    """A check's verdict as plain JSON values, for a report that travels between processes.

    place: of the check among all that were collected; verdicts may come in another order.
    """
    return {
        "place": place,
        "verdict": verdict.to_json(),
        "module": spec.module,
        "statement": spec.statement,
        "bonus": spec.bonus,
        "hidden": spec.hidden,
        "needs": list(spec.needs),
    }


def explanation_text(verdict: Verdict) -> str:
    """Rationale, expected, actual, where, help and the replay command, a labelled paragraph each."""
    explanation = verdict.explanation
    if explanation is None:
        return ""
    fields = [
        ("", explanation.rationale),
        ("expected", explanation.expected),
        ("actual", explanation.actual),
        ("where", explanation.where),
        ("help", explanation.help),
        ("again", verdict.replay),
    ]
    return "\n".join(_labelled(label, text) for label, text in fields if text)


def _labelled(label: str, text: str) -> str:
    if not label:
        return folded(text, WIDTH, cut_words=False)
    indent = " " * LABEL
    if label != "again":  # a command stays in one line, however long: it is there to be copied
        hang = "" if label == "help" else "  "
        text = folded(text, WIDTH - LABEL, hang=hang, cut_words=False)
    return textwrap.indent(text, indent).replace(indent, f"{label:<{LABEL}}", 1)


def write(reports: Sequence[dict[str, Any]], terminal: Terminal, todo: Todo) -> None:
    """The whole summary of these graded checks to a terminal; `todo` is what the folder still asks for."""
    rows = [(report, Verdict.from_json(report["verdict"])) for report in reports]
    rows.sort(key=lambda row: (MODULES.index(row[0]["module"]), row[0]["hidden"], row[0]["place"]))
    terminal.write_sep("=", "points")
    for module in MODULES:
        own = [row for row in rows if row[0]["module"] == module]
        if own:
            _write_module(module, own, terminal)
    failures = [row for row in rows if row[1].status is not Status.PASS and not row[1].unwritten]
    if failures:
        terminal.write_sep("=", "what is wrong")
    for report, verdict in failures:
        terminal.write_line("")
        terminal.write_line(f"{verdict.check}: {verdict.status}", bold=True, red=True)
        terminal.write_line(folded(f"claim: {report['statement']}", WIDTH))
        terminal.write_line(explanation_text(verdict))
        if verdict.output and verdict.status is not Status.SKIPPED:
            terminal.write_line("where the ranks were, and what they printed:")
            for line in shortened(verdict.output.splitlines()):
                terminal.write_line(f"  {line}")
    unwritten = section(rows, todo)
    if unwritten:
        terminal.write_sep("=", "not written yet")
    for line in unwritten:
        terminal.write_line(line, bold=not line.startswith(" "))
    terminal.write_sep("=", score_line(rows), bold=True)


def shortened(lines: Iterable[str]) -> list[str]:
    """The first lines and the last; of lines that repeat, as a recursion leaves them, one and how many more."""
    kept = []
    for line, same in groupby(lines):
        repeated = len(list(same)) - 1
        kept.append(line)
        if repeated:
            kept.append(f"    (the same line {repeated} more {'time' if repeated == 1 else 'times'})")
    left_out = len(kept) - OUTPUT_HEAD - OUTPUT_TAIL
    if left_out > 1:
        kept[OUTPUT_HEAD:-OUTPUT_TAIL] = [f"    ({left_out} lines are left out here)"]
    return kept


def _write_module(module: str, rows: Iterable[Row], terminal: Terminal) -> None:
    rows = list(rows)
    got, possible = _sum(row for row in rows if not row[0]["bonus"])
    bonus = f"{_sum(row for row in rows if row[0]['bonus'])[0]} bonus" if any(row[0]["bonus"] for row in rows) else ""
    score = f"{got} / {possible}" if possible else ""
    terminal.write_line(f"{module + '.py':<54}{bonus:>12}{score:>14}".rstrip(), bold=True)
    if len(rows) > 1 and all(verdict.unwritten for _, verdict in rows):  # the first run is not a page of these
        terminal.write_line(f"  {'not written':<12} all {len(rows)} checks", red=True)
        return
    for report, verdict in rows:
        name = verdict.check.partition(".")[2] + (" (bonus)" if report["bonus"] else "")
        word = "not written" if verdict.unwritten else str(verdict.status)
        color = {"green": verdict.status is Status.PASS, "red": verdict.status is not Status.PASS}
        terminal.write_line(f"  {word:<12} {name[:50]:<51}{f'{verdict.points} / {verdict.possible}':>14}", **color)


def _sum(rows: Iterable[Row]) -> tuple[int, int]:
    counted = [verdict for _, verdict in rows if verdict.status is not Status.NOT_RUN]
    return sum(verdict.points for verdict in counted), sum(verdict.possible for verdict in counted)


def score_line(rows: Sequence[Row]) -> str:
    """ "52 of 60 public points, 10 of 10 hidden points, 3 bonus points"; only what was run."""
    parts = []
    for hidden, word in ((False, "public"), (True, "hidden")):
        own = [row for row in rows if row[0]["hidden"] is hidden and not row[0]["bonus"]]
        if own:
            got, possible = _sum(own)
            parts.append(f"{got} of {possible} {word} points")
    bonus = [row for row in rows if row[0]["bonus"]]
    if bonus:
        parts.append(f"{_sum(bonus)[0]} bonus points")
    return ", ".join(parts)
