"""Who takes down what the judges say: each verdict goes to the gradebook first, and then is shown."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from grader.batch.queue import Case
from grader.checking.verdict import Status, Verdict


class View(Protocol):
    """What shows how far a batch is."""

    def fell(self) -> None:
        """A verdict fell."""

    def closed(self, line: str, *, broken: bool) -> None:
        """A submission is done; `line` says what came of it, `broken` that the grader failed on it."""


class RecordingClerk:
    """The clerk of a batch: each verdict goes to the gradebook first, then to the view."""

    def __init__(self, record: Callable[[str, Verdict], None], view: View) -> None:
        self._record = record
        self._view = view
        self._began: dict[str, float] = {}
        self._verdicts: dict[str, list[Verdict]] = {}

    def opened(self, case: Case) -> None:
        """See `Clerk`."""
        self._began[case.submission.name] = time.monotonic()
        self._verdicts[case.submission.name] = []

    def fell(self, case: Case, verdict: Verdict) -> None:
        """See `Clerk`."""
        self._record(case.submission.name, verdict)
        self._verdicts[case.submission.name].append(verdict)
        self._view.fell()

    def closed(self, case: Case) -> None:
        """See `Clerk`."""
        name = case.submission.name
        verdicts = self._verdicts.pop(name)
        seconds = time.monotonic() - self._began.pop(name)
        broken = any(verdict.status is Status.INFRA for verdict in verdicts)
        self._view.closed(f"{name}: {outcome(verdicts)} ({seconds:.1f} s)", broken=broken)


def outcome(verdicts: Sequence[Verdict]) -> str:
    """ "30 pass, 2 fail, 1 infra: No verdict: the judge ended (killed by SIGKILL)." """
    counts = Counter(verdict.status for verdict in verdicts)
    said = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    reasons = [
        verdict.explanation.rationale
        for verdict in verdicts
        if verdict.status is Status.INFRA and verdict.explanation is not None
    ]
    return f"{said}: {reasons[0]}" if reasons else said
