"""Constructors and forwards that must raise on every rank, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.checking import Check, expect
from tests.public.runs import column_traffic
from tests.public.runs.conjugates import nothing_sent

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Refusal:
    """A ValueError whose message holds each of `naming`: of making the layer, or of its forward where x is given."""

    layer: str
    arguments: tuple[Any, ...]
    x: Tensor | None = None
    naming: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The call."""
        made = f"{self.layer}({', '.join(map(str, self.arguments))})"
        return made if self.x is None else f"{made} with x of shape {tuple(self.x.shape)}"


def run_refusals(check: Check, size: int, refusals: Sequence[Refusal]) -> None:
    """Makes the calls on every rank of one world."""
    titles = [refusal.title for refusal in refusals]
    calls = [{"name": refusal.layer, "arguments": list(refusal.arguments), "x": refusal.x} for refusal in refusals]
    silent = column_traffic.Phase("nothing", "before it raises", help="look at the arguments before anything is sent")
    plans = [
        column_traffic.Plan(
            one.title, tuple(range(size)), [silent] if one.x is None else [column_traffic.Phase("anything"), silent]
        )
        for one in refusals
    ]
    with column_traffic.compared(check, plans):
        values = check.run(size, "tensor_parallel_hidden.refuse", cases=titles, calls=calls)
        for number, refusal in enumerate(refusals):
            for rank in range(size):
                value = values[rank][number]
                expect.raised(value, "ValueError", what=refusal.title, rank=rank, naming=refusal.naming)
                nothing_sent(value, size=size, what=refusal.title, rank=rank)
