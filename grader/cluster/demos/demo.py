"""What a demo is: a program, the ranks that it runs on, and the picture that its trace becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.cluster.looks import Looks
from grader.cluster.steps import Lasting, Timeline, timeline_of
from grader.cluster.svg import Figure
from grader.cluster.timeline import describe, draw_timeline
from grader.world import Failure, Launcher, Program, Submitted, World

PROGRAMS = Path(__file__).parent / "programs"  # read as text; only ranks run them
DRAWN_CASE = 1  # case 0 prepares


class DemoFailed(Exception):  # noqa: N818  a result, as CheckFailed
    """The submission's world failed; the text says why. unwritten: a function of it is not written yet."""

    def __init__(self, text: str, *, unwritten: bool = False) -> None:
        super().__init__(text)
        self.unwritten = unwritten


@dataclass(frozen=True)
class Demo:
    """One picture of one module.

    name: of the figure. program: FILE.FUNCTION below programs/. ranks: how many, unless one asks for others.
    """

    name: str
    title: str
    caption: str
    program: str
    inputs: Mapping[str, Any]
    ranks: int
    looks: Looks
    lasting: Lasting = field(default_factory=Lasting)

    def run(self, submission: Submitted, launcher: Launcher, *, ranks: int | None = None) -> Timeline:
        """Runs the submission on the ranks. Raises DemoFailed where it fails, or its trace makes no timeline."""
        size = self.ranks if ranks is None else ranks
        file, _, function = self.program.partition(".")
        program = Program.read(PROGRAMS / f"{file}.py", function)
        outcome = World(size, submission=submission, launcher=launcher).run(program, **self.inputs)
        if isinstance(outcome, Failure):
            raise _failed(outcome, submission)
        try:
            return timeline_of(outcome.trace, size, case=DRAWN_CASE, lasting=self.lasting)
        except ValueError as error:
            raise DemoFailed(f"{submission.file_name}: {error}") from error

    def figure(self, timeline: Timeline) -> Figure:
        """The timeline drawn."""
        alt = f"{self.title}. {describe(timeline, self.looks)}"
        return Figure(self.name, self.caption, alt, draw_timeline(timeline, self.looks, title=self.title))


def _failed(failure: Failure, submission: Submitted) -> DemoFailed:
    frame = failure.unwritten()
    if frame is not None:
        where = f"{frame.file}:{frame.line}"
        return DemoFailed(f"{submission.module}.{frame.function} is not written yet ({where})", unwritten=True)
    return DemoFailed(failure.text())
