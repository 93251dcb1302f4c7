"""Rows for a trace: which steps of the ranks stand side by side. Pure.

The order of one rank's steps is exact; between ranks only meetings say anything. So a row holds what met: an operation
of a collective on all its ranks, a send beside its receive. What met in crossing orders cannot always stand so.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One entry of a rank's column.

    words:   what the rank did: "send to rank 1 of float32 (4,)".
    remarks: the line, and what it waited for.
    meeting: the number of the meeting that the operation took part in; None for what meets nobody.
    """

    rank: int
    words: str
    remarks: tuple[str, ...] = ()
    meeting: int | None = None


Row = dict[int, Step]  # by rank; at least one


def rows(columns: Sequence[Sequence[Step]]) -> list[Row]:
    """The steps of each rank, in rows: each rank's in its order, those of a meeting in one row where orders allow."""
    left = {number: deque(column) for number, column in enumerate(columns) if column}
    members = Counter(step.meeting for column in columns for step in column)
    apart: set[int | None] = {None}  # meetings that cannot stand in one row, since their orders cross
    found: list[Row] = []
    while left:
        heads = {number: column[0] for number, column in left.items()}
        at_hand = Counter(step.meeting for step in heads.values())
        ready = [
            number
            for number, step in heads.items()
            if step.meeting in apart or at_hand[step.meeting] == members[step.meeting]
        ]
        if not ready:
            ready = _circle(left)
            apart.update(heads[number].meeting for number in ready)
        found.append({heads[number].rank: heads[number] for number in ready})
        for number in ready:
            left[number].popleft()
            if not left[number]:
                del left[number]
    return found


def _circle(left: dict[int, deque[Step]]) -> list[int]:
    """Columns whose first steps each wait for another one's: follow the lowest that is late until one comes again."""
    path = [min(left)]
    while True:
        meeting = left[path[-1]][0].meeting
        late = (
            number
            for number, column in sorted(left.items())
            if column[0].meeting != meeting and any(step.meeting == meeting for step in column)
        )
        following = next(late, path[-1])
        if following in path:
            return path[path.index(following) :]
        path.append(following)
