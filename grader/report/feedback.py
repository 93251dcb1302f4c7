"""feedback.md: what a student reads about the submission, what to mend first at the top of each module."""

from __future__ import annotations

from collections.abc import Sequence

from grader.batch.gradebook import Book, Graded
from grader.checking.spec import MODULES
from grader.checking.verdict import Status
from grader.report.escape import clipped, code, fenced, markdown
from grader.report.scores import COLUMNS, Score, Tally, score, undecided
from grader.report.student import Remark, remark

MAX_OUTPUT_LINES = 40
MAX_OUTPUT_SIGNS = 4000


def feedback(book: Book, graded: Graded) -> str:
    """The whole page: a summary table, then per module each check that lost points."""
    points = score(book.checks, graded.verdicts)
    parts = [f"# Feedback for {markdown(graded.name)}", _headline(points)]
    if missing := undecided(book.checks, graded):
        parts.append(
            f"**Not final:** the grader itself failed on {len(missing)} of {len(book.checks)} checks. They have no"
            " score, it is not your fault, and staff has to grade them again."
        )
    if graded.notes:
        parts.append("What was noticed when your files were read:")
        parts.append("\n".join(f"- {markdown(note)}" for note in graded.notes))
    parts.append(_table(points))
    for module in MODULES:
        seen = [remark(spec, graded.verdicts.get(spec.name)) for spec in book.checks if spec.module == module]
        if open_remarks := [item for item in seen if item.word is not Status.PASS]:
            parts += _module(module, open_remarks)
    if points.worst is Status.PASS:
        parts.append("Every check passes.")
    return "\n\n".join(parts) + "\n"


def _headline(points: Score) -> str:
    total = points.total
    return f"**{_shown(total)} of {total.possible} points**, the bonus included."


def _shown(part: Tally) -> str:
    return "not final" if part.score is None else str(part.score)


def _table(points: Score) -> str:
    rows = [(f"{module}.py", points.modules[module]) for module in COLUMNS]
    lines = ["| module | points | possible |", "|---|---:|---:|"]
    lines += [f"| {code(name)} | {_shown(part)} | {part.possible} |" for name, part in rows]
    lines.append(f"| bonus | {_shown(points.bonus)} | {points.bonus.possible} on top |")
    lines.append(f"| **total** | **{_shown(points.total)}** | **{points.total.possible}** |")
    return "\n".join(lines)


def _module(module: str, seen: Sequence[Remark]) -> list[str]:
    parts = [f"## {module}.py"]
    parts += [_check(item) for item in seen if not item.unwritten]
    unwritten: dict[str, list[Remark]] = {}
    for item in seen:
        if item.unwritten:
            unwritten.setdefault(item.unwritten, []).append(item)
    if unwritten:
        parts += ["Not written yet:", "\n".join(_unwritten(name, items) for name, items in unwritten.items())]
    return parts


def _unwritten(function: str, seen: Sequence[Remark]) -> str:
    points = sum(item.spec.points for item in seen)
    return f"- {code(function)}: {points} {'point' if points == 1 else 'points'}"


def _check(seen: Remark) -> str:
    spec = seen.spec
    kind = "".join(f", {word}" for word, true in (("bonus", spec.bonus), ("hidden", spec.hidden)) if true)
    points = "not scored" if seen.word in (Status.INFRA, Status.NOT_RUN) else f"{seen.points} of {spec.points} points"
    parts = [f"### {code(spec.name)}: {seen.word.value} ({points}{kind})", f"*{markdown(spec.statement)}*"]
    explanation = seen.explanation
    if explanation is None:
        return "\n\n".join([*parts, seen.sentence])
    parts.append(markdown(explanation.rationale))
    for label, text in (
        ("Expected:", explanation.expected),
        ("Actual:", explanation.actual),
        ("Where:", explanation.where),
    ):
        if text:
            parts += [label, fenced(text)]
    if explanation.help:
        parts.append(f"Try: {markdown(explanation.help)}")
    if seen.replay:
        parts += ["Run it again:", fenced(seen.replay, "sh")]
    if seen.output.strip():
        output = clipped(seen.output, lines=MAX_OUTPUT_LINES, signs=MAX_OUTPUT_SIGNS)
        parts += ["Where the ranks were, and what they printed:", fenced(output)]
    return "\n\n".join(parts)
