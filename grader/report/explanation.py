"""Why each point was lost, for staff: of hidden checks too, in full. Text for a terminal and JSON; pure functions."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grader.batch.gradebook import Book, Graded
from grader.checking.folding import WIDTH, folded
from grader.checking.spec import MODULES, CheckSpec
from grader.checking.verdict import Explanation, Status, Verdict
from grader.report.escape import one_line, plain
from grader.report.scores import Tally, score, tally, undecided

LABEL = 12  # the two blanks before a label, the label, and the blanks after it
MAX_LINES = {"why": 8, "expected": 8, "actual": 8, "where": 12, "try": 4}  # with the rest, a screen for one check
HANGING = ("expected", "actual", "where")  # lists of lines: what does not fit into one is set back


@dataclass(frozen=True)
class Loss:
    """Checks of one module that lost points for the same reason, word for word; the same kind of points."""

    checks: tuple[CheckSpec, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def points(self) -> int:
        """The points lost."""
        return sum(verdict.possible - verdict.points for verdict in self.verdicts)


def losses(checks: Iterable[CheckSpec], verdicts: Mapping[str, Verdict]) -> list[Loss]:
    """What was lost, in the order of the checks. What has no score, or is out of it, is no loss."""
    found: dict[tuple[str, bool, Status, Explanation | None], list[tuple[CheckSpec, Verdict]]] = {}
    for spec in checks:
        verdict = verdicts.get(spec.name)
        if verdict is None or verdict.status in (Status.INFRA, Status.NOT_RUN) or verdict.points >= verdict.possible:
            continue
        found.setdefault((spec.module, spec.bonus, verdict.status, verdict.explanation), []).append((spec, verdict))
    return [Loss(tuple(spec for spec, _ in same), tuple(one for _, one in same)) for same in found.values()]


def submission_text(book: Book, graded: Graded, *, out: Path) -> str:
    """Every point that `graded` lost. One line if there is none, and every check has a verdict."""
    regular = [spec for spec in book.checks if not spec.bonus]
    bonus = [spec for spec in book.checks if spec.bonus]
    blocks = [_headline(book, graded)]
    lost = losses(book.checks, graded.verdicts)
    if lost and graded.notes:
        notes = "\n".join(f"note: {one_line(note)}" for note in graded.notes)
        blocks[0] += "\n" + folded(notes, WIDTH)
    for module in MODULES:
        own = [loss for loss in lost if loss.checks[0].module == module and not loss.checks[0].bonus]
        points = tally((spec for spec in regular if spec.module == module), graded.verdicts)
        blocks += _section(f"{module}.py", points, own, graded, out)
    on_top = [loss for loss in lost if loss.checks[0].bonus]
    blocks += _section("bonus", tally(bonus, graded.verdicts), on_top, graded, out)
    blocks += _left_open(book, graded)
    return "\n\n".join(blocks) + "\n"


def check_text(spec: CheckSpec, graded: Graded, *, out: Path) -> str:
    """What became of one check of `graded`, whatever it is."""
    verdict = graded.verdicts.get(spec.name)
    if verdict is None:
        return f"{graded.name}, {spec.name}: no verdict yet\n"
    if verdict.status is Status.PASS:
        return f"{graded.name}, {spec.name}: pass, {_counted(verdict.points)}\n"
    return f"{graded.name}\n\n{_loss(Loss((spec,), (verdict,)), graded, out)}\n"


def explanation_json(book: Book, graded: Graded, *, out: Path, only: CheckSpec | None = None) -> str:
    """One JSON document and a newline: the sums, and a record for each check that lost points (or for `only`)."""
    points = score(book.checks, graded.verdicts)
    checks = [only] if only else [spec for loss in losses(book.checks, graded.verdicts) for spec in loss.checks]
    told = {
        "name": graded.name,
        "points": tally((spec for spec in book.checks if not spec.bonus), graded.verdicts).score,
        "possible": points.total.possible,
        "bonus": points.bonus.score,
        "bonus_possible": points.bonus.possible,
        "notes": list(graded.notes),
        "undecided": [spec.name for spec in undecided(book.checks, graded)],
        "checks": [_record(spec, graded, out) for spec in checks],
    }
    return json.dumps(told, indent=2) + "\n"


def _record(spec: CheckSpec, graded: Graded, out: Path) -> dict[str, Any]:
    verdict = graded.verdicts.get(spec.name)
    record: dict[str, Any] = {"check": spec.name, "module": spec.module, "claim": spec.statement}
    record |= {"bonus": spec.bonus, "hidden": spec.hidden, "possible": spec.points}
    if verdict is None:
        return record | {"status": None}
    explanation = asdict(verdict.explanation) if verdict.explanation is not None else None
    return record | {
        "status": verdict.status.value,
        "points": verdict.points,
        "seed": verdict.seed,
        "unwritten": verdict.unwritten,
        "explanation": explanation,
        "output": verdict.output,
        "replay": replay_command(graded, spec, out),
    }


def replay_command(graded: Graded, spec: CheckSpec, out: Path) -> str:
    """The command that runs the check on the submission again."""
    return shlex.join(["grader", "replay", graded.name, spec.name, "--out", str(out)])


def _headline(book: Book, graded: Graded) -> str:
    regular = tally((spec for spec in book.checks if not spec.bonus), graded.verdicts)
    bonus = tally((spec for spec in book.checks if spec.bonus), graded.verdicts)
    parts = [_sum(regular, "points")]
    if bonus.possible:
        parts.append(_sum(bonus, "bonus points"))
    return f"{graded.name}: {', '.join(parts)}"


def _sum(part: Tally, what: str) -> str:
    if part.undecided:
        return f"{part.points} of {part.possible} {what} so far"
    return f"all {part.possible} {what}" if part.points == part.possible else f"{part.points} of {part.possible} {what}"


def _section(title: str, points: Tally, lost: Sequence[Loss], graded: Graded, out: Path) -> list[str]:
    if not lost:
        return []
    heading = f"{title}: {sum(loss.points for loss in lost)} of {_counted(points.possible)} lost"
    return [f"{heading}\n{'=' * len(heading)}", *(_loss(loss, graded, out) for loss in lost)]


def _loss(loss: Loss, graded: Graded, out: Path) -> str:
    spec, verdict = loss.checks[0], loss.verdicts[0]
    title = spec.name if len(loss.checks) == 1 else f"{len(loss.checks)} checks"
    kinds = "".join(f", {word}" for word, true in (("bonus", spec.bonus), ("hidden", _all_hidden(loss))) if true)
    parts = [f"{title}: {verdict.status}, {_counted(loss.points)} lost{kinds}"]
    if len(loss.checks) == 1:
        parts.append(_labelled("claim", spec.statement))
    else:
        parts.append(_labelled("checks", ", ".join(f"{one.name} ({one.points})" for one in loss.checks)))
    explanation = verdict.explanation
    if explanation is not None:
        fields = {"why": explanation.rationale, "expected": explanation.expected, "actual": explanation.actual}
        fields |= {"where": explanation.where, "try": explanation.help}
        parts += [_labelled(label, text, MAX_LINES[label]) for label, text in fields.items() if text]
    # The command stays in one line, however long: it is there to be copied.
    parts.append(f"  {'again':<{LABEL - 2}}{replay_command(graded, spec, out)}")
    return "\n".join(parts)


def _all_hidden(loss: Loss) -> bool:
    return all(spec.hidden for spec in loss.checks)


def _left_open(book: Book, graded: Graded) -> list[str]:
    """Checks that are no loss and no gain."""
    parts = []
    if missing := undecided(book.checks, graded):
        failed = next((one for spec in missing if (one := graded.verdicts.get(spec.name)) is not None), None)
        why = f": {one_line(failed.explanation.rationale)}" if failed and failed.explanation else ""
        text = f"No score yet for {len(missing)} of {len(book.checks)} checks{why}"
        parts.append(folded(f"{text.rstrip('.')}. `grader grade` with the same arguments goes on there.", WIDTH))
    verdicts = [(spec, graded.verdicts.get(spec.name)) for spec in book.checks]
    if away := [spec.name for spec, one in verdicts if one is not None and one.status is Status.NOT_RUN]:
        parts.append(folded(f"Not run on this machine, and not counted: {', '.join(away)}.", WIDTH))
    return parts


def _counted(points: int) -> str:
    return f"{points} {'point' if points == 1 else 'points'}"


def _labelled(label: str, text: str, most: int | None = None) -> str:
    lines = folded(plain(text), WIDTH - LABEL, hang="  " if label in HANGING else "").split("\n")
    if most is not None and len(lines) > most:
        lines[most - 1 :] = [f"[{len(lines) - most + 1} more lines]"]
    indent = " " * LABEL
    return textwrap.indent("\n".join(lines), indent).replace(indent, f"  {label:<{LABEL - 2}}", 1)
