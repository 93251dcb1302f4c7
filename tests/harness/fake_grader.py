"""A grader with fake judges, as a program that can be killed: `python -m tests.harness.fake_grader OUT LOG PARTS`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from grader.batch.gradebook import Run
from grader.batch.grading import Batch, Stopped, grade
from grader.report.files import write_views
from tests.harness.batch_parts import CHECKS, SilentView, court, plays


def main(out: Path, log: Path, parts: dict[str, dict[str, object]]) -> int:
    """Grades a submission for each part, two at a time; the exit code of a signal if one stops it."""
    batch = Batch(
        submissions=[plays(name, **fields) for name, fields in parts.items()],
        checks=CHECKS,
        digest="set-1",
        out=out,
        court=court(out.parent, log=log, environment=os.environ),
        run=Run(os.environ["GRADER_RUN"], "none", 600.0, "0.1.0"),
        jobs=2,
    )
    try:
        grade(batch, watch=lambda _: contextlib.nullcontext(SilentView()), publish=lambda book: write_views(book, out))
    except Stopped as stopped:
        return stopped.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))
