"""What went wrong in a world, as plain data: which rank first, where, and what became of the others."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grader.world.report import Report, Stand
from grader.world.trace import Trace

# all but newline, tab and printable characters; also those that reorder or hide text, and lone surrogates
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
LOST_PEER = re.compile(r"Connection (closed|reset|refused)|Broken pipe|connectFullMesh failed", re.IGNORECASE)
GAVE_UP_WAITING = re.compile(r"Timed out waiting \d+ms|Application timeout|[Ww]ait timeout")  # gloo and its store
MAX_MESSAGE = 2000
MAX_FRAMES = 30
MAX_LINE = 200  # of a source line that a message shows


def printable(text: str, limit: int = MAX_MESSAGE) -> str:
    """`text` without control characters (they are shown as an escape), cut at `limit` characters."""
    cut = text if len(text) <= limit else text[:limit] + " …"
    return _CONTROL.sub(
        lambda found: (
            found[0].encode("ascii", "backslashreplace").decode() if ord(found[0]) > 127 else f"\\x{ord(found[0]):02x}"
        ),
        cut,
    )


def signal_name(number: int) -> str:
    """A name such as SIGSEGV; "SIGRTMIN+6" for a real-time signal, which Python gives no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN{number - 34:+d}"


@dataclass(frozen=True)
class Frame:
    """One line of a Python stack."""

    file: str
    line: int
    function: str


class Kind(StrEnum):
    """How a rank, or a world, failed."""

    RAISED = "raised"  # an exception came out of the submission or the program
    ENDED = "ended"  # the process ended without a word: os._exit, a signal, a crash
    UNFINISHED = "unfinished"  # it had not finished at the deadline
    REFUSED = "refused"  # what it sent is not a message or is too large
    REPORTED = "reported"  # the conductor found a fault in what the ranks do together


@dataclass(frozen=True)
class RankFailure:
    """What became of one rank.

    phase:    "start", "import", "join", "program".
    finished: how many values it had sent, so: the case that was under way.
    frames:   innermost last; of an exception, or of the stack when it was stuck or crashed.
    classes:  names of the exception's classes, the most special first.
    """

    rank: int
    kind: Kind
    phase: str
    finished: int
    error_type: str = ""
    message: str = ""
    classes: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    exit_code: int = 0
    signal: int = 0

    @property
    def lost_a_peer(self) -> bool:
        """It failed because a connection went away: the consequence of another rank's end."""
        return self.kind is Kind.RAISED and LOST_PEER.search(self.message) is not None

    @property
    def gave_up_waiting(self) -> bool:
        """An operation of the process group reached its timeout: the rank was stuck in it."""
        return self.kind is Kind.RAISED and GAVE_UP_WAITING.search(self.message) is not None

    def headline(self) -> str:
        """What happened to this rank, in one line."""
        match self.kind:
            case Kind.RAISED:
                return f"rank {self.rank} raised {self.error_type}: {self.message}".rstrip(": ")
            case Kind.ENDED if self.signal:
                return f"rank {self.rank} was killed by {signal_name(self.signal)}"
            case Kind.ENDED:
                return f"rank {self.rank} left the interpreter with exit code {self.exit_code}"
            case Kind.UNFINISHED:
                return f"rank {self.rank} had not finished"
            case Kind.REFUSED:
                return f"rank {self.rank} sent something that cannot be read: {self.message}"
            case Kind.REPORTED:
                return self.message


