"""From a world's failure to the sentence that a student reads first."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from grader.checking.failed import CheckFailed
from grader.checking.verdict import Status
from grader.world import Failure, Frame, Kind, RankFailure
from grader.world.failure import signal_name
from grader.world.mismatch import LEFT_OUT
from grader.world.report import Finding, Report, ranks_text

MAX_WHERE = 6
MAX_FRAMES = 3  # of a rank that raised
NO_GROUP = re.compile(r"Default process group has not been initialized|Process group cannot be None")
MACHINERY = re.compile(r"/torch/distributed/|/grader/world/|/threading\.py$")


def explain(failure: Failure, *, world_size: int, cases: Sequence[str] = ()) -> CheckFailed:
    """The outcome of a check whose world failed: verdict, rationale, where, and the full story for `output`."""
    cause = failure.cause
    frame = failure.unwritten()
    unwritten = frame.function if frame is not None else ""
    if unwritten:
        return CheckFailed(f"{unwritten} is not written yet", unwritten=unwritten, output=failure.text())
    if failure.report is not None:
        rationale, status = _reported(failure, failure.report, cases), Status.FAIL
    elif failure.stuck:
        rationale, status = _stuck(failure), Status.TIMEOUT
    else:
        rationale, status = _first(cause), _status(cause)
    number = _case(failure)
    case = cases[number] if cause.phase == "program" and number < len(cases) else ""
    size = f"in a world of {world_size}" if world_size > 1 else "in a world of one rank"
    return CheckFailed(
        f"{rationale} ({size}{', ' + case if case else ''})",
        where=_where(failure),
        help=_help(failure, world_size, cases),
        status=status,
        output=_story(failure),
    )


def _reported(failure: Failure, report: Report, cases: Sequence[str]) -> str:
    """The report's sentence; where ranks met that are in different cases, the one that is ahead left something out."""
    returned = _returned(failure, report)
    if returned is not None:
        inside = report.stands[1 - returned]
        return f"rank {inside.rank} {inside.doing}, and rank {report.stands[returned].rank} has returned without it"
    if not cases or not _in_two_calls(report):
        return report.sentence
    behind, ahead = sorted(report.stands[:2], key=lambda stand: stand.case or 0)
    return (
        f"rank {behind.rank} {behind.doing}, and rank {ahead.rank} has gone on to the next call without it: "
        f"there it {ahead.doing}"
    )


def _in_two_calls(report: Report) -> bool:
    """Whether ranks that met in an operation, and disagree on it, are not in the same call of the submission."""
    return report.finding is Finding.MISMATCH and report.stands[0].case != report.stands[1].case


def _returned(failure: Failure, report: Report) -> int | None:
    """Which of two ranks that met is in an operation of the check itself: 0 or 1; it has left the submission."""
    outside = [
        stand.place.asker == "program" and stand.place.file not in failure.sources for stand in report.stands[:2]
    ]
    return outside.index(True) if report.finding is Finding.MISMATCH and outside.count(True) == 1 else None


def _case(failure: Failure) -> int:
    """The case under way; of a report, the first that its ranks are in: there they began to disagree."""
    stands = failure.report.stands if failure.report is not None else ()
    return min((stand.case for stand in stands if stand.case is not None), default=failure.cause.finished)


def _status(cause: RankFailure) -> Status:
    if cause.kind is Kind.ENDED or cause.error_type in ("SystemExit", "KeyboardInterrupt"):
        return Status.CRASH
    return Status.FAIL


def _first(cause: RankFailure) -> str:
    phase = {"import": " while the module was imported", "join": " while it joined the process group"}
    at = phase.get(cause.phase, "")
    match cause.kind:
        case Kind.RAISED if cause.error_type == "SystemExit":
            return f"rank {cause.rank} left the interpreter with sys.exit{at}"
        case Kind.RAISED:
            message = f": {cause.message}" if cause.message else ""
            return f"rank {cause.rank} raised {cause.error_type}{at}{message}"
        case Kind.ENDED if cause.signal:
            return f"rank {cause.rank} was ended by the signal {signal_name(cause.signal)}{at}"
        case Kind.ENDED:
            return f"rank {cause.rank} left the interpreter with exit code {cause.exit_code}{at}"
        case _:
            return f"rank {cause.rank} returned something that cannot be read: {cause.message}"


def _stuck(failure: Failure) -> str:
    waiting = sorted((failure.cause, *failure.others), key=lambda one: one.rank)
    if any(one.phase == "import" for one in waiting):
        return f"importing the module did not end within {failure.seconds:.0f} s"
    busy = [one.rank for one in waiting if one.rank in _busy(failure)]
    others = [one.rank for one in waiting if one.rank not in busy]
    if busy and others:
        wait = f"{ranks_text(others)} wait{'s' if len(others) == 1 else ''}"
        return f"after {failure.seconds:.0f} s {ranks_text(busy)} still ran, in no operation, and {wait}"
    ranks = ", ".join(str(one.rank) for one in waiting)
    who = f"rank {ranks} had" if len(waiting) == 1 else f"ranks {ranks} had"
    return f"{who} not finished after {failure.seconds:.0f} s"


