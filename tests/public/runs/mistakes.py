"""Which classic mistake explains what came: one wrong value fits many, the values of all ranks and calls few."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.checking import Slip
from grader.checking.differences import explains


@dataclass(frozen=True)
class Mistake:
    """A mistake, and what it would give in each place where its answer is known.

    gave, help: as in Slip.
    values:     by place: a rank, the number of a call, or (rank, name).
    """

    gave: str
    help: str
    values: Mapping[Any, Any]

    def at(self, place: Hashable) -> Slip:
        """What this mistake gives in one place."""
        return Slip(self.gave, self.help, self.values[place])


def of_all(mistakes: Sequence[Mistake], came: Mapping[Any, Any], place: Hashable) -> list[Slip]:
    """For `place`, the mistakes that give what came in every place that they speak of."""
    return [
        mistake.at(place)
        for mistake in mistakes
        if place in mistake.values and _num_explained(mistake, came) == len(mistake.values)
    ]


def explaining(
    mistakes: Callable[[], Sequence[Mistake]], came: Mapping[Any, Any], place: Hashable
) -> Callable[[], list[Slip]]:
    """As `of_all`, once it is asked."""
    return lambda: of_all(mistakes(), came, place)


def by_reach(mistakes: Sequence[Mistake], came: Mapping[Any, Any], place: Hashable) -> list[Slip]:
    """For `place`, all mistakes: those first that give what came in the most places."""
    there = [mistake for mistake in mistakes if place in mistake.values]
    return [mistake.at(place) for mistake in sorted(there, key=lambda mistake: -_num_explained(mistake, came))]


def _num_explained(mistake: Mistake, came: Mapping[Any, Any]) -> int:
    return sum(place in came and explains(mistake.at(place), came[place]) for place in mistake.values)
