"""One world from start to end: fork N ranks, run one program on all of them, and say exactly what became of it."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from grader.world import wire
from grader.world.failure import Failure, Kind, RankFailure
from grader.world.launcher import InfraError, Launcher
from grader.world.lines import JudgeLines
from grader.world.program import Program, Submitted
from grader.world.record import Record
from grader.world.trace import Trace
from grader.world.values import PerRank, ValueTreeError, decode, encode

DEADLINE = 20.0  # seconds; 6 to 7 gave false alarms with both cores loaded
LONGEST_WAIT = 3600.0  # seconds for which the judge waits at once, where there is no deadline
SETTLE_SECONDS = 0.25  # after the first failure: for what the other ranks have to say
END_SECONDS = 10.0  # for every process of a world to be gone

_shared: list[Launcher] = []


def shared_launcher() -> Launcher:
    """The launcher of worlds that are given none: without a jail, started on first use, closed with the process."""
    if not _shared:
        _shared.append(Launcher())
    return _shared[0]


@dataclass(frozen=True)
class Returned:
    """What a world returned: values[rank] is the list of what the program yielded there (or its one result).

    trace: what the ranks asked of their groups.
    """

    values: list[list[Any]]
    output: tuple[str, ...]
    seconds: float
    trace: Trace


class World:
    """`size` ranks, fresh processes for each `run`.

    submission: the module that the program finds at `here.submission`; None for none.
    joined:     whether the ranks are in a process group when the program starts.
    deadline:   seconds for one run; None for none. A world that is stuck in its operations ends without it.
    """

    def __init__(
        self,
        size: int,
        *,
        submission: Submitted | None = None,
        launcher: Launcher | None = None,
        joined: bool = True,
        deadline: float | None = DEADLINE,
    ) -> None:
        if size < 1:
            raise ValueError(f"a world has at least one rank, not {size}")
        self.size = size
        self._submission = submission
        self._launcher = launcher
        self._joined = joined
        self._deadline = math.inf if deadline is None else deadline

    def run(self, program: Program | Callable[..., Any], **inputs: Any) -> Returned | Failure:
        """Runs `program(here, **inputs)` on every rank; see program.py. An input may be `PerRank`.

        Returns each rank's values, or the failure. Raises InfraError where the grader itself is at fault.
        Nothing of the world is left when it returns: no process, no port, no file.
        """
        program = program if isinstance(program, Program) else Program.of(program)
        tasks = [self._task(program, rank, inputs) for rank in range(self.size)]
        launcher = self._launcher if self._launcher is not None else shared_launcher()
        launcher.wait_until_ready()  # its imports are not this world's time
        run = _Run(launcher, self.size, tasks, self._deadline, program.file_name)
        outcome = run.result()
        if isinstance(outcome, Failure) and self._submission is not None:
            text = self._submission.source.decode("utf-8", errors="replace")
            outcome.sources[self._submission.file_name] = text.splitlines()
        return outcome

    def _task(self, program: Program, rank: int, inputs: Mapping[str, Any]) -> bytes:
        own = {name: value.values[rank] if isinstance(value, PerRank) else value for name, value in inputs.items()}
        tree, blob = encode(own)
        submitted = self._submission
        module = submitted and {
            "name": submitted.module,
            "source": base64.b64encode(submitted.source).decode(),
            "file_name": submitted.file_name,
        }
        head = {
            "module": module,
            "program": {
                "source": base64.b64encode(program.source).decode(),
                "function": program.function,
                "file_name": program.file_name,
            },
            "inputs": tree,
            "joined": self._joined,
            "group_timeout": min(self._deadline, LONGEST_WAIT),
        }
        return wire.pack(head, blob)


class _Run:
    """One run under way: what each rank has said so far, and the rules by which it ends."""

    def __init__(self, launcher: Launcher, size: int, tasks: list[bytes], deadline: float, program_file: str) -> None:
        self._began = time.monotonic()
        self._ends = self._began + deadline
        self._record = Record(size, program_file)
        self._lines = JudgeLines(launcher, tasks, self._record)

    def result(self) -> Returned | Failure:
        """Runs the world to its end; nothing of it is left afterwards."""
        record, lines = self._record, self._lines
        try:
            self._until(lambda: record.all_ready or record.somebody_failed or record.warden_gone, self._ends)
            if record.all_ready and not record.somebody_failed:
                lines.tell_all({"go": True})
                self._until(lambda: record.all_done or record.somebody_failed or record.warden_gone, self._ends)
            if record.all_done:
                return self._returned()
            return self._failed()
        finally:
            if not lines.close(END_SECONDS):
                lines.launcher.close()
                raise InfraError("a world did not end; its processes were killed with the zygote")

    def _until(self, condition: Callable[[], bool], ends: float) -> None:
        while not condition():
            left = ends - time.monotonic()
            if left <= 0:
                return
            self._lines.poll(min(left, LONGEST_WAIT))
            self._conduct()

    def _conduct(self) -> None:
        """Sends the ranks what the conductor has to say, once a whole batch has been heard."""
        conductor = self._record.conductor
        conductor.settle()
        for rank, orders in conductor.outbox.items():
            self._lines.tell(rank, orders)
        conductor.outbox.clear()

    def _returned(self) -> Returned | Failure:
        record = self._record
        self._lines.stop()  # every value and all output has been sent; nobody needs to leave by itself
        self._until(lambda: record.warden_gone, time.monotonic() + END_SECONDS)
        values = []
        for rank, messages in enumerate(record.values):
            try:
                values.append([decode(message.head.get("tree"), message.blob) for message in messages])
            except ValueTreeError as error:
                refused = RankFailure(rank, Kind.REFUSED, "program", len(values), message=str(error))
                return Failure(refused, False, (), self._seconds(), record.outputs())
        return Returned(values, record.outputs(), self._seconds(), record.conductor.trace)

    def _failed(self) -> Returned | Failure:
        record, lines = self._record, self._lines
        if record.warden_gone and not record.somebody_failed:
            raise InfraError("the process that watches a world has gone")
        if record.conductor.report is None:
            settled = time.monotonic() + SETTLE_SECONDS
            self._until(lambda: record.all_settled or record.warden_gone, settled)
        unfinished = record.unfinished() if record.conductor.report is None else []
        if unfinished:
            lines.ask_for_stacks(unfinished)
            self._until(lambda: record.have_stacks(unfinished), time.monotonic() + SETTLE_SECONDS)
        lines.stop()
        self._until(lambda: record.warden_gone, time.monotonic() + END_SECONDS)
        if record.all_done:
            return self._returned()  # the last word came at the deadline, or a moment after it
        return replace(record.failure(self._seconds()), trace=record.conductor.trace)

    def _seconds(self) -> float:
        return time.monotonic() - self._began
