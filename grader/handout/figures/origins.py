"""Where a number comes from: a second run with one bit for each rank and place tells what a result is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WORLD_SIZE = 4  # ranks of every picture but the curves


@dataclass(frozen=True)
class Number:
    """A number of a picture.

    origins: the ranks whose numbers it is made of; none for one that nobody reads.
    place:   the index at which it stood there; None where it has no origin.
    """

    value: int
    origins: tuple[int, ...]
    place: int | None = None


def mark(rank: int, place: int) -> int:
    """The number that stands for entry `place` of `rank`: sums of such numbers keep all their parts apart."""
    return int(1 << (WORLD_SIZE * place + rank))


def marks(rank: int, count: int) -> list[int]:
    """The marks of `count` entries of a rank."""
    return [mark(rank, place) for place in range(count)]


def number_of(value: int, marked: int) -> Number:
    """The number `value` whose twin in the marked run is `marked`. Raises ValueError if it mixes places."""
    bits = [bit for bit in range(marked.bit_length()) if marked >> bit & 1]
    places = {bit // WORLD_SIZE for bit in bits}
    if len(places) > 1:
        raise ValueError(f"{value} is made of numbers of the places {sorted(places)}; expected one place")
    return Number(value, tuple(bit % WORLD_SIZE for bit in bits), places.pop() if places else None)


def numbers_of(values: Sequence[int], marked: Sequence[int]) -> list[Number]:
    """`number_of` for each pair."""
    return [number_of(value, twin) for value, twin in zip(values, marked, strict=True)]