def _busy(failure: Failure) -> set[int]:
    """The ranks of a stuck world that are in none of torch's operations, and not held by the check."""
    return {one.rank for one in (failure.cause, *failure.others)} - {stand.rank for stand in failure.stands}


def _story(failure: Failure) -> str:
    """What each rank was doing, with its lines; "" where the rationale and `where` say it all."""
    if failure.report is not None:
        return ""
    cause = failure.cause
    if not failure.others and 0 < len(failure.frames_of(cause)) <= MAX_FRAMES and cause.phase == "program":
        return ""
    told = [replace(one, frames=_outside_the_machinery(failure, one)) for one in (cause, *failure.others)]
    return replace(failure, cause=told[0], others=tuple(told[1:])).text(everything=True)


def _outside_the_machinery(failure: Failure, one: RankFailure) -> tuple[Frame, ...]:
    """Its frames without the innermost ones that are torch.distributed's, or those of the harness that traces it."""
    if not failure.frames_of(one):
        return one.frames
    frames = list(one.frames)
    while frames[-1].file not in failure.sources and MACHINERY.search(frames[-1].file):
        frames.pop()
    return tuple(frames)


def _where(failure: Failure) -> str:
    """A line for each rank that did not finish, at the submission's innermost line; the cause's first."""
    if failure.report is not None:
        return "\n".join(_shortened([failure.stand_text(stand) for stand in failure.report.stands]))
    waiting = {stand.rank: failure.stand_text(stand) for stand in failure.stands}
    lines = []
    shown = (failure.cause, *failure.others) if failure.stuck else (failure.cause,)
    for one in shown[:MAX_WHERE]:
        frames = failure.frames_of(one)
        if failure.stuck and one.rank in waiting:
            lines.append(waiting[one.rank])
            continue
        if not frames:
            lines += [f"rank {one.rank}: outside your code"] if one.phase != "import" else []
            continue
        lines += [
            f"rank {one.rank}: {failure.frame_text(frame)}"
            for frame in (frames[-1:] if failure.stuck else frames[-MAX_FRAMES:])
        ]
    return "\n".join(dict.fromkeys(lines))  # a recursion's line once


def _shortened(lines: list[str]) -> list[str]:
    """As many ranks as a message has room for."""
    left_out = len(lines) - MAX_WHERE
    return lines if left_out <= 0 else [*lines[:MAX_WHERE], f"(and {left_out} more ranks)"]


def _help(failure: Failure, world_size: int, cases: Sequence[str]) -> str:
    cause = failure.cause
    if failure.report is not None:
        gone_on = _returned(failure, failure.report) is not None or (cases and _in_two_calls(failure.report))
        return LEFT_OUT if gone_on else failure.report.help
    if failure.stuck and cause.phase == "import":
        return "code outside functions runs at the import: leave only definitions there"
    if failure.stuck and world_size == 1:
        return "a rank alone has nobody to wait for: look for a loop that does not end, or a message to itself"
    if failure.stuck and _busy(failure):
        return (
            f"no operation is waited for by {ranks_text(sorted(_busy(failure)))}: look at the line shown for a loop "
            "that does not end, or for a wait on a thread"
        )
    if failure.stuck:
        return (
            "each rank above waits at the line shown: find the operation that its peer should have started, "
            "and make every send meet a receive in the same order on both sides"
        )
    if cause.kind is Kind.ENDED and cause.signal == signal.SIGABRT:
        return (
            "an abort inside an operation: do all ranks pass the same shape and dtype, and buffers of the right size?"
        )
    return _help_with_error(cause)


def _help_with_error(cause: RankFailure) -> str:
    at_import = cause.phase == "import"
    match cause.error_type:
        case "BdbQuit" | "EOFError":
            return "a rank has no keyboard: take out breakpoint() and input(), and print instead"
        case "ImportError" | "ModuleNotFoundError":
            return "a module may import the standard library, torch and grader.given, and no other module of yours"
        case "SyntaxError" if "null bytes" in cause.message or "codec can't decode" in cause.message:
            return "the file is not plain text in UTF-8: save it in that encoding"
        case "ValueError" | "AssertionError" if NO_GROUP.search(cause.message):
            return (
                "the process group is there before your function is called, and is needed after it: leave "
                "destroy_process_group() to cleanup()"
            )
        case "ValueError" if "rank should not be the same as the rank of the current process" in cause.message:
            return "a rank sends nothing to itself: leave the own rank out of the loop, and copy the own part"
        case "AttributeError" if "'NoneType' object has no attribute 'wait'" in cause.message:
            return (
                "a collective returns a handle with async_op=True only; without, it has waited already and returns None"
            )
        case "NotImplementedError" if at_import:
            return "code outside functions runs at the import: leave only definitions there"
    return ""
