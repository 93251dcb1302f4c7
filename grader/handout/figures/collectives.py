"""Each collective before and after, on four ranks: the lecture's numbers, as the reference's functions move them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.cells import HEIGHT, draw_legend, draw_numbers, numbers_text
from grader.handout.figures.origins import WORLD_SIZE, Number, marks, numbers_of
from grader.handout.figures.running import run
from grader.world import Launcher, PerRank, Submitted

Row = list[int] | None


@dataclass(frozen=True)
class Collective:
    """One picture: what each rank passes, and how the function is called.

    before:  the numbers that a rank passes; None: it passes None.
    reads:   whether that rank's numbers are read.
    argument: how the call names what it passes. keywords: the root. pieces: whether the numbers are one piece each.
    """

    name: str
    says: str
    before: Callable[[int], Row]
    argument: str = "tensor"
    keywords: tuple[tuple[str, int], ...] = ()
    reads: Callable[[int], bool] = lambda _: True
    pieces: bool = False

    @property
    def call(self) -> str:
        """As a student writes it: "reduce(tensor, dst=0)"."""
        return f"{self.name}({', '.join([self.argument, *(f'{key}={value}' for key, value in self.keywords)])})"


@dataclass(frozen=True)
class Exchange:
    """What each rank held before and after, by rank; None where it held nothing."""

    collective: Collective
    before: list[list[Number] | None]
    after: list[list[Number] | None]


def four_from(first: int) -> list[int]:
    """Four numbers in a row."""
    return list(range(first, first + WORLD_SIZE))


def is_root(rank: int) -> bool:
    """The root of the pictures is rank 0."""
    return rank == 0


COLLECTIVES = (
    Collective(
        "broadcast",
        "Broadcast: every rank gets a copy of the root's tensor; what the others pass gives only shape and dtype.",
        lambda rank: four_from(0) if is_root(rank) else [0] * WORLD_SIZE,
        keywords=(("src", 0),),
        reads=is_root,
    ),
    Collective(
        "scatter",
        "Scatter: the root's tensor is cut into one piece for each rank.",
        lambda rank: four_from(0) if is_root(rank) else None,
        keywords=(("src", 0),),
    ),
    Collective(
        "gather",
        "Gather, the inverse of scatter: the root gets the pieces of all ranks, in rank order.",
        lambda rank: [rank],
        argument="piece",
        keywords=(("dst", 0),),
    ),
    Collective(
        "reduce",
        "Reduce: the root gets the sum over ranks, entry by entry.",
        four_from,
        keywords=(("dst", 0),),
    ),
    Collective("all_gather", "All-gather: every rank gets the pieces of all ranks.", lambda rank: [rank], "piece"),
    Collective("reduce_scatter", "Reduce-scatter: rank r gets piece r of the sum over ranks.", four_from),
    Collective(
        "all_reduce", "All-reduce: every rank gets the whole sum: a reduce-scatter and then an all-gather.", four_from
    ),
    Collective(
        "all_to_all",
        "All-to-all: piece i of rank r goes to rank i and becomes its piece r, as a transpose does.",
        lambda rank: four_from(WORLD_SIZE * rank),
        argument="pieces",
        pieces=True,
    ),
)


def draw_collectives(submission: Submitted, launcher: Launcher) -> list[Figure]:
    """The eight pictures; `submission` is module collectives. Raises FigureError."""
    return [draw_exchange(run_collective(each, submission, launcher)) for each in COLLECTIVES]


def run_collective(collective: Collective, submission: Submitted, launcher: Launcher) -> Exchange:
    """Runs one collective twice in one world: with the numbers of the picture, and with marks of their origin."""
    before = [collective.before(rank) for rank in range(WORLD_SIZE)]
    marked = [
        marks(rank, len(own)) if own is not None and collective.reads(rank) else own and [0] * len(own)
        for rank, own in enumerate(before)
    ]
    arguments = PerRank([[_argument(collective, own) for own in pair] for pair in zip(before, marked, strict=True)])
    returned = run(
        submission,
        "collective",
        WORLD_SIZE,
        launcher,
        name=collective.name,
        arguments=arguments,
        keywords=dict(collective.keywords),
    )
    after = [[_flat(value, collective.pieces) for value in own] for own in returned]
    return Exchange(
        collective,
        [_numbers(*pair) for pair in zip(before, marked, strict=True)],
        [_numbers(*pair) for pair in after],
    )


def draw_exchange(exchange: Exchange) -> Figure:
    """The picture of an exchange: a row for each rank, what it passes at the left, what it returns at the right."""
    collective = exchange.collective
    name = f"collectives-{collective.name}"
    alt = "; ".join(
        f"rank {rank} passes {numbers_text(before)} and gets {numbers_text(after)}"
        for rank, (before, after) in enumerate(zip(exchange.before, exchange.after, strict=True))
    )
    alt = f"{collective.call} on {WORLD_SIZE} ranks: {alt}."
    cell, gap = 40, 5 if collective.pieces else 0
    left, row, top = 78, 46, 62
    span = WORLD_SIZE * (cell + gap)
    right = left + span + 76
    sums = any(len(each.origins) > 1 for after in exchange.after for each in after or [])
    width = max(right + span + 14, 570 if sums else 0)
    picture = Picture(width, top + WORLD_SIZE * row + 34, title=collective.call, description=alt)
    picture.text(left + span + 38, 20, collective.call, size=15, anchor="middle", mono=True, bold=True)
    picture.text(left, 50, "before", size=13, muted=True)
    picture.text(right, 50, "after", size=13, muted=True)
    for rank in range(WORLD_SIZE):
        y = top + rank * row
        picture.text(12, y + HEIGHT / 2 + 5, f"rank {rank}", size=14, bold=True)
        picture.line(left + span + 14, y + HEIGHT / 2, right - 14, y + HEIGHT / 2, arrow=True)
        for x, numbers in ((left, exchange.before[rank]), (right, exchange.after[rank])):
            if numbers is None:
                picture.text(x, y + HEIGHT / 2 + 5, "None", mono=True, muted=True)
            else:
                draw_numbers(picture, x, y, numbers, width=cell, gap=gap)
    draw_legend(picture, 12, top + WORLD_SIZE * row + 8, sums=sums)
    caption = f"{collective.says} The numbers are those of a run on {WORLD_SIZE} ranks."
    return Figure(name=name, caption=caption, alt=alt, picture=picture)


def _argument(collective: Collective, own: Row) -> Any:
    """What the function is passed: a tensor, a list of tensors of one number each, or None."""
    import torch

    if own is None:
        return None
    return [torch.tensor([each]) for each in own] if collective.pieces else torch.tensor(own)


def _flat(value: Any, pieces: bool) -> Row:
    return [number for piece in value for number in piece] if pieces and value is not None else value


def _numbers(values: Sequence[int] | None, marked: Sequence[int] | None) -> list[Number] | None:
    return None if values is None or marked is None else numbers_of(values, marked)
