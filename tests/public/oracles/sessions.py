"""The life of a wrapper, as data: the parameters of a module, and for each rank a script of steps.

The program `follow` does the steps with the submission; `replay` does them with plain tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Step = dict[str, Any]
Script = list[Step]
Coefficients = Mapping[str, "Tensor"]

SYNCHRONIZE: Step = {"do": "synchronize"}
REFUSED_SYNCHRONIZE: Step = {"do": "refused synchronize"}
WRAP_AGAIN: Step = {"do": "wrap again"}


def look(when: str) -> Step:
    """The gradients are looked at; `when` is for messages: "after the second step"."""
    return {"do": "look", "when": when}


def backward(coefficients: Coefficients) -> Step:
    """A forward that uses these parameters, in this order, and its backward: adds to each its coefficient."""
    return {"do": "backward", "coefficients": dict(coefficients)}


def retaining_backward(coefficients: Coefficients) -> Step:
    """As `backward`; the graph is kept for `refused_backward(None)`."""
    return {"do": "retaining backward", "coefficients": dict(coefficients)}


def backward_of_two_calls(coefficients: Coefficients, more: Coefficients) -> Step:
    """Two forwards and one backward through both."""
    return {"do": "backward of two calls", "coefficients": dict(coefficients), "more": dict(more)}


def refused_backward(coefficients: Coefficients | None) -> Step:
    """A backward that must be a RuntimeError; None: through the graph of the last `retaining_backward`."""
    return {"do": "refused backward", "same_graph": coefficients is None, "coefficients": dict(coefficients or {})}


def clear(*, set_to_none: bool = True) -> Step:
    """zero_grad()."""
    return {"do": "clear", "set_to_none": set_to_none}


def write(gradients: Coefficients) -> Step:
    """`.grad` is set by hand."""
    return {"do": "write", "gradients": dict(gradients)}


def move(amounts: Coefficients) -> Step:
    """This rank's parameters are moved by these amounts, as no optimizer would: they differ between ranks."""
    return {"do": "move", "amounts": dict(amounts)}


def require(names: Sequence[str], value: bool) -> Step:
    """requires_grad of these parameters is set after construction."""
    return {"do": "require", "names": list(names), "value": value}


def no_sync(*steps: Step, interrupted: bool = False) -> Step:
    """The steps inside `no_sync()`; interrupted: then an exception leaves it, and is caught outside."""
    return {"do": "no_sync", "steps": list(steps), "interrupted": interrupted}


@dataclass(frozen=True)
class Session:
    """The life of one wrapper, on every rank of its group.

    title:      for messages, e.g. "a parameter that rank 1 alone uses".
    hint:       one thing to try where a rank raises in this session.
    parameters: by name, in the module's order; their values on the first rank of the group.
    scripts:    by rank of the world. Ranks look, synchronize and are refused at the same places.
    tied:       a second name of a parameter -> its first.
    transposed: names of parameters (of 2 dimensions) whose memory is laid out by columns.
    options:    of the wrapper, e.g. bucket_bytes.
    group:      ranks of the world that make up the group; None for all.
    """

    title: str
    parameters: Mapping[str, Tensor]
    scripts: Sequence[Script]
    frozen: frozenset[str] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)
    transposed: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    group: tuple[int, ...] | None = None
    hint: str = ""

    @property
    def members(self) -> Sequence[int]:
        """The ranks of the world that are in the group."""
        return range(len(self.scripts)) if self.group is None else self.group

    def for_rank(self, rank: int) -> dict[str, Any]:
        """What one rank is sent: its own script and no other's.

        In a group, ranks but the first begin with other values, which making the wrapper must replace.
        """
        other = self.group is not None and rank != self.group[0]
        return {
            "parameters": {name: value + 1 if other else value for name, value in self.parameters.items()},
            "frozen": sorted(self.frozen),
            "tied": dict(self.tied),
            "transposed": sorted(self.transposed),
            "options": dict(self.options),
            "group": None if self.group is None else list(self.group),
            "looks": len(self.looks()),
            "script": self.scripts[rank],
        }

    def looks(self) -> list[str]:
        """What each value is about that a rank yields."""
        return [f"{self.title}, {when}" for when in _looks(self.scripts[self.members[0]])]


def _looks(steps: Script) -> Iterator[str]:
    for step in steps:
        match step:
            case {"do": "look", "when": when}:
                yield when
            case {"do": "refused synchronize"}:
                yield "inside no_sync()"
            case {"do": "refused backward"}:
                yield "the second backward()"
            case {"do": "no_sync", "steps": inner}:
                yield from _looks(inner)
