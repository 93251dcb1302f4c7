"""Many submissions, a few judges at a time, one event loop in the main thread."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from grader.batch.judge import Court, judge
from grader.batch.submission import Submission
from grader.checking.spec import CheckSpec
from grader.checking.verdict import Verdict


@dataclass(frozen=True)
class Case:
    """A submission and the checks whose verdict on it is still open; at least one."""

    submission: Submission
    checks: tuple[CheckSpec, ...]


class Clerk(Protocol):
    """Who is told what happens; called in the event loop, so it must not block for long."""

    def opened(self, case: Case) -> None:
        """A judge takes up the case."""

    def fell(self, case: Case, verdict: Verdict) -> None:
        """A verdict fell."""

    def closed(self, case: Case) -> None:
        """All checks of the case have a verdict."""


async def judge_all(cases: Sequence[Case], *, jobs: int, stage: Path, court: Court, clerk: Clerk) -> None:
    """Judges `cases` in their order, `jobs` at a time; each check of each case has a verdict when this returns.

    stage: an empty private folder for what is handed to the judges. Cancelled, it stops all judges.
    """
    waiting = iter(enumerate(cases))

    async def work() -> None:
        for number, case in waiting:
            folder = stage / str(number)  # no student's name: what runs there could read it
            folder.mkdir()
            clerk.opened(case)
            try:
                await judge(
                    case.submission,
                    case.checks,
                    folder=folder,
                    court=court,
                    record=partial(clerk.fell, case),
                )
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            clerk.closed(case)

    workers = [asyncio.create_task(work()) for _ in range(min(jobs, len(cases)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
