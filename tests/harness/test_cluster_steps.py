"""Steps from hand-made traces: they follow from each rank's order and from who meets whom, and from nothing else."""

from __future__ import annotations

import itertools

import pytest

from grader.cluster.steps import Lasting, Timeline, Wait, timeline_of
from grader.world import Doing, Event, Trace
from grader.world.operation import Operation


def mark(rank: int, name: str) -> Event:
    return Event(rank, Doing.MARK, 1, name=name)


def issue(operation: Operation) -> Event:
    return Event(operation.rank, Doing.ISSUE, operation.case, operation)


def wait(operation: Operation) -> Event:
    return Event(operation.rank, Doing.WAIT, operation.case, operation)


def reduction(rank: int, seq: int, *, is_async: bool) -> Operation:
    return Operation(rank, seq, "all_reduce", (0, 1), is_async=is_async, case=1)


def message(rank: int, seq: int, name: str, peer: int) -> Operation:
    return Operation(rank, seq, name, (0, 1), peer=peer, is_async=True, case=1)


def computed(timeline: Timeline, rank: int) -> list[tuple[str, int]]:
    return [(each.name, each.begin) for each in timeline.computations if each.rank == rank]


def overlapped() -> tuple[list[list[Event]], list[tuple[Operation, ...]]]:
    """Two ranks; rank 1 computes one step more before it issues; both compute on while the operation is under way."""
    first, second = (reduction(rank, 0, is_async=True) for rank in (0, 1))
    ranks = [
        [mark(0, "B2"), issue(first), mark(0, "B1"), wait(first), mark(0, "end")],
        [mark(1, "late"), mark(1, "B2"), issue(second), mark(1, "B1"), wait(second), mark(1, "end")],
    ]
    return ranks, [(first, second)]


def test_a_collective_starts_with_its_last_member_and_overlaps_what_is_computed_meanwhile() -> None:
    """Issued at 1 and at 2, it lasts from 2 to 3: rank 0 waits for it in step 2, rank 1 computes through it."""
    ranks, met = overlapped()
    timeline = timeline_of(Trace([*ranks[0], *ranks[1]], met), 2, case=1)
    assert [(each.issued, each.begin, each.end) for each in timeline.transfers] == [(1, 2, 3), (2, 2, 3)]
    assert computed(timeline, 0) == [("B2", 0), ("B1", 1), ("end", 3)]
    assert computed(timeline, 1) == [("late", 0), ("B2", 1), ("B1", 2), ("end", 3)]
    assert timeline.waits == (Wait(0, 2, 3),)
    assert (timeline.steps, timeline.idle(0), timeline.idle(1)) == (4, 1, 0)


def test_the_order_in_which_ranks_were_heard_changes_nothing() -> None:
    """Every interleaving of the two ranks' events is one timeline."""
    ranks, met = overlapped()
    length = len(ranks[0]) + len(ranks[1])
    found = set()
    for places in itertools.combinations(range(length), len(ranks[0])):
        own = [iter(ranks[0]), iter(ranks[1])]
        events = [next(own[0] if place in places else own[1]) for place in range(length)]
        found.add(timeline_of(Trace(events, met), 2, case=1))
    assert len(found) == 1


def test_synchronous_collectives_follow_each_other_while_the_rank_is_idle() -> None:
    """Two of them take two steps."""
    pairs = [(reduction(0, seq, is_async=False), reduction(1, seq, is_async=False)) for seq in (0, 1)]
    events = [issue(pair[rank]) for rank in (0, 1) for pair in pairs]
    timeline = timeline_of(Trace(events, pairs), 2, case=1)
    assert [(each.begin, each.end) for each in timeline.transfers if each.rank == 0] == [(0, 1), (1, 2)]
    assert timeline.steps == 2
    assert timeline.waits == (Wait(0, 0, 1), Wait(0, 1, 2), Wait(1, 0, 1), Wait(1, 1, 2))


@pytest.mark.parametrize(("lasting", "begins"), [(0, 1), (1, 2)])
def test_a_receiver_computes_when_the_message_is_there(lasting: int, begins: int) -> None:
    """The message starts when both sides have asked for it, and takes as many steps as it is said to."""
    send, receive = message(0, 0, "send", 1), message(1, 0, "recv", 0)
    events = [mark(0, "F0"), issue(send), wait(send), issue(receive), wait(receive), mark(1, "F0")]
    timeline = timeline_of(Trace(events, [(send, receive)]), 2, case=1, lasting=Lasting(message=lasting))
    assert computed(timeline, 1) == [("F0", begins)]


def test_only_the_case_asked_for_counts() -> None:
    """What the program did before is left out."""
    events = [Event(0, Doing.MARK, 0, name="before"), mark(0, "F0")]
    assert computed(timeline_of(Trace(events), 1, case=1), 0) == [("F0", 0)]


def test_what_never_starts_or_was_lost_is_refused() -> None:
    """There is no timeline of it."""
    alone = reduction(0, 0, is_async=False)
    with pytest.raises(ValueError, match="rank 0 waits for an operation that does not start"):
        timeline_of(Trace([issue(alone)]), 2, case=1)
    with pytest.raises(ValueError, match="more than its trace could keep"):
        timeline_of(Trace([], complete=False), 1, case=1)
