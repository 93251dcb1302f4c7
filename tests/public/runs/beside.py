"""The order of events in all_reduce_while: issue, compute, wait. From the trace of its world.

Claims of the ranks; the proof beside them is in the program, which holds the other ranks until compute has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.checking import CheckFailed
from grader.world import Doing, Event
from grader.world.operation import Operation
from tests.public.runs.traffic import Traffic, listed, places, waits

ORDER = "start of the all-reduce, compute(), end of the wait"
KEEP_THE_HANDLE = "pass async_op=True, keep the work that comes back, and wait for it after compute, in a finally block"


def expect_beside_compute(traffic: Traffic, call: int, members: Sequence[int], *, what: str, rank: int) -> None:
    """compute() is called once; all-reduces of the group are issued before it and waited for after it."""
    events = traffic.events(rank, call)
    begun = [place for place, event in enumerate(events) if event.name == f"begun compute() of call {call}"]
    if len(begun) != 1:
        raise CheckFailed(
            f"rank {rank}: {what} called compute {len(begun)} times",
            expected="one call",
            help="compute() is called once, also in a world of 1, and its result is the second of the pair",
        )
    if len(members) == 1:
        return  # a world of 1 need not communicate
    finished = next(place for place, event in enumerate(events) if event.name == f"finished compute() of call {call}")
    traffic.expect_group(rank, call, members, what=what)
    sums = [
        (place, event.operation)
        for place, event in enumerate(events)
        if event.doing is Doing.ISSUE and event.operation is not None and event.operation.name.startswith("all_reduce")
    ]
    if not sums:
        raise CheckFailed(
            f"rank {rank}: {what} never starts an all-reduce",
            expected=ORDER,
            actual=_told(events),
            help=KEEP_THE_HANDLE,
        )
    for place, operation in sums:
        did = _disorder(events, place, operation, begun[0], finished)
        if did:
            raise CheckFailed(
                f"rank {rank}: {what} {did}",
                expected=ORDER,
                actual=_told(events),
                where=places([operation]),
                help=KEEP_THE_HANDLE,
            )


def _disorder(events: Sequence[Event], issued: int, operation: Operation, begun: int, finished: int) -> str:
    """What is wrong with one all-reduce, or ""."""
    if issued > begun:
        return "starts its all-reduce when compute() has begun, so that nothing runs beside it"
    if not operation.is_async or any(place < begun for place in waits(events, operation)):
        return "waits for its all-reduce before it calls compute(), so that nothing runs beside it"
    if any(place < finished for place in waits(events, operation)):
        return "waits for its all-reduce while compute() runs"
    return ""


def _told(events: Sequence[Event]) -> str:
    """The events as one line."""
    words = []
    for event in events:
        if event.doing is Doing.MARK:
            words.append(f"compute() {event.name.split()[0]}")
        elif event.operation is not None:
            kind = "wait for " if event.doing is not Doing.ISSUE else "" if event.operation.is_async else "blocking "
            words.append(kind + listed([event.operation]))
    return ", ".join(dict.fromkeys(words))
