"""The three ways to cut a network: by rows of the batch, by columns of each layer, by layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.cells import PATTERNS, draw_legend
from grader.handout.figures.origins import WORLD_SIZE
from grader.handout.figures.running import run
from grader.world import Launcher, Submitted

ROWS, COLUMNS, LAYERS = 8, 8, 4
UNIT = 13  # one row or one column
GAP = 26
PANEL = ROWS * UNIT + 62


@dataclass(frozen=True)
class Cuts:
    """Which rank owns what, by rank: rows of the batch, columns of a weight, layers."""

    rows: list[list[int]]
    columns: list[list[int]]
    layers: list[list[int]]


def draw_cuts(modules: Mapping[str, Submitted], launcher: Launcher) -> Figure:
    """The picture network-cuts, from shard_batch, shard_columns and split_layers of the reference's modules."""
    return cuts_figure(run_cuts(modules, launcher))


def run_cuts(modules: Mapping[str, Submitted], launcher: Launcher) -> Cuts:
    """Cuts the indices of rows, columns and layers as the reference does. Raises FigureError."""
    import torch

    rows = run(modules["data_parallel"], "batch_shard", WORLD_SIZE, launcher, batch=torch.arange(ROWS))
    columns = run(modules["tensor_parallel"], "column_shard", WORLD_SIZE, launcher, weight_DF=torch.arange(COLUMNS))
    ((layers,),) = run(
        modules["pipeline_parallel"], "layers_of_stages", 1, launcher, num_layers=LAYERS, num_stages=WORLD_SIZE
    )
    return Cuts([own[0] for own in rows], [own[0] for own in columns], layers)


def cuts_figure(cuts: Cuts) -> Figure:
    """A panel for each cut: the batch at the left, then the weights of the layers; each part in its rank's colour."""
    panels = (
        ("data parallel", "Each rank has some rows, and a copy of every layer.", "rows", cuts.rows),
        ("tensor parallel", "Each rank has some columns of every layer, and all rows.", "columns", cuts.columns),
        ("pipeline parallel", "Each rank has some layers; all rows pass through.", "layers", cuts.layers),
    )
    alt = f"A batch of {ROWS} rows and an MLP of {LAYERS} layers with {COLUMNS} columns each, cut over four ranks. "
    alt += " ".join(
        f"{name.capitalize()}: {', '.join(f'rank {rank} owns {kind} {own}' for rank, own in enumerate(owned))}."
        for name, _, kind, owned in panels
    )
    left, side = 12, COLUMNS * UNIT
    picture = Picture(
        left + 70 + (LAYERS + 1) * side + LAYERS * GAP,
        len(panels) * PANEL + 58,
        title="The three ways to cut a network",
        description=alt,
    )
    for layer in range(LAYERS):
        x = left + 48 + (layer + 1) * (side + GAP)
        picture.text(x + side / 2, 18, f"layer {layer}", size=12, anchor="middle", muted=True)
    picture.text(left + 24 + side / 2, 18, "batch", size=12, anchor="middle", muted=True)
    for index, (name, says, kind, owned) in enumerate(panels):
        y = 44 + index * PANEL
        picture.text(left, y, name, size=15, bold=True)
        picture.text(left + 170, y, says, size=13)
        _draw_panel(picture, left + 24, y + 12, kind, owned)
    draw_legend(picture, left, 44 + len(panels) * PANEL - 16)
    caption = (
        "The three ways to cut a network over four ranks: data parallel by rows of the batch, tensor parallel by "
        "columns of each layer, pipeline parallel by layers. What is not coloured is whole on every rank that needs it."
    )
    return Figure(name="network-cuts", caption=caption, alt=alt, picture=picture)


def _draw_panel(picture: Picture, x: float, y: float, kind: str, owned: Sequence[Sequence[int]]) -> None:
    side = COLUMNS * UNIT
    owner = {index: rank for rank, own in enumerate(owned) for index in own}
    for row in range(ROWS):
        _draw_part(picture, x, y + row * UNIT, side, UNIT, owner[row] if kind == "rows" else None)
    for layer in range(LAYERS):
        left = x + 24 + (layer + 1) * (side + GAP)
        start = left - GAP + 4 if layer else x + side + 4
        picture.line(start, y + side / 2, left - 4, y + side / 2, arrow=True)
        for column in range(COLUMNS):
            rank = {"rows": None, "columns": owner.get(column), "layers": owner.get(layer)}[kind]
            _draw_part(picture, left + column * UNIT, y, UNIT, side, rank)


def _draw_part(picture: Picture, x: float, y: float, width: float, height: float, rank: int | None) -> None:
    if rank is None:
        picture.rect(x, y, width, height, fill="none", radius=0)
    else:
        picture.rect(x, y, width, height, fill=f"rank{rank}", pattern=PATTERNS[rank], radius=0)
