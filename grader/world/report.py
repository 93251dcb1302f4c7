"""What the conductor found: one sentence, where each rank concerned was, and one thing to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.world.operation import Place


def ranks_text(ranks: Sequence[int]) -> str:
    """ "rank 2", "ranks 0 and 1", "ranks 0, 1 and 3"."""
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"


class Finding(StrEnum):
    """The kinds of faults that the traced group sees and gloo does not."""

    MISMATCH = "mismatch"  # ranks that disagree on what they do together
    DEADLOCK = "deadlock"  # every rank that is left waits for what cannot come
    LIVELOCK = "livelock"  # the same, but a rank asks again and again instead of waiting
    RACE = "race"  # a buffer was written while an operation used it
    UNWAITED = "unwaited"  # a handle that was never waited for


@dataclass(frozen=True)
class Stand:
    """Where one rank stands: "waits in recv from rank 1", and at which line.

    case: how many values it had returned then; None where that says nothing.
    """

    rank: int
    doing: str
    place: Place
    case: int | None = None


@dataclass(frozen=True)
class Report:
    """A fault of the submission. `sentence` and `doing` hold no text that a submission wrote."""

    finding: Finding
    sentence: str
    stands: tuple[Stand, ...]
    help: str
