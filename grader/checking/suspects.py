"""Lines worth a look where values are wrong and no operation was at fault by itself. Claims of the ranks, not proof."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from grader.world import Doing, Submitted, Trace
from grader.world.failure import MAX_LINE, printable
from grader.world.mismatch import short
from grader.world.operation import NOWHERE, Operation, Place

MAX_SUSPECTS = 4
ROOTED = frozenset({"reduce", "gather"})


def suspects(trace: Trace, submitted: Submitted, *, read_too_early: bool) -> list[str]:
    """At most a few lines of text, each about one operation of the submission.

    Operations that met across two calls, of which one rank has left one out; collectives that met from different lines
    (two of the same shape in another order give wrong sums and nothing else); results that only the root has, where
    other ranks go on; and, if NaN was read (`read_too_early`), where asynchronous operations were issued and awaited.
    """
    lines = submitted.source.decode("utf-8", errors="replace").splitlines()

    def at(place: Place) -> str:
        text = printable(lines[place.line - 1].strip(), MAX_LINE) if 0 < place.line <= len(lines) else ""
        return f"{submitted.file_name}:{place.line}" + (f": {text}" if text else "")

    def is_own(operation: Operation) -> bool:
        return operation.place.file == submitted.file_name and operation.place.asker == "submission"

    found = chain(
        _waits(trace) if read_too_early else (),
        _met_from_two_calls(trace),
        _met_from_two_lines(trace),
        _on_the_root_alone(trace),
    )
    told: dict[str, None] = {}
    seen: set[tuple[int, int]] = set()
    for words, first, more, second in found:
        if not is_own(first) or (first.place.line, second.line) in seen or second.file not in ("", submitted.file_name):
            continue
        seen.add((first.place.line, second.line))
        told[f"{words} {at(first.place)}{more}" + (f" {at(second)}" if second.file else "")] = None
        if len(told) >= MAX_SUSPECTS:
            break
    return list(told)


_Found = Iterator[tuple[str, Operation, str, Place]]  # words, an operation, more words, and a second place


def _met_from_two_calls(trace: Trace) -> _Found:
    for operations in trace.met:
        behind = min(operations, key=lambda one: one.case)
        for other in operations:
            if other.case > behind.case:
                more = f"\n  met that of rank {other.rank} in a later call (rank {other.rank} has left one out) at"
                yield f"{short(behind)} of rank {behind.rank} at", behind, more, other.place


def _met_from_two_lines(trace: Trace) -> _Found:
    for operations in trace.met:
        first = operations[0]
        for other in operations[1:]:
            if first.name == other.name and first.place.line != other.place.line:
                more = f"\n  met that of rank {other.rank} at"
                yield f"{first.name} of rank {first.rank} at", first, more, other.place


def _on_the_root_alone(trace: Trace) -> _Found:
    for operation in trace.issued():
        if operation.name in ROOTED and operation.root is not None:
            more = f"\n  leaves its result on rank {operation.group[operation.root]} alone"
            yield f"{operation.name} at", operation, more, NOWHERE


def _waits(trace: Trace) -> _Found:
    for event in trace:
        operation = event.operation
        waits = event.doing in (Doing.WAIT, Doing.POLL)
        if waits and operation is not None and operation.name != "send" and operation.place.line != event.place.line:
            yield f"the result of {short(operation)} issued at", operation, "\n  is NaN until wait() at", event.place
