"""Whose rows are counted: the calls of shard_batch and loss_scale, and what classic mistakes make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.public.runs.mistakes import Mistake

if TYPE_CHECKING:
    from torch import Tensor

RULE = (
    "of n rows, rank r owns n // W + (1 if r < n % W else 0), in rank order: each row is on one rank, and on one only"
)
ALL_ROWS = "every rank divides by the rows of all ranks together: exchange the numbers of rows first, and add them"
SCALE = "the scale is W / (rows of all ranks): the mean over W ranks divides by W once more"


@dataclass(frozen=True)
class Shard:
    """One call of shard_batch. transposed: the batch is a view of transposed memory. refused: a ValueError."""

    batch: Tensor
    rank: int
    world_size: int
    transposed: bool = False
    refused: bool = False

    @property
    def title(self) -> str:
        """The call."""
        return f"shard_batch(batch of {len(self.batch)} rows, {self.rank}, {self.world_size})"


def wrong_shards(calls: Sequence[Shard]) -> list[Mistake]:
    """What wrong rules make of the rows; places are the numbers of the calls."""
    made: dict[str, dict[int, Tensor]] = {}
    for number, call in enumerate(calls):
        if call.refused:
            continue
        for gave, rows in _wrong_rows(len(call.batch), call.rank, call.world_size).items():
            made.setdefault(gave, {})[number] = call.batch[list(rows)]
    return [Mistake(gave, RULE, values) for gave, values in made.items()]


def _wrong_rows(count: int, rank: int, size: int) -> Mapping[str, Sequence[int]]:
    few, many = count // size, -(-count // size)
    rows = range(count)
    return {
        "n // W rows, so that the last rows are on no rank": rows[rank * few : (rank + 1) * few],
        "n / W rows, rounded up, with rows of the beginning once more on the last ranks: those would count twice": [
            (rank * many + place) % count for place in range(many if count else 0)
        ],
        "n / W rows, rounded up, as chunk() gives, so that the last ranks have fewer or none": (
            rows[rank * many : (rank + 1) * many]
        ),
        "n // W rows, and all that remain on the last rank": (
            rows[rank * few : (rank + 1) * few] if rank < size - 1 else rows[rank * few :]
        ),
        "every W-th row from its rank on, not rows that follow each other": rows[rank::size],
        "the whole batch": rows,
    }


def wrong_scales(rows: Sequence[Sequence[int]], size_of_world: int) -> list[Mistake]:
    """What loss_scale would be; rows[call][rank]. Places are (rank, call), of the calls that have rows."""
    made: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    for call, by_rank in enumerate(rows):
        for rank, own in enumerate(by_rank):
            for mistake, value in _wrong_scales(own, by_rank, size_of_world).items():
                made.setdefault(mistake, {})[rank, call] = value
    return [Mistake(gave, help, values) for (gave, help), values in made.items()]


def _wrong_scales(own: int, rows: Sequence[int], size_of_world: int) -> dict[tuple[str, str], float]:
    size, total = len(rows), sum(rows)
    wrong: dict[tuple[str, str], float] = {}
    if own:
        wrong["1 / this rank's own rows: a mean of means, where few rows weigh as much as many", ALL_ROWS] = 1 / own
        wrong["W / this rank's own rows, as if the others had none", ALL_ROWS] = size / own
    if rows[0]:
        wrong["1 / the rows of rank 0, as if every rank had as many", ALL_ROWS] = 1 / rows[0]
        wrong["W / the rows of rank 0: the other ranks' are not counted", ALL_ROWS] = size / rows[0]
    if total:
        wrong["1 / the rows of all ranks, without the world size", SCALE] = 1 / total
        wrong[f"{size_of_world} / the rows of all ranks: the size of the whole world, not of the group", SCALE] = (
            size_of_world / total
        )
        wrong["1 / (W · the rows of all ranks)", SCALE] = 1 / (size * total)
    return wrong
