"""All pictures of the handout, by name: those with values of the reference's runs, and its timelines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from grader.checking.submission import Submission
from grader.cluster.demos import DEMOS, draw
from grader.cluster.svg import Figure
from grader.handout.figures.collectives import draw_collectives
from grader.handout.figures.curves import draw_bubble, draw_ring_seconds
from grader.handout.figures.cuts import draw_cuts
from grader.handout.figures.ring import draw_ring
from grader.handout.figures.running import FigureError
from grader.handout.figures.shards import draw_batch, draw_columns
from grader.world import Launcher, Submitted


def draw_figures(root: Path, launcher: Launcher) -> dict[str, Figure]:
    """Runs the reference of the checkout `root` and draws what came back; the same bytes for the same reference.

    Raises FigureError or grader.cluster.demos.DemoFailed where the reference fails, and FigureError where two
    pictures have one name.
    """
    modules = read_modules(root)
    return by_name([*draw_values(modules, launcher), *draw_timelines(modules, launcher)])


def read_modules(root: Path) -> dict[str, Submitted]:
    """The modules of the reference, as they are sent to the ranks."""
    reference = Submission.read(root / "reference", shown_as="reference")
    return {name: reference.module(name) for name in reference.files}


def draw_values(modules: dict[str, Submitted], launcher: Launcher) -> list[Figure]:
    """The pictures with values: collectives, the ring, shards, cuts and curves."""
    return [
        *draw_collectives(modules["collectives"], launcher),
        draw_ring(modules["collectives"], launcher),
        draw_columns(modules["tensor_parallel"], launcher),
        draw_batch(modules["data_parallel"], launcher),
        draw_cuts(modules, launcher),
        draw_bubble(modules["accounting"], launcher),
        draw_ring_seconds(modules["accounting"], launcher),
    ]


def draw_timelines(modules: dict[str, Submitted], launcher: Launcher) -> list[Figure]:
    """The timelines of the reference, module by module."""
    return [figure for module in DEMOS for figure in draw(module, modules[module], launcher)]


def by_name(figures: Iterable[Figure]) -> dict[str, Figure]:
    """The figures by name. Raises FigureError for a name that comes twice."""
    named: dict[str, Figure] = {}
    for figure in figures:
        if figure.name in named:
            raise FigureError(f"two pictures have the name {figure.name}")
        named[figure.name] = figure
    return named
