"""What staff sees while a batch runs: a bar with counts and time left on a terminal, else a line per submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from grader.batch.clerk import View
from grader.batch.queue import Case


class Lines:
    """For a pipe or a file: one line for each submission that is done."""

    def __init__(self, console: Console, submissions: int) -> None:
        self._console = console
        self._submissions = submissions
        self._done = 0

    def fell(self) -> None:
        """Shown only with its submission."""

    def closed(self, line: str, *, broken: bool) -> None:
        """See `View`."""
        self._done += 1
        mark = "GRADER FAILED: " if broken else ""
        self._console.print(f"[{self._done}/{self._submissions}] {mark}{line}")


class Bar:
    """For a terminal: submissions done, checks done, time left; a line only where the grader failed."""

    def __init__(self, progress: Progress, cases: Sequence[Case]) -> None:
        self._progress = progress
        self._submissions = len(cases)
        self._done = 0
        self._task = progress.add_task(self._described(), total=sum(len(case.checks) for case in cases))

    def _described(self) -> str:
        return f"submissions {self._done}/{self._submissions}, checks"

    def fell(self) -> None:
        """See `View`."""
        self._progress.advance(self._task)

    def closed(self, line: str, *, broken: bool) -> None:
        """See `View`."""
        self._done += 1
        self._progress.update(self._task, description=self._described())
        if broken:
            self._progress.console.print(f"GRADER FAILED: {line}")


@contextmanager
def watching(console: Console, cases: Sequence[Case]) -> Iterator[View]:
    """A view on `cases`, as the console allows. The console takes texts as they are: no markup, no wrapping."""
    if not console.is_terminal:
        yield Lines(console, len(cases))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress, cases)
