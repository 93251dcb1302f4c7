"""Who waits for whom when no rank can go on: the circle, or the rank that has ended, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.world.mismatch import describe, short
from grader.world.operation import NOWHERE, Operation, Place
from grader.world.report import Finding, Report, Stand


@dataclass(frozen=True)
class Blocked:
    """A rank that waits.

    place:   where it waits.
    missing: the ranks that it waits for.
    operation, mark: for what: an operation, or a mark of the program's.
    polls:   it asks again and again, instead of waiting.
    """

    rank: int
    place: Place
    missing: tuple[int, ...]
    operation: Operation | None = None
    mark: str = ""
    polls: bool = False

    def doing(self) -> str:
        """In a few words: "waits in recv from rank 1 of float32 (3,)"."""
        if self.operation is None:
            return f"is held until rank {self.missing[0]} has {self.mark}"
        verb = "asks again and again for" if self.polls else "waits in"
        where = "" if self.operation.place == self.place else f" (issued at line {self.operation.place.line})"
        return f"{verb} {describe(self.operation)}{where}"

    def briefly(self) -> str:
        """Without tensors."""
        if self.operation is None:
            return f"is held until rank {self.missing[0]} has {self.mark}"
        return f"{'asks again and again for' if self.polls else 'waits in'} {short(self.operation)}"


def deadlock(blocked: Mapping[int, Blocked], ended: Iterable[int], unmatched: Sequence[Operation]) -> Report:
    """The report of a world in which every rank of `blocked` waits and all others have returned.

    unmatched: sends and receives that have not met their other end.
    """
    gone = set(ended)
    finding = Finding.LIVELOCK if any(one.polls for one in blocked.values()) else Finding.DEADLOCK
    told = (
        _other_tag(blocked, unmatched)
        or _two_counts(blocked)
        or _held(blocked)
        or _waits_for_ended(blocked, gone)
        or _circle(blocked)
    )
    sentence, help_text, first = told
    stands = [Stand(one.rank, one.doing(), one.place) for one in blocked.values()]
    stands.sort(key=lambda stand: (stand.rank not in first, stand.rank))
    stands += [Stand(rank, "has returned from the program", NOWHERE) for rank in sorted(gone)]
    return Report(finding, sentence, tuple(stands), help_text)


_Told = tuple[str, str, Sequence[int]]  # the sentence, one thing to try, the ranks to show first


def _waits_for_ended(blocked: Mapping[int, Blocked], gone: set[int]) -> _Told | None:
    for one in sorted(blocked.values(), key=lambda one: one.rank):
        away = [rank for rank in one.missing if rank in gone]
        if not away or one.operation is None:
            continue
        waiting = sorted(
            other.rank
            for other in blocked.values()
            if other.operation is not None
            and other.operation.name == one.operation.name
            and set(away) & set(other.missing)
        )
        name = one.operation.name
        who = _ranks(waiting) if name not in ("send", "recv") else f"rank {one.rank}"
        plural = name not in ("send", "recv") and len(waiting) > 1
        waits = "wait" if plural else "waits"
        if name == "send":
            never = f"a message that rank {away[0]} never receives"
            help_text = "every send needs a recv on the other side: does the receiver leave its loop too early?"
        elif name == "recv" and one.operation.peer is None:
            never = "a message from any rank, and none sends one"
            help_text = "every recv needs a send on the other side"
        elif name == "recv":
            never = f"a message that rank {away[0]} never sends"
            help_text = "every recv needs a send on the other side: does the sender leave its loop too early?"
        else:
            call = "the group to be formed" if name == "new_group" else name
            never = f"{call}: {_ranks(away)} {'have' if len(away) > 1 else 'has'} returned without calling it"
            help_text = "every rank of the group must call the collective, also one that has nothing to give"
            if name == "new_group":
                help_text = "every rank must call new_group, for every group, members or not"
        preposition = "for" if name in ("send", "recv") else "in" if name != "new_group" else "for"
        return f"{who} {waits} {preposition} {never}", help_text, waiting or [one.rank]
    return None


def _circle(blocked: Mapping[int, Blocked]) -> _Told:
    """Every rank waits for one that waits: follow the lowest missing rank until one comes again."""
    path = [min(blocked)]
    while True:
        following = min((rank for rank in blocked[path[-1]].missing if rank in blocked), default=path[-1])
        if following in path:
            circle = path[path.index(following) :]
            break
        path.append(following)
    told = ", ".join(f"rank {rank} {blocked[rank].briefly()}" for rank in circle)
    operations = [blocked[rank].operation for rank in circle]
    names = {operation.name for operation in operations if operation is not None}
    if len(circle) == 1:
        sentence = f"rank {circle[0]} waits for itself: it {blocked[circle[0]].briefly()}"
    elif len(circle) == 2:
        sentence = f"ranks {circle[0]} and {circle[1]} wait for each other: {told}"
    else:
        sentence = f"ranks {', '.join(map(str, circle))} wait in a circle: {told}"
    if names == {"send"}:
        help_text = "a send waits until the other side receives: let one side receive first, or use isend or a batch"
    elif names == {"recv"}:
        help_text = "each waits for the other's message: let one side send first"
    else:
        help_text = "bring the operations into one order that all ranks follow"
    return sentence, help_text, circle


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
    forming = [one for one in blocked.values() if one.operation is not None and one.operation.name == "new_group"]
    if len({one.operation.tag for one in forming if one.operation}) > 1:
        counts = ", ".join(f"rank {one.rank} its number {one.operation.tag}" for one in forming if one.operation)
        sentence = f"ranks form different numbers of groups: this group is {counts}"
        return sentence, "every rank must call new_group for every group, also for those that it is not in", []
    return None


def _held(blocked: Mapping[int, Blocked]) -> _Told | None:
    """A rank that the program holds, and the one that does not get as far as it should without waiting for it."""
    for one in blocked.values():
        if one.operation is None and one.missing[0] in blocked:
            late = blocked[one.missing[0]]
            sentence = (
                f"rank {late.rank} {late.briefly()} before it has {one.mark}; "
                f"rank {one.rank} has not come so far, and nothing may wait for it yet"
            )
            return sentence, "issue the operation with async_op=True and wait for its handle later", [late.rank]
    return None


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
