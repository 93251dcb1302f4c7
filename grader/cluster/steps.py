"""What the ranks of a world did, in steps of order: from its trace, and the same for every run of the same code.

A step is no time. A computation that the program marks takes one step. An operation starts when all its members have
issued it and the one before it on the same stream is complete; it takes as many steps as `Lasting` says. A rank that
waits goes on when the operation is complete. So a step depends on each rank's own order, and on who meets whom, and
never on which of two ranks happened to be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from grader.world.operation import POINT_TO_POINT, Operation
from grader.world.trace import Doing, Event, Trace

_Key = tuple[int, int]  # rank and seq of an operation
_Stream = tuple[int, int, int]  # group id, and of a message its sender and receiver


@dataclass(frozen=True)
class Lasting:
    """Steps from the start of an operation to its end, at least 0."""

    collective: int = 1
    message: int = 1


@dataclass(frozen=True)
class Computation:
    """A marked computation: it takes the steps from `begin` to `end`, which is begin + 1."""

    rank: int
    name: str
    begin: int
    end: int


@dataclass(frozen=True)
class Wait:
    """A rank that does nothing from `begin` to `end`, until the operation that it waits for is complete."""

    rank: int
    begin: int
    end: int


@dataclass(frozen=True)
class Transfer:
    """One rank's part of an operation, issued at `issued`, under way from `begin` to `end`."""

    operation: Operation
    issued: int
    begin: int
    end: int

    @property
    def rank(self) -> int:
        """Of the world."""
        return self.operation.rank


@dataclass(frozen=True)
class Timeline:
    """All that `size` ranks did in `steps` steps; each list by rank, then in the rank's own order."""

    size: int
    steps: int
    computations: tuple[Computation, ...]
    waits: tuple[Wait, ...]
    transfers: tuple[Transfer, ...]

    def busy(self, rank: int) -> int:
        """Steps in which the rank computes."""
        return sum(one.end - one.begin for one in self.computations if one.rank == rank)

    def idle(self, rank: int) -> int:
        """Steps in which it does not: it waits, or has not begun, or is done."""
        return self.steps - self.busy(rank)


def timeline_of(trace: Trace, size: int, *, case: int, lasting: Lasting | None = None) -> Timeline:
    """The timeline of one case, which begins at step 0 on every rank. Forming groups, polls and holds take no step.

    Raises ValueError if events were lost, or if a rank waits for an operation that never starts.
    """
    if not trace.complete:
        raise ValueError("the world did more than its trace could keep")
    lasting = lasting or Lasting()
    meetings = _Meetings(trace, lasting)
    ranks = [_Rank(rank, list(trace.of(rank, case)), meetings) for rank in range(size)]
    moved = True
    while moved:
        moved = False
        for rank in ranks:
            moved = rank.go_on() or moved
    stuck = [rank.number for rank in ranks if rank.left]
    if stuck:
        raise ValueError(f"rank {stuck[0]} waits for an operation that does not start")
    transfers = [transfer for rank in ranks for transfer in rank.transfers()]
    ends = [rank.now for rank in ranks] + [transfer.end for transfer in transfers]
    return Timeline(
        size,
        max(ends, default=0),
        tuple(one for rank in ranks for one in rank.computations),
        tuple(one for rank in ranks for one in rank.waits),
        tuple(transfers),
    )


class _Meetings:
    """Who meets whom, when each has issued, and when it began and ended."""

    def __init__(self, trace: Trace, lasting: Lasting) -> None:
        self._lasting = lasting
        self._members: dict[_Key, tuple[Operation, ...]] = {
            _key(one): met for met in trace.met for one in met if one.name != "new_group"
        }
        self._issued: dict[_Key, int] = {}
        self._free: dict[_Stream, int] = {}
        self._spans: dict[_Key, tuple[int, int]] = {}

    def issue(self, operation: Operation, step: int) -> None:
        """The rank asks for it at this step; it starts with the last of its members."""
        self._issued[_key(operation)] = step
        members = self._members.get(_key(operation), ())
        if not members or any(_key(one) not in self._issued for one in members):
            return
        stream = _stream(members[0])
        begin = max([self._issued[_key(one)] for one in members] + [self._free.get(stream, 0)])
        is_message = operation.name in POINT_TO_POINT
        end = begin + (self._lasting.message if is_message else self._lasting.collective)
        self._free[stream] = end
        for one in members:
            self._spans[_key(one)] = begin, end

    def transfer(self, operation: Operation) -> Transfer | None:
        """This rank's part, once it is known when it takes place."""
        span = self._spans.get(_key(operation))
        return None if span is None else Transfer(operation, self._issued[_key(operation)], *span)

    def was_issued(self, operation: Operation) -> bool:
        """Whether it was asked for in this case."""
        return _key(operation) in self._issued


@dataclass
class _Rank:
    """One rank on its way through its events: `now` is the step that it has come to."""

    number: int
    left: list[Event]
    meetings: _Meetings
    now: int = 0
    computations: list[Computation] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    def go_on(self) -> bool:
        """Takes its events up to the first that has to wait for another rank. Returns whether it took one."""
        took = 0
        for event in self.left:
            if not self._take(event):
                break
            took += 1
        del self.left[:took]
        return took > 0

    def _take(self, event: Event) -> bool:
        operation = event.operation
        if event.doing is Doing.MARK:
            self.computations.append(Computation(self.number, event.name, self.now, self.now + 1))
            self.now += 1
        elif event.doing is Doing.ISSUE and operation is not None:
            if not self.meetings.was_issued(operation):
                self.meetings.issue(operation, self.now)
                self.operations.append(operation)
            return operation.is_async or self._wait_for(operation)
        elif event.doing is Doing.WAIT and operation is not None:
            return not self.meetings.was_issued(operation) or self._wait_for(operation)
        return True

    def _wait_for(self, operation: Operation) -> bool:
        transfer = self.meetings.transfer(operation)
        if transfer is None:
            return False
        if transfer.end > self.now:
            self.waits.append(Wait(self.number, self.now, transfer.end))
            self.now = transfer.end
        return True

    def transfers(self) -> Iterator[Transfer]:
        """All that took place, in the order in which the rank asked for them."""
        found: Sequence[Transfer | None] = [self.meetings.transfer(one) for one in self.operations]
        return (transfer for transfer in found if transfer is not None)


def _key(operation: Operation) -> _Key:
    return operation.rank, operation.seq


def _stream(operation: Operation) -> _Stream:
    """Collectives of a group follow each other; so do the messages of one direction between two ranks."""
    peer = operation.peer_rank
    if operation.name not in POINT_TO_POINT or peer is None:
        return operation.group_id, -1, -1
    sender, receiver = (operation.rank, peer) if operation.name == "send" else (peer, operation.rank)
    return operation.group_id, sender, receiver
