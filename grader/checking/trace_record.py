"""A trace as plain JSON values. Pure."""

from __future__ import annotations

from typing import Any

from grader.checking.context import Ran
from grader.world.operation import Operation, Place, Spec
from grader.world.trace import Event


def trace_record(ran: Ran) -> dict[str, Any]:
    """One world: what it ran, its events in the order in which they were heard, and which operations met.

    met: lists of [rank, seq], each an operation of an event.
    """
    return {
        "program": ran.program,
        "world_size": ran.world_size,
        "cases": list(ran.cases),
        "failed": ran.failure is not None,
        "complete": ran.trace.complete,
        "events": [_event(event) for event in ran.trace],
        "met": [[[one.rank, one.seq] for one in met] for met in ran.trace.met],
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "rank": event.rank,
        "doing": event.doing.value,
        "case": event.case,
        "name": event.name,
        "missing": list(event.missing),
        "place": _place(event.place),
        "operation": _operation(event.operation) if event.operation is not None else None,
    }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "seq": operation.seq,
        "name": operation.name,
        "group": list(operation.group),
        "group_id": operation.group_id,
        "reads": [_spec(spec) for spec in operation.reads],
        "writes": [_spec(spec) for spec in operation.writes],
        "reduce_op": operation.reduce_op,
        "root": operation.root,
        "peer": operation.peer,
        "tag": operation.tag,
        "async": operation.is_async,
    }


def _spec(spec: Spec) -> dict[str, Any]:
    return {"dtype": spec.dtype, "shape": list(spec.shape)}


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "function": place.function, "asker": place.asker}
