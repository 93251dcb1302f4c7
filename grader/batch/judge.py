"""One judge: a pytest process of its own that judges one submission and says each verdict on a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from grader.batch.hearing import Hearing
from grader.batch.pipes import Tail, pipe, reading
from grader.batch.submission import Submission
from grader.checking.selection import Selection
from grader.checking.spec import CheckSpec
from grader.checking.verdict import Verdict

MAX_LINE_BYTES = 8 * 2**20  # of one verdict; the judge bounds its texts far below this
MAX_OUTPUT_BYTES = 64 * 2**10  # of what the judge itself printed: its end is kept


class Command(Protocol):
    """The argument vector of a judge."""

    def __call__(
        self, *, staged: Path, name: str, checks: Sequence[str], verdicts: int, lifeline: int
    ) -> list[str]: ...


@dataclass(frozen=True)
class PytestCommand:
    """The real judge: pytest with the grader's plugin, on `tests` (paths below the folder it runs in).

    selection: which checks the course gives, in which worlds, for how many points.
    """

    tests: tuple[Path, ...]
    jail: str
    budget_seconds: float
    selection: Selection

    def __call__(self, *, staged: Path, name: str, checks: Sequence[str], verdicts: int, lifeline: int) -> list[str]:
        """See `Command`."""
        tests = [str(path) for path in self.tests]
        options = {
            "--submission": str(staged),
            "--jail": self.jail,
            "--budget": str(self.budget_seconds),
            "--verdicts": str(verdicts),
            "--lifeline": str(lifeline),
            "--seed-salt": name,
            "--checks": ",".join(checks),
        }
        flags = [word for option in options.items() for word in option]
        for setting in self.selection.to_ini().items():
            flags += ["-o", "=".join(setting)]
        return [sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", *flags]


@dataclass(frozen=True)
class Court:
    """What all judges of a run share.

    root:             the folder that holds tests/: a judge's working folder.
    environment:      a judge's whole environment, apart from its temporary folder.
    deadline_seconds: after which a judge is killed; above the budget, which the judge keeps by itself.
    grace_seconds:    what a judge gets to end by itself, after its last word or when it is told to stop.
    """

    command: Command
    root: Path
    environment: Mapping[str, str]
    deadline_seconds: float
    grace_seconds: float = 10.0


def judge_environment(surroundings: Mapping[str, str], run: str) -> dict[str, str]:
    """A judge's environment: that of the grader, without settings that would make another pytest of it."""
    kept = {name: value for name, value in surroundings.items() if not name.startswith("PYTEST_")}
    return kept | {"GRADER_RUN": run}


async def judge(
    submission: Submission,
    checks: Sequence[CheckSpec],
    *,
    folder: Path,
    court: Court,
    record: Callable[[Verdict], None],
) -> None:
    """Judges `submission` by `checks`; `record` has been called once for each of them when this returns.

    folder: an empty private folder; the caller removes it. Cancelled, it stops the judge and records no more.
    """
    staged, scratch = folder / "submission", folder / "tmp"
    staged.mkdir()
    scratch.mkdir()
    for name, data in submission.files.items():
        (staged / name).write_bytes(data)
    hearing = Hearing(checks, record)
    printed = Tail(MAX_OUTPUT_BYTES)
    with contextlib.ExitStack() as ends:
        verdicts, verdicts_end = pipe(ends)
        lifeline_end, lifeline = pipe(ends)
        output, output_end = pipe(ends)
        lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        arguments = court.command(
            staged=staged,
            name=submission.name,
            checks=[spec.name for spec in checks],
            verdicts=verdicts_end.fileno(),
            lifeline=lifeline_end.fileno(),
        )
        async with reading(output, printed), reading(verdicts, asyncio.StreamReaderProtocol(lines)):
            try:
                process = await asyncio.create_subprocess_exec(
                    *arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output_end,
                    stderr=output_end,
                    pass_fds=(verdicts_end.fileno(), lifeline_end.fileno()),
                    cwd=court.root,
                    env={**court.environment, "TMPDIR": str(scratch)},
                    start_new_session=True,  # a Ctrl-C at the terminal is the grader's to handle
                )
            except OSError as error:
                hearing.close(f"the judge could not be started ({error})", "")
                return
            try:
                for end in (verdicts_end, lifeline_end, output_end):
                    end.close()  # the judge's alone now: so its death shows as the end of the stream
                why = await _hear(process, lines, hearing, court)
            finally:
                lifeline.close()
                await _stop(process, court.grace_seconds)
            await printed.ended(timeout_seconds=1.0)
    hearing.close(why, printed.text())


async def _hear(
    process: asyncio.subprocess.Process, lines: asyncio.StreamReader, hearing: Hearing, court: Court
) -> str:
    """Takes events until the judge ends, breaks off or passes its deadline; returns why no more will come."""
    listening = asyncio.create_task(_listen(lines, hearing))
    ending = asyncio.create_task(process.wait())
    try:
        done, _ = await asyncio.wait(
            {listening, ending}, timeout=court.deadline_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            _break_off(process)
            return f"the judge was still at work after {court.deadline_seconds:g} seconds"
        if listening in done and (garbled := listening.result()):
            return garbled
        # A judge that has said its last word is about to end; what a dead one said is still in the pipe.
        await asyncio.wait({listening, ending}, timeout=court.grace_seconds)
        if listening.done() and (garbled := listening.result()):
            return garbled
        if process.returncode is None:
            return "the judge fell silent"
        return f"the judge ended ({_death(process.returncode)})"
    finally:
        listening.cancel()
        ending.cancel()


async def _listen(lines: asyncio.StreamReader, hearing: Hearing) -> str:
    """Takes events until the last one or the end of the stream; returns what is wrong with them, or ""."""
    while True:
        try:
            line = await lines.readline()
            if not line.endswith(b"\n"):  # the stream has ended, perhaps in the middle of a word
                return ""
            if hearing.take(json.loads(line)):
                return ""
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"the judge said what cannot be understood ({type(error).__name__}: {error})"


def _break_off(process: asyncio.subprocess.Process) -> None:
    """Ends a judge that hangs so that it prints, as pytest makes every Python do, where each thread is."""
    with contextlib.suppress(ProcessLookupError):
        if sys.platform == "linux":
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
        process.send_signal(signal.SIGABRT)


async def _stop(process: asyncio.subprocess.Process, grace_seconds: float) -> None:
    """Waits for the end of a judge whose lifeline is closed, and kills it if that takes too long."""
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _death(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"
