"""results.json: one submission in the form that Gradescope reads (its specification: facts of the autograder docs)."""

from __future__ import annotations

import json
from typing import Any

from grader.batch.gradebook import Book, Graded
from grader.checking.spec import MODULES, CheckSpec
from grader.checking.verdict import Status
from grader.report.escape import clipped, plain
from grader.report.scores import COLUMNS, score, undecided
from grader.report.student import Remark, remark

MAX_OUTPUT_LINES = 60
MAX_OUTPUT_SIGNS = 6000


def results_json(book: Book, graded: Graded) -> str:
    """The whole file.

    Hidden checks are shown when grades are published. A check that this machine cannot run has no points at all.
    One that the grader failed to judge has no score, and then there is no score at the top either: the sum that
    Gradescope shows is not final, which the first lines say.
    """
    points = score(book.checks, graded.verdicts)
    results: dict[str, Any] = {
        "output": _summary(book, graded),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": _tests(book, graded),
        "extra_data": {"submission": graded.name, "worst": points.worst.value},
    }
    if points.total.score is not None:
        results["score"] = points.total.score
    return json.dumps(results, indent=1) + "\n"


def _tests(book: Book, graded: Graded) -> list[dict[str, Any]]:
    tests = []
    count = dict.fromkeys(MODULES, 0)
    for spec in book.checks:
        count[spec.module] += 1
        number = f"{MODULES.index(spec.module) + 1}.{count[spec.module]}"
        tests.append(_test(number, remark(spec, graded.verdicts.get(spec.name))))
    return tests


def _test(number: str, seen: Remark) -> dict[str, Any]:
    spec = seen.spec
    test: dict[str, Any] = {
        "number": number,
        "name": _name(spec),
        "name_format": "text",
        "output": _output(seen),
        "output_format": "text",
        "visibility": "after_published" if spec.hidden else "visible",
        "extra_data": {"check": spec.name, "verdict": seen.word.value},
    }
    if seen.word is not Status.NOT_RUN:
        test["max_score"] = spec.points
    if seen.word not in (Status.NOT_RUN, Status.INFRA):
        test["score"] = seen.points
        test["status"] = "passed" if seen.word is Status.PASS else "failed"
    return test


def _name(spec: CheckSpec) -> str:
    kind = [word for word, true in (("bonus", spec.bonus), ("hidden", spec.hidden)) if true]
    return spec.name + (f" ({', '.join(kind)})" if kind else "")


def _output(seen: Remark) -> str:
    parts = [seen.spec.statement, f"{seen.word.value}: {seen.sentence}"]
    if seen.unwritten:
        parts.append(f"not written yet: {plain(seen.unwritten)}")
    elif seen.explanation is not None:
        fields = {
            "": seen.explanation.rationale,
            "expected": seen.explanation.expected,
            "actual": seen.explanation.actual,
            "where": seen.explanation.where,
            "help": seen.explanation.help,
            "run it again": seen.replay,
            "where the ranks were, and what they printed": clipped(
                seen.output, lines=MAX_OUTPUT_LINES, signs=MAX_OUTPUT_SIGNS
            ),
        }
        parts += [_paragraph(label, plain(text)) for label, text in fields.items() if text]
    return "\n\n".join(parts)


def _paragraph(label: str, text: str) -> str:
    if not label:
        return text
    return f"{label}:\n{text}" if "\n" in text else f"{label}: {text}"


def _summary(book: Book, graded: Graded) -> str:
    points = score(book.checks, graded.verdicts)
    lines = []
    if missing := undecided(book.checks, graded):
        open_points = sum(spec.points for spec in missing)
        lines += [
            f"NOT FINAL: the grader itself failed on {len(missing)} of {len(book.checks)} checks ({open_points}"
            " points). They have no score. This is not the student's fault: grade this submission again.",
            "",
        ]
    tallies = {module: points.modules[module] for module in COLUMNS} | {"bonus": points.bonus}
    for name, part in tallies.items():
        got = "not final" if part.score is None else str(part.score)
        lines.append(f"{name}: {got} of {part.possible}")
    got = "not final" if points.total.score is None else str(points.total.score)
    lines.append(f"total: {got} of {points.total.possible}")
    lines += [f"note: {plain(note)}" for note in graded.notes]
    return "\n".join(lines)
