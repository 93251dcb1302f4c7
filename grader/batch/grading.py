"""A batch from submissions to the finished gradebook: one that was stopped goes on where it was."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from grader.batch import room
from grader.batch.clerk import RecordingClerk, View
from grader.batch.gradebook import FILE_NAME, Book, Gradebook, Run, set_aside
from grader.batch.judge import Court
from grader.batch.queue import Case, Clerk, judge_all
from grader.batch.submission import Submission
from grader.checking.spec import CheckSpec


class Stopped(Exception):  # noqa: N818  it is no error: someone asked for it
    """A signal ended the batch; every verdict that fell before is in the gradebook."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.exit_code = 128 + number


@dataclass(frozen=True)
class Batch:
    """What is to be graded, and how.

    digest: names the check set (see `check_set`). fresh: an earlier gradebook in `out` is set aside.
    """

    submissions: Sequence[Submission]
    checks: Sequence[CheckSpec]
    digest: str
    out: Path
    court: Court
    run: Run
    jobs: int
    fresh: bool = False


def grade(
    batch: Batch,
    *,
    watch: Callable[[Sequence[Case]], AbstractContextManager[View]],
    publish: Callable[[Book], object],
) -> Book:
    """Judges what has no verdict that stands, publishes the gradebook, and returns all that it holds.

    `publish` runs while no other grader can write to the folder. Raises GradebookError if the folder or its
    gradebook cannot be used, and Stopped when SIGINT, SIGTERM or SIGHUP ends it: then no judge is left.
    """
    with room.hold(batch.out) as stage:
        path = batch.out / FILE_NAME
        if batch.fresh:
            set_aside(path)
        with Gradebook.open(path, batch.checks, digest=batch.digest, run=batch.run) as gradebook:
            cases = open_cases(gradebook, batch.submissions, batch.checks)
            if cases:
                with watch(cases) as view:
                    clerk = RecordingClerk(gradebook.record, view)
                    run(cases, jobs=batch.jobs, stage=stage, court=batch.court, clerk=clerk)
            book = gradebook.book()
            publish(book)
            return book


def open_cases(gradebook: Gradebook, submissions: Sequence[Submission], checks: Sequence[CheckSpec]) -> list[Case]:
    """Enters all submissions, then says which checks of which of them have no verdict that stands."""
    for submission in submissions:
        gradebook.register(submission)
    cases = []
    for submission in submissions:
        settled = gradebook.settled(submission.name)
        missing = tuple(spec for spec in checks if spec.name not in settled)
        if missing:
            cases.append(Case(submission, missing))
    return cases


def run(cases: Sequence[Case], *, jobs: int, stage: Path, court: Court, clerk: Clerk) -> None:
    """Judges the cases (see `judge_all`) in an event loop of its own; raises Stopped as `grade` does."""
    received: list[signal.Signals] = []

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()

        def stop(number: signal.Signals) -> None:
            received.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                loop.add_signal_handler(number, stop, number)
        await judge_all(cases, jobs=jobs, stage=stage, court=court, clerk=clerk)

    try:
        asyncio.run(main())
    except asyncio.CancelledError:
        raise Stopped(received[0]) from None