@dataclass(frozen=True)
class Failure:
    """A world that did not return its values.

    cause:   the rank that failed first; for a world that was stuck, the lowest rank that had not finished.
    stuck:   the deadline passed, or a group's timeout did.
    others:  the other ranks that did not finish, as they were when the world was stopped.
    seconds: how long the world ran.
    output:  what each rank printed, bounded.
    report:  what the conductor found, where that is the failure.
    stands:  else, what the ranks were waiting in.
    trace:   what the ranks asked of their groups until then.
    """

    cause: RankFailure
    stuck: bool
    others: tuple[RankFailure, ...]
    seconds: float
    output: tuple[str, ...] = ()
    sources: dict[str, list[str]] = field(default_factory=dict, repr=False)
    report: Report | None = None
    stands: tuple[Stand, ...] = ()
    trace: Trace = field(default_factory=Trace, repr=False)

    def frames_of(self, failure: RankFailure, *, everything: bool = False) -> list[Frame]:
        """The frames of the submission, or all of them."""
        return [frame for frame in failure.frames if everything or frame.file in self.sources]

    def line_text(self, frame: Frame) -> str:
        """The source line of a frame of the submission, printable and bounded, or ""."""
        lines = self.sources.get(frame.file, [])
        return printable(lines[frame.line - 1].strip(), MAX_LINE) if 0 < frame.line <= len(lines) else ""

    def frame_text(self, frame: Frame) -> str:
        """ "pipeline_parallel.py:41 in forward: dist.recv(...)"; the line of the submission's own frames only."""
        line = self.line_text(frame)
        return f"{frame.file}:{frame.line} in {frame.function}" + (f": {line}" if line else "")

    def unwritten(self) -> Frame | None:
        """Where a function that is not written yet raised NotImplementedError first; None if that is not the cause.

        Not what the import called; and not where torch raised it, as it does for an operation that a device lacks:
        that line does not name the error.
        """
        cause, own = self.cause, self.frames_of(self.cause)
        if cause.error_type != "NotImplementedError" or cause.phase == "import" or not own:
            return None
        return own[-1] if "NotImplementedError" in self.line_text(own[-1]) else None

    def stand_text(self, stand: Stand) -> str:
        """ "rank 0 waits in recv from rank 1", and below it "  pipeline_parallel.py:41 in forward: dist.recv(...)"."""
        frame = Frame(stand.place.file, stand.place.line, printable(stand.place.function, 120))
        where = f"\n  {self.frame_text(frame)}" if frame.file in self.sources else ""
        return f"rank {stand.rank} {stand.doing}{where}"

    def text(self, *, everything: bool = False) -> str:
        """The whole story for a terminal: the first failure with its frames, then the others."""
        parts = []
        if self.stuck:
            ranks = [failure.rank for failure in (self.cause, *self.others)]
            listed = ", ".join(str(rank) for rank in sorted(ranks))
            some = f"rank {listed} had" if len(ranks) == 1 else f"ranks {listed} had"
            parts.append(f"{some} not finished after {self.seconds:.1f} s")
        if self.report is not None:
            return "\n".join([self.report.sentence, *map(self.stand_text, self.report.stands)])
        for failure in (self.cause, *self.others):
            parts.append(failure.headline())
            parts += [f"  {self.frame_text(frame)}" for frame in self.frames_of(failure, everything=everything)]
        return "\n".join(parts)

    __str__ = text


def read_error(rank: int, finished: int, head: dict[str, Any]) -> RankFailure:
    """A `RankFailure` from what a rank says of itself; anything in it may be wrong, nothing may be harmful."""
    error = head.get("error")
    error = error if isinstance(error, dict) else {}
    frames = error.get("frames")
    classes = error.get("classes")
    return RankFailure(
        rank=rank,
        kind=Kind.RAISED,
        phase=_text(head.get("phase"), 40),
        finished=finished,
        error_type=_text(error.get("type"), 80) or "an error",
        message=_text(error.get("message"), MAX_MESSAGE),
        classes=tuple(_text(name, 80) for name in classes[:20]) if isinstance(classes, list) else (),
        frames=tuple(_read_frame(frame) for frame in frames[-MAX_FRAMES:] if isinstance(frame, dict))
        if isinstance(frames, list)
        else (),
    )


def _read_frame(frame: dict[str, Any]) -> Frame:
    line = frame.get("line")
    return Frame(
        _text(frame.get("file"), 300),
        line if type(line) is int and 0 <= line < 10**9 else 0,
        _text(frame.get("function"), 120),
    )


def _text(told: Any, limit: int) -> str:
    """Printable and bounded; of anything that is no text nothing: to print it could take long, or fail."""
    return printable(told, limit) if isinstance(told, str) else ""
