"""From a world's failure to the sentence that a student reads first."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from grader.checking.failed import CheckFailed
from grader.checking.verdict import Status
from grader.world import Failure, Frame, Kind, RankFailure
from grader.world.failure import signal_name
from grader.world.report import Finding, Report

MAX_WHERE = 6


def explain(failure: Failure, *, world_size: int, cases: Sequence[str] = ()) -> CheckFailed:
    """The outcome of a check whose world failed: verdict, rationale, where, and the full story for `output`."""
    cause = failure.cause
    unwritten = _unwritten(failure)
    if unwritten:
        return CheckFailed(f"{unwritten} is not written yet", unwritten=unwritten, output=failure.text())
    if failure.report is not None:
        rationale, status = _reported(failure.report, cases), Status.FAIL
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
        help=_help(failure, world_size),
        status=status,
        output="" if failure.report is not None else failure.text(everything=True),  # `where` says it all
    )


def _reported(report: Report, cases: Sequence[str]) -> str:
    """The report's sentence; where ranks met that are in different cases, the one that is ahead left something out."""
    if not cases or report.finding is not Finding.MISMATCH:
        return report.sentence
    behind, ahead = sorted(report.stands[:2], key=lambda stand: stand.case or 0)
    if behind.case == ahead.case:
        return report.sentence
    return (
        f"rank {behind.rank} {behind.doing}, and rank {ahead.rank} has gone on to the next call without it: "
        f"there it {ahead.doing}"
    )


def _case(failure: Failure) -> int:
    """The case under way; of a report, the first that its ranks are in: there they began to disagree."""
    stands = failure.report.stands if failure.report is not None else ()
    return min((stand.case for stand in stands if stand.case is not None), default=failure.cause.finished)


def _unwritten(failure: Failure) -> str:
    """The function of the stub that raised NotImplementedError first, or ""; never one that the import called."""
    cause = failure.cause
    own = failure.frames_of(cause)
    return own[-1].function if cause.error_type == "NotImplementedError" and cause.phase != "import" and own else ""


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
    ranks = ", ".join(str(one.rank) for one in waiting)
    who = f"rank {ranks} had" if len(waiting) == 1 else f"ranks {ranks} had"
    return f"{who} not finished after {failure.seconds:.0f} s"


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
            f"rank {one.rank}: {_frame_text(failure, frame)}"
            for frame in (frames[-1:] if failure.stuck else frames[-3:])
        ]
    return "\n".join(dict.fromkeys(lines))  # a recursion's line once


def _shortened(lines: list[str]) -> list[str]:
    """As many ranks as a message has room for."""
    left_out = len(lines) - MAX_WHERE
    return lines if left_out <= 0 else [*lines[:MAX_WHERE], f"(and {left_out} more ranks)"]


def _frame_text(failure: Failure, frame: Frame) -> str:
    text = failure.line_text(frame)
    return f"{frame.file}:{frame.line} in {frame.function}" + (f": {text}" if text else "")


def _help(failure: Failure, world_size: int) -> str:
    cause = failure.cause
    if failure.report is not None:
        return failure.report.help
    if failure.stuck and cause.phase == "import":
        return "code outside functions runs at the import: leave only definitions there"
    if failure.stuck and world_size == 1:
        return "a rank alone has nobody to wait for: look for a loop that does not end, or a message to itself"
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
        case "NotImplementedError" if at_import:
            return "code outside functions runs at the import: leave only definitions there"
    return ""
