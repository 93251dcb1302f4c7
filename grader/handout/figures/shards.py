"""Which rank owns which rows of a batch, and which columns of a weight: the shards that the reference makes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.cells import draw_legend, draw_number
from grader.handout.figures.origins import WORLD_SIZE, Number
from grader.handout.figures.running import FigureError, run
from grader.world import Launcher, Submitted

Matrix = list[list[int]]

X_BD = [[1, 2], [0, 1]]
WEIGHT_DF = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
BATCH = [[10 * row, 10 * row + 1, 10 * row + 2] for row in range(10)]
CELL, ROW = 38, 30


def draw_columns(submission: Submitted, launcher: Launcher) -> Figure:
    """The picture column-shards; `submission` is module tensor_parallel. Raises FigureError."""
    import torch

    returned = run(
        submission,
        "column_shards",
        WORLD_SIZE,
        launcher,
        x_BD=torch.tensor(X_BD, dtype=torch.float32),
        weight_DF=torch.tensor(WEIGHT_DF, dtype=torch.float32),
    )
    results = [own[0] for own in returned]
    gathered = results[0]["gathered"]
    if any(each["gathered"] != gathered for each in results):
        raise FigureError("the gathered output differs between ranks")
    return columns_figure([each["own"] for each in results], [each["local"] for each in results], gathered)


def columns_figure(owned: Sequence[Matrix], local: Sequence[Matrix], gathered: Matrix) -> Figure:
    """The input, each rank's columns of the weight, each rank's columns of the output, and the output gathered."""
    counts = [len(own[0]) for own in owned]
    shares = "; ".join(
        f"rank {rank} owns the columns {own} of the weight and computes {part}"
        for rank, (own, part) in enumerate(zip(owned, local, strict=True))
    )
    alt = f"x is {X_BD} on every rank. By rows: {shares}. Gathered on every rank: {gathered}."
    left, gap, pitch = 78, 14, 96
    own_x = left + 2 * CELL + 44
    local_x = own_x + 2 * CELL + 44
    out_x = local_x + 2 * CELL + 60
    top = 48
    picture = Picture(
        out_x + len(gathered[0]) * CELL + gap,
        top + WORLD_SIZE * pitch + 24,
        title="A weight split by columns over four ranks",
        description=alt,
    )
    for x, text in ((left, "x"), (own_x, "own columns"), (local_x, "x @ own"), (out_x, "gathered, on every rank")):
        picture.text(x, 24, text, size=13, mono=text.startswith("x"), bold=True)
    for rank, (own, part) in enumerate(zip(owned, local, strict=True)):
        y = top + rank * pitch
        picture.text(10, y + ROW + 5, f"rank {rank}", size=14, bold=True)
        _draw_matrix(picture, left, y, X_BD, [()] * len(X_BD[0]))
        picture.text(left + 2 * CELL + 22, y + ROW + 5, "@", size=15, anchor="middle", mono=True)
        _draw_matrix(picture, own_x, y, own, [(rank,)] * counts[rank])
        picture.text(own_x + 2 * CELL + 22, y + ROW + 5, "=", size=15, anchor="middle", mono=True)
        _draw_matrix(picture, local_x, y, part, [(rank,)] * counts[rank])
    middle = top + (WORLD_SIZE * pitch - (pitch - 2 * ROW)) / 2
    for rank in range(WORLD_SIZE):
        y = top + rank * pitch + ROW
        picture.line(local_x + 2 * CELL + 10, y, out_x - 8, middle + (y - middle) * 0.15, arrow=True)
    owners = list(chain.from_iterable([(rank,)] * count for rank, count in enumerate(counts)))
    _draw_matrix(picture, out_x, middle - ROW, gathered, owners)
    draw_legend(picture, 10, top + WORLD_SIZE * pitch - 4)
    caption = (
        f"A weight of {len(WEIGHT_DF)} rows and {sum(counts)} columns on four ranks, which own "
        f"{_count_text(counts)} of its columns: each multiplies all of x by its own columns, and gathers the rest of "
        "the output. The numbers are those of a run."
    )
    return Figure(name="column-shards", caption=caption, alt=alt, picture=picture)


def draw_batch(submission: Submitted, launcher: Launcher) -> Figure:
    """The picture batch-shards; `submission` is module data_parallel. Raises FigureError."""
    import torch

    returned = run(submission, "batch_shard", WORLD_SIZE, launcher, batch=torch.tensor(BATCH))
    return batch_figure([own[0] for own in returned])


def batch_figure(shards: Sequence[Matrix]) -> Figure:
    """The whole batch at the left, and each rank's rows at the right."""
    counts = [len(rows) for rows in shards]
    alt = f"A batch of {len(BATCH)} rows. " + " ".join(
        f"Rank {rank} gets {len(rows)} rows: {rows}." for rank, rows in enumerate(shards)
    )
    width, gap, top = len(BATCH[0]) * CELL, 12, 44
    left = 70
    right = left + width + 150
    height = len(BATCH) * ROW + (WORLD_SIZE - 1) * gap
    picture = Picture(right + width + 24, top + height + 40, title="The rows of a batch by rank", description=alt)
    picture.text(left, 24, "batch", size=14, bold=True)
    picture.text(right, 24, "shard_batch", size=14, bold=True, mono=True)
    whole_top = top + (height - len(BATCH) * ROW) / 2
    row = 0
    y: float = top
    for rank, rows in enumerate(shards):
        own_top = whole_top + row * ROW
        owners = [(rank,)] * len(BATCH[0])
        _draw_matrix(picture, left, own_top, rows, owners)
        for index in range(len(rows)):
            picture.text(left - 10, own_top + index * ROW + 20, str(row + index), size=12, anchor="end", muted=True)
        _draw_matrix(picture, right, y, rows, owners)
        middle = y + len(rows) * ROW / 2
        picture.line(left + width + 8, own_top + len(rows) * ROW / 2, right - 66, middle, arrow=True)
        picture.text(right - 58, middle + 5, f"rank {rank}", size=14, bold=True)
        row += len(rows)
        y += len(rows) * ROW + gap
    draw_legend(picture, 10, top + height + 14)
    caption = (
        f"The {len(BATCH)} rows of a batch on four ranks, which get {_count_text(counts)} of them, as the reference's "
        "shard_batch cuts it."
    )
    return Figure(name="batch-shards", caption=caption, alt=alt, picture=picture)


def _draw_matrix(picture: Picture, x: float, y: float, matrix: Matrix, owners: Sequence[tuple[int, ...]]) -> None:
    """A matrix whose columns come from `owners`."""
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            draw_number(picture, x + j * CELL, y + i * ROW, Number(value, owners[j]), width=CELL, height=ROW)


def _count_text(counts: Sequence[int]) -> str:
    *first, last = map(str, counts)
    return f"{', '.join(first)} and {last}"
