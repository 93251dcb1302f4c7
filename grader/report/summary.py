"""The batch in a few numbers, for programs: what `--json` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grader.batch.gradebook import Book, Graded
from grader.report.scores import COLUMNS, is_complete, score, undecided


def summary_json(book: Book, out: Path) -> str:
    """One JSON object: per submission its points (null while a check is undecided), and where the files are."""
    return json.dumps(
        {
            "complete": is_complete(book),
            "submissions": [_submission(book, graded) for graded in book.submissions],
            "gradebook": str(out / "gradebook.db"),
            "csv": str(out / "gradebook.csv"),
        },
        indent=1,
    )


def _submission(book: Book, graded: Graded) -> dict[str, Any]:
    points = score(book.checks, graded.verdicts)
    return {
        "name": graded.name,
        "modules": {module: points.modules[module].score for module in COLUMNS},
        "bonus": points.bonus.score,
        "total": points.total.score,
        "possible": points.total.possible,
        "worst": points.worst.value,
        "undecided": [spec.name for spec in undecided(book.checks, graded)],
        "notes": list(graded.notes),
    }
