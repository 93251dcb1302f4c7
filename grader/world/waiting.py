"""Who waits for whom when no rank can go on: the circle, or the rank that has ended, in words. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.world.mismatch import EVERY_GROUP, LEFT_OUT, called, describe, short
from grader.world.operation import NOWHERE, Operation, Place
from grader.world.report import Finding, Report, Stand, ranks_text


@dataclass(frozen=True)
class Blocked:
    """A rank that waits.

    place:   where it waits.
    missing: the ranks that it waits for.
    operation, mark: for what: an operation, or a mark of the program's.
    polls:   it asks again and again, instead of waiting.
    case:    how many values it has returned.
    """

    rank: int
    place: Place
    missing: tuple[int, ...]
    operation: Operation | None = None
    mark: str = ""
    polls: bool = False
    case: int = 0

    @property
    def waits_elsewhere(self) -> bool:
        """The operation was issued at another line than that at which the rank waits for it."""
        return self.operation is not None and self.operation.place[:2] != self.place[:2]

    def doing(self, *, with_group: bool = False) -> str:
        """In a few words: "waits in recv from rank 1 of float32 (3,)"."""
        if self.operation is None or self.operation.name == "new_group":
            return self.briefly()
        verb = "asks again and again for" if self.polls else "waits in"
        group = f" in the group {list(self.operation.group)}" if with_group else ""
        where = f" (issued at line {self.operation.place.line})" if self.waits_elsewhere else ""
        return f"{verb} {describe(self.operation)}{group}{where}"

    def briefly(self, *, with_group: bool = False) -> str:
        """Without tensors."""
        if self.operation is None:
            return f"is held until rank {self.missing[0]} has {self.mark}"
        if self.operation.name == "new_group":
            return f"waits for the group {list(self.operation.group)} to be formed"
        group = f" in the group {list(self.operation.group)}" if with_group else ""
        return f"{'asks again and again for' if self.polls else 'waits in'} {short(self.operation)}{group}"


def deadlock(blocked: Mapping[int, Blocked], ended: Iterable[int], unmatched: Sequence[Operation]) -> Report:
    """The report of a world in which every rank of `blocked` waits and all others have returned.

    unmatched: sends and receives that have not met their other end.
    """
    gone = set(ended)
    finding = Finding.LIVELOCK if any(one.polls for one in blocked.values()) else Finding.DEADLOCK
    told = (
        _other_tag(blocked, unmatched)
        or _two_counts(blocked)
        or _held(blocked, gone)
        or _waits_for_ended(blocked, gone)
        or _gone_on(blocked)
        or _circle(blocked)
    )
    sentence, help_text, first = told
    several_groups = len({one.operation.group_id for one in blocked.values() if one.operation is not None}) > 1
    stands = [Stand(one.rank, one.doing(with_group=several_groups), one.place, one.case) for one in blocked.values()]
    stands.sort(key=lambda stand: (stand.rank not in first, stand.rank))
    stands += [Stand(rank, "has returned from the program", NOWHERE) for rank in sorted(gone)]
    return Report(finding, sentence, tuple(stands), help_text)


_Told = tuple[str, str, Sequence[int]]  # the sentence, one thing to try, the ranks to show first


def _waits_for_ended(blocked: Mapping[int, Blocked], gone: set[int]) -> _Told | None:
    for one in sorted(blocked.values(), key=lambda one: one.rank):
        away = [rank for rank in one.missing if rank in gone]
        if not away or one.operation is None:
            continue
        name = one.operation.name
        if name in ("send", "recv"):
            never, help_text = _no_message(one.operation, away)
            return f"rank {one.rank} waits for {never}", help_text, [one.rank]
        waiting = sorted(
            other.rank
            for other in blocked.values()
            if other.operation is not None and other.operation.name == name and set(away) & set(other.missing)
        )
        name = name if name == "new_group" else called(one.operation)
        who = f"{ranks_text(waiting)} wait{'s' if len(waiting) == 1 else ''}"
        returned = f"{ranks_text(away)} {'has' if len(away) == 1 else 'have'} returned without"
        if name == "new_group":
            group = list(one.operation.group)
            return f"{who} for the group {group} to be formed: {returned} forming it", EVERY_GROUP, waiting
        help_text = (
            "every rank of the group must call it, and as often as the others, also one that has nothing to give"
        )
        return f"{who} in {name}: {returned} calling it", help_text, waiting
    return None


def _no_message(operation: Operation, away: Sequence[int]) -> tuple[str, str]:
    """What a send or a receive waits for in vain, and one thing to try."""
    if operation.name == "send":
        help_text = "every send needs a recv on the other side: does the receiver leave its loop too early?"
        return f"rank {away[0]} to receive its message, and that rank has returned", help_text
    if operation.peer is None:
        return "a message from any rank, and none sends one", "every recv needs a send on the other side"
    help_text = "every recv needs a send on the other side: does the sender leave its loop too early?"
    return f"a message that rank {away[0]} never sends: that rank has returned", help_text


def _gone_on(blocked: Mapping[int, Blocked]) -> _Told | None:
    """A rank that waits in vain for one that has ended this call, and waits in a later one."""
    for one in sorted(blocked.values(), key=lambda one: (one.case, one.rank)):
        for late in one.missing:
            if late in blocked and late != one.rank and blocked[late].case > one.case:
                ahead = blocked[late]
                call = "the next call" if ahead.case == one.case + 1 else "a later call"
                sentence = (
                    f"rank {one.rank} {one.briefly()}, and rank {late} has gone on to {call} without it: "
                    f"there it {ahead.briefly()}"
                )
                return sentence, LEFT_OUT, [one.rank, late]
    return None


def _circle(blocked: Mapping[int, Blocked]) -> _Told:
    """Every rank waits for one that waits, so some wait in a circle: the shortest."""
    circle = min((found for rank in sorted(blocked) if (found := _way_back(rank, blocked))), key=len, default=[])
    circle = circle or [min(blocked)]
    operations = [operation for rank in circle if (operation := blocked[rank].operation) is not None]
    several_groups = len({operation.group_id for operation in operations}) > 1
    told = ", ".join(f"rank {rank} {blocked[rank].briefly(with_group=several_groups)}" for rank in circle)
    names = {operation.name for operation in operations}
    if len(circle) == 1:
        sentence = f"rank {circle[0]} waits for itself: it {blocked[circle[0]].briefly()}"
    else:
        sentence = f"{ranks_text(circle)} wait {'for each other' if len(circle) == 2 else 'in a circle'}: {told}"
    issued_before = any(blocked[rank].waits_elsewhere for rank in circle)
    if len(circle) == 1 and names <= {"send", "recv"}:
        help_text = "a rank sends nothing to itself: leave the own rank out of the loop, and copy the own part"
    elif names == {"send"} and issued_before:
        help_text = "an isend is done when the other side receives: post the receives first, and wait after that"
    elif names == {"send"}:
        help_text = "a send waits until the other side receives: let one side receive first, or use isend or a batch"
    elif names == {"recv"}:
        help_text = "each waits for the other's message: let one side send first"
    elif several_groups:
        help_text = "all ranks must use their groups in the same order; two groups of the same ranks are not one"
    elif names & {"send", "recv"} and names - {"send", "recv", "new_group"}:
        help_text = (
            "a collective ends when every rank of its group has called it: is it inside an `if`, or in a loop, "
            "that is not the same on every rank? Messages come before it on both sides, or after it on both"
        )
    else:
        help_text = "bring the operations into one order that all ranks follow"
    return sentence, help_text, circle


def _way_back(rank: int, blocked: Mapping[int, Blocked]) -> list[int]:
    """The shortest way from a rank, over those that each waits for, back to it; [] if there is none."""
    ways = deque([[rank]])
    seen = {rank}
    while ways:
        way = ways.popleft()
        for following in blocked[way[-1]].missing:
            if following == rank:
                return way
            if following in blocked and following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def _other_tag(blocked: Mapping[int, Blocked], unmatched: Sequence[Operation]) -> _Told | None:
    """A receive and a send of the same two ranks that only their tags, or their groups, keep apart."""
    for one in blocked.values():
        mine = one.operation
        if mine is None or mine.name not in ("send", "recv") or mine.peer is None:
            continue
        for other in unmatched:
            if other.rank != mine.peer_rank or other.name == mine.name or other.peer_rank != mine.rank:
                continue
            if other.group_id == mine.group_id and other.tag != mine.tag:
                a, b = (mine, other) if mine.name == "send" else (other, mine)
                sentence = (
                    f"rank {a.rank} sends to rank {b.rank} with tag {a.tag}, and rank {b.rank} waits for tag {b.tag}"
                )
                return sentence, "a message is received with the tag that it was sent with", [a.rank, b.rank]
            if other.group_id != mine.group_id:
                sentence = (
                    f"rank {mine.rank} waits in {short(mine)} in the group {list(mine.group)}, and its peer "
                    f"uses the group {list(other.group)}"
                )
                return sentence, "both ends of a message must name the same group", [mine.rank, other.rank]
    return None


def _two_counts(blocked: Mapping[int, Blocked]) -> _Told | None:
    """Ranks that form the same group, but not as their same one: some called new_group more often before."""
    forming = {
        rank: list(one.operation.group)
        for rank, one in blocked.items()
        if one.operation is not None and one.operation.name == "new_group"
    }
    for rank in sorted(forming):
        for other in blocked[rank].missing:
            if forming.get(other) == forming[rank]:
                sentence = (
                    f"ranks {rank} and {other} both form the group {forming[rank]}, "
                    "but one of them has formed more groups before, so theirs do not meet"
                )
                return sentence, EVERY_GROUP, [rank, other]
    return None


def _held(blocked: Mapping[int, Blocked], gone: set[int]) -> _Told | None:
    """A rank that the program holds, and the one that does not get as far as it should without waiting for it."""
    for one in blocked.values():
        if one.operation is not None:
            continue
        late = one.missing[0]
        if late in gone:
            sentence = f"rank {late} has returned and never {one.mark}; rank {one.rank} is held until then"
            return sentence, "every rank must go through all that the function is for", [late]
        if late in blocked and late != one.rank:
            sentence = (
                f"rank {late} {blocked[late].briefly()} before it has {one.mark}; "
                f"rank {one.rank} has not come so far, and nothing may wait for it yet"
            )
            return sentence, "issue the operation with async_op=True and wait for its handle later", [late]
    return None
