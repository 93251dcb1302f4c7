"""Which operations belong together: of one collective, of a message, of the forming of a group. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from grader.world.operation import Operation

MAX_FROM_ANY = 500  # that wait at the same time: each choice looks at all of them

_Slot = dict[int, Operation]  # by rank
_Route = tuple[int, int, int, int]  # group id, sender, receiver, tag


@dataclass
class Group:
    """A formed group. counts: by rank, how many collectives it has issued; slots: those that not all have issued."""

    number: int
    ranks: tuple[int, ...]
    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    slots: dict[int, _Slot] = field(default_factory=dict)


class Meetings:
    """The operations that wait for others to be complete.

    The n-th collective of a rank in a group meets the n-th of every other member. A send meets a receive of the
    same group, ends and tag, in the order of each side. A receive from any rank meets nothing by itself.
    """

    def __init__(self) -> None:
        self._formed = 0
        self._named: dict[tuple[str, int], Operation] = {}  # the first form under a name, by it and the restarts
        self._names: dict[int, set[str]] = defaultdict(set)  # by rank, since its last restart
        self._restarts: dict[int, int] = defaultdict(int)  # by rank: how often torch's count began again
        self._forming: dict[tuple[str, tuple[int, ...]], _Slot] = defaultdict(dict)
        self._messages: dict[_Route, deque[Operation]] = defaultdict(deque)
        self._from_any: list[Operation] = []
        self._slot_of: dict[tuple[int, int], tuple[_Slot, tuple[int, ...]]] = {}  # by rank and seq

    def other_of_this_name(self, operation: Operation, name: str) -> Operation | None:
        """A form under the same name for which it means other members: ranks that number their groups differently.

        torch names a group by the count of its groups, unless it makes the name from the members. So ranks that call
        new_group only for groups that they are in give one name to several; gloo would connect the wrong ones.
        """
        if not name.isdigit():
            return None
        names = self._names[operation.rank]
        if name in names:  # torch counts from 0 again after destroy_process_group
            names.clear()
            self._restarts[operation.rank] += 1
        names.add(name)
        first = self._named.setdefault((name, self._restarts[operation.rank]), operation)
        return None if first.group == operation.group else first

    def form(self, operation: Operation, name: str) -> tuple[Group | None, list[Operation]]:
        """The group, once all its members have asked for it, and what each asked. ValueError if one asks twice."""
        slot = self._forming[name, operation.group]
        if operation.rank in slot:
            raise ValueError("a group that this rank forms already")
        slot[operation.rank] = operation
        self._slot_of[operation.rank, operation.seq] = slot, operation.group
        if len(slot) < len(operation.group):
            return None, []
        del self._forming[name, operation.group]
        self._formed += 1
        return Group(self._formed, operation.group), self._done(list(slot.values()))

    def issue(self, operation: Operation, group: Group) -> tuple[list[Operation], list[Operation]]:
        """(those that it meets so far, all of them if it completes them, else []), itself included in the second."""
        if operation.name in ("send", "recv"):
            return self._message(operation)
        number = group.counts[operation.rank]
        group.counts[operation.rank] += 1
        slot = group.slots.setdefault(number, {})
        others = list(slot.values())
        slot[operation.rank] = operation
        self._slot_of[operation.rank, operation.seq] = slot, group.ranks
        if len(slot) < len(group.ranks):
            return others, []
        del group.slots[number]
        return others, self._done([slot[rank] for rank in group.ranks])

    def _message(self, operation: Operation) -> tuple[list[Operation], list[Operation]]:
        if operation.peer is None:
            if len(self._from_any) >= MAX_FROM_ANY:
                raise ValueError("more receives from any rank than there is room for")
            self._from_any.append(operation)
            return [], []
        route = _route(operation)
        waiting = self._messages[route]
        if waiting and waiting[0].name != operation.name:
            other = self._take(route)
            return [other], [other, operation]
        waiting.append(operation)
        return [], []

    def from_any(self) -> list[Operation]:
        """A send, and the receive from any rank that takes it: the lowest receiver and sender. [] if there are none."""
        for operation in sorted(self._from_any, key=lambda one: (one.rank, one.seq)):
            for source in operation.group:
                named = operation.with_peer(source)
                route = _route(named)
                waiting = self._messages.get(route)
                if waiting and waiting[0].name == "send":
                    self._from_any.remove(operation)
                    return [self._take(route), named]
        return []

    def _take(self, route: _Route) -> Operation:
        """The first that waits there. A route that nobody waits on is forgotten: each tag makes another one."""
        waiting = self._messages[route]
        first = waiting.popleft()
        if not waiting:
            del self._messages[route]
        return first

    def missing(self, operation: Operation) -> tuple[int, ...]:
        """The ranks that an operation waits for; none where all have come, and disagree."""
        if operation.name in ("send", "recv"):
            peer = operation.peer_rank
            return tuple(rank for rank in operation.group if rank != operation.rank) if peer is None else (peer,)
        slot, ranks = self._slot_of.get((operation.rank, operation.seq), ({}, ()))
        return tuple(rank for rank in ranks if rank not in slot)

    def _done(self, operations: list[Operation]) -> list[Operation]:
        for operation in operations:
            del self._slot_of[operation.rank, operation.seq]
        return operations


def _route(operation: Operation) -> _Route:
    """Where a message goes: the same for its two ends."""
    peer = operation.peer_rank
    assert peer is not None
    sender, receiver = (operation.rank, peer) if operation.name == "send" else (peer, operation.rank)
    return operation.group_id, sender, receiver, operation.tag
