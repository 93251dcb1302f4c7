"""Reports of faults that show at a handle: never waited for, or a buffer that was written while it was in use. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grader.world.mismatch import describe, short
from grader.world.operation import Operation, Place
from grader.world.report import Finding, Report, Stand


def unwaited(rank: int, operations: Sequence[Operation]) -> Report:
    """A rank has returned and left these handles: never waited for, nor seen complete."""
    first = operations[0]
    lines = {one.place: one for one in reversed(operations)}  # the first of each line
    name = _asynchronous(first)
    more = f", nor for {len(operations) - 1} more" if len(operations) > 1 else ""
    return Report(
        Finding.UNWAITED,
        f"rank {rank} never waits for the handle of its {name}{more}",
        tuple(_issued(one) for one in operations if lines[one.place] is one)[:4],
        "keep the handle that an asynchronous operation returns, and call wait() on it: before, nothing is sure to "
        "have been sent or received",
    )


def never_met(operation: Operation) -> Report:
    """All ranks have returned, and an operation that one of them waits for in a thread has never started."""
    return Report(
        Finding.UNWAITED,
        f"all ranks have returned, and the {short(operation)} of rank {operation.rank} has never met its other side",
        (Stand(operation.rank, f"issued {describe(operation)}", operation.place, operation.case),),
        "every send needs a recv, and every rank of a group must call the collective, also from threads",
    )


def race(operation: Operation, waited: Place, *, wrote: bool) -> Report:
    """A buffer that an operation was using has been changed by its rank before wait().

    wrote: it is one that the operation writes; else one that it sends.
    """
    name = _asynchronous(operation)
    if wrote:
        sentence = f"rank {operation.rank} writes to the buffer of its {name} before it has waited for it"
        help_text = "the result is there after wait(): what is written before is lost, or mixed with it"
    else:
        sentence = f"rank {operation.rank} changes what its {name} is sending before it has waited for it"
        help_text = "call wait() on the handle first, or send a copy that nobody changes"
    stands = (
        _issued(operation),
        Stand(operation.rank, "had changed the buffer when it waited", waited),
    )
    return Report(Finding.RACE, sentence, stands, help_text)


def _issued(operation: Operation) -> Stand:
    prefix = "i" if operation.name in ("send", "recv") else "an asynchronous "
    return Stand(operation.rank, f"issued {prefix}{describe(operation)}", operation.place, operation.case)


def _asynchronous(operation: Operation) -> str:
    """The operation by the name of its asynchronous form."""
    return f"i{short(operation)}" if operation.name in ("send", "recv") else f"asynchronous {operation.name}"
