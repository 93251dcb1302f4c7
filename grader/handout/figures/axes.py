"""Two axes with ticks: where a pair of values stands in a picture. Logarithmic where the values are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.cluster.svg import Picture

Tick = tuple[float, str]


@dataclass(frozen=True)
class Axis:
    """One axis: `low` stands at `start` and `high` at `end`, in the picture's units."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where a value stands."""
        low, high, own = self.low, self.high, value
        if self.logarithmic:
            low, high, own = math.log10(low), math.log10(high), math.log10(own)
        return self.start + (own - low) / (high - low) * (self.end - self.start)


def draw_axes(
    picture: Picture, x: Axis, y: Axis, *, x_ticks: Sequence[Tick], y_ticks: Sequence[Tick], x_name: str, y_name: str
) -> None:
    """The axes with a faint line for each tick of y, and their names: x's below, y's above."""
    for value, label in y_ticks:
        picture.line(x.start, y.at(value), x.end, y.at(value), width=0.4)
        picture.text(x.start - 8, y.at(value) + 4, label, size=12, anchor="end")
    for value, label in x_ticks:
        picture.line(x.at(value), y.start, x.at(value), y.start + 5)
        picture.text(x.at(value), y.start + 20, label, size=12, anchor="middle")
    picture.line(x.start, y.start, x.end, y.start, width=1.2)
    picture.line(x.start, y.start, x.start, y.end, width=1.2)
    picture.text((x.start + x.end) / 2, y.start + 42, x_name, size=13, anchor="middle")
    picture.text(12, y.end - 16, y_name, size=13)
