"""What the submission asked of its groups, by rank and call. Claims of the ranks, from the trace of their world."""

from __future__ import annotations

from collections.abc import Sequence

from grader.checking import Check, CheckFailed
from grader.world import Doing, Event, Trace
from grader.world.failure import printable
from grader.world.mismatch import short
from grader.world.operation import Operation

ASKERS = ("submission", "")  # "": no line that is known, as in a thread that the submission has started


class Traffic:
    """The world that a check ran last: each call is one value of its program."""

    def __init__(self, check: Check, world_size: int) -> None:
        self._by_rank = [check.trace.of(rank) for rank in range(world_size)]

    def all_events(self, rank: int, call: int) -> list[Event]:
        """What the rank did in this call, in order; also what the program and grader.given did."""
        return list(self._by_rank[rank].of(rank, call))

    def events(self, rank: int, call: int) -> list[Event]:
        """What the rank did in this call, in order: marks, and what the submission asked for and waited for."""
        return [
            event
            for event in self.all_events(rank, call)
            if event.doing is not Doing.FORM and (event.operation is None or event.operation.place.asker in ASKERS)
        ]

    def marks(self, rank: int, call: int) -> list[str]:
        """The marks of the program in this call, in order."""
        return [event.name for event in self.all_events(rank, call) if event.doing is Doing.MARK]

    def issued(self, rank: int, call: int) -> list[Operation]:
        """The operations that the submission asked for; those of grader.given are left out."""
        own: Trace = self._by_rank[rank].of(rank, call)
        return own.issued(by=ASKERS)

    def expect_none(self, rank: int, call: int, *, what: str, given: bool = False) -> None:
        """A call that must raise before anything is sent. given: also before it asks grader.given for an exchange."""
        issued = self._by_rank[rank].of(rank, call).issued(by=(*ASKERS, "given") if given else ASKERS)
        if issued:
            raise CheckFailed(
                f"rank {rank}: {what} asked for {listed(issued)} before it raised",
                expected="no operation: the error comes first",
                actual=listed(issued),
                where=places(issued),
                help="check the arguments first, before anything is sent",
            )

    def expect_group(self, rank: int, call: int, members: Sequence[int], *, what: str) -> None:
        """All that was asked for was asked of the group that was passed, by its ranks."""
        for operation in self.issued(rank, call):
            if operation.group != tuple(members):
                raise CheckFailed(
                    f"rank {rank}: {what} asks the group of ranks {list(operation.group)} for {operation.name}, "
                    f"not the group that it is called with",
                    expected=f"the group of ranks {list(members)}",
                    actual=f"{operation.name} in the group of ranks {list(operation.group)}",
                    where=places([operation]),
                    help="pass group=group on to every operation",
                )


def listed(operations: Sequence[Operation], most: int = 6) -> str:
    """Operations as one line: "send to rank 1, recv from rank 3"."""
    words = [short(operation) for operation in operations[:most]]
    return ", ".join(words) + (f" and {len(operations) - most} more" if len(operations) > most else "")


def places(operations: Sequence[Operation], most: int = 4) -> str:
    """The submission's lines that asked for them, one below the other, each once."""
    lines = dict.fromkeys(
        f"{short(one)} at {printable(one.place.file)}:{one.place.line} in {printable(one.place.function)}"
        for one in operations
        if one.place.file
    )
    return "\n".join(list(lines)[:most])


def waits(events: Sequence[Event], operation: Operation) -> list[int]:
    """Where among a rank's events it learns that the operation is complete."""
    return [
        place
        for place, event in enumerate(events)
        if event.doing in (Doing.WAIT, Doing.POLL)
        and event.operation is not None
        and event.operation.seq == operation.seq
    ]


def received_bytes(operation: Operation) -> int:
    """Bytes of what the rank gets."""
    return sum(spec.num_bytes for spec in operation.writes)
