"""How the things of a timeline look and what they are called: a choice of each demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.world.operation import Operation

NAMES = {
    "all_gather_into_tensor": "all-gather",
    "all_to_all_single": "all-to-all",
    "reduce_scatter_tensor": "reduce-scatter",
    "recv": "receive",
}


@dataclass(frozen=True)
class Look:
    """A fill and a pattern of svg.py, and what the legend says of it."""

    fill: str
    pattern: str
    meaning: str


IDLE = Look("wait", "dots", "idle")
COMMUNICATION = Look("communicate", "stripes", "communication")


def operation_name(operation: Operation) -> str:
    """In words, short: "all-reduce"."""
    return NAMES.get(operation.name, operation.name.replace("_", "-"))


@dataclass(frozen=True)
class Looks:
    """Of one timeline.

    computations: the look of a marked computation by what its name begins with; the first that fits; "" fits all.
    label:        what is written on an operation's box. cell: units of a step.
    lanes:        what a rank's lane is called: "rank", "stage".
    """

    computations: tuple[tuple[str, Look], ...]
    label: Callable[[Operation], str] = operation_name
    communication: Look = COMMUNICATION
    cell: int = 64
    lanes: str = "rank"

    def of(self, name: str) -> Look:
        """The look of a computation. One that fits nothing looks like the last."""
        return next((look for begins, look in self.computations if name.startswith(begins)), self.computations[-1][1])
