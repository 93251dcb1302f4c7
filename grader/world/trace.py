"""The account of a world: what each rank asked for and waited for, in its order. Claims of the ranks, not proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.world.operation import NOWHERE, Operation, Place

MAX_EVENTS = 60_000  # of one world; what comes later is counted and not kept


class Doing(StrEnum):
    """What a rank did."""

    FORM = "form"  # it asked for a group to be formed, and waits until all members have
    ISSUE = "issue"  # it asked for an operation; a synchronous one is waited for at once
    WAIT = "wait"  # it waits for an operation's handle
    POLL = "poll"  # it asked whether an operation is complete
    MARK = "mark"  # the program says how far it is
    HOLD = "hold"  # the program waits for another rank's mark


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a rank did.

    case:      how many values the rank had returned: the case that was under way.
    operation: of a form, issue, wait or poll.
    name:      of a mark, or of the mark that a hold waits for.
    missing:   the ranks that had not asked for the operation yet, in this run; no two runs need agree on it.
    place:     where the rank waited; of an issue, the operation's own place.
    """

    rank: int
    doing: Doing
    case: int
    operation: Operation | None = None
    name: str = ""
    missing: tuple[int, ...] = ()
    place: Place = NOWHERE


class Trace(Sequence[Event]):
    """The events of a world in the order in which they were heard: that of each rank is exact, between ranks it is not.

    met:      the operations that started, those of one collective, or of one message, together.
    complete: whether all were kept.
    """

    def __init__(
        self, events: Sequence[Event] = (), met: Sequence[tuple[Operation, ...]] = (), *, complete: bool = True
    ) -> None:
        self._events = events
        self.met = met
        self.complete = complete

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: int | slice) -> Event | Trace:  # type: ignore[override]
        chosen = self._events[index]
        return chosen if isinstance(chosen, Event) else Trace(chosen, self.met, complete=self.complete)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def of(self, rank: int, case: int | None = None) -> Trace:
        """One rank's events; only those of one case, if that is given."""
        chosen = [event for event in self._events if event.rank == rank and case in (None, event.case)]
        return Trace(chosen, self.met, complete=self.complete)

    def issued(self, *, by: Sequence[str] = ("submission",)) -> list[Operation]:
        """The operations asked for, in order; those that grader.given or the program asked for are left out.

        by: whose operations are meant. What torch itself asks for in the submission's name counts as the submission's.
        """
        return [
            event.operation
            for event in self._events
            if event.doing is Doing.ISSUE and event.operation is not None and event.operation.place.asker in by
        ]
