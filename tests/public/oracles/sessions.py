"""What the gradients must be after any steps with a wrapper: each rank's by hand, and means over ranks.

A session is data: the parameters of a module, and for each rank a script of steps. The program `follow` does the
steps with the submission; `replay` does them with plain tensors, all ranks in one process.
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


@dataclass(frozen=True)
class Gradients:
    """What a look must show. by_rank[rank][name]: None for no gradient. synchronized: nothing was added since."""

    by_rank: Mapping[int, Mapping[str, Tensor | None]]
    trainable: frozenset[str]
    synchronized: bool


@dataclass(frozen=True)
class Refused:
    """A RuntimeError, out of "backward()" or "synchronize_gradients()"."""

    call: str


def replay(session: Session) -> list[Gradients | Refused]:
    """What each look of the session must show. Gradients are summed in float64 and have their parameter's dtype."""
    replicas = {rank: _Replica(session) for rank in session.members}
    runs = [replicas[rank].follow(session.scripts[rank]) for rank in session.members]
    expected: list[Gradients | Refused] = []
    for events in zip(*runs, strict=True):
        match events[0]:
            case "synchronize":
                _average(list(replicas.values()))
            case "look":
                first = replicas[session.members[0]]
                seen = {rank: replica.snapshot() for rank, replica in replicas.items()}
                expected.append(Gradients(seen, frozenset(first.trainable), first.synchronized))
            case call:
                expected.append(Refused(call))
    return expected


class _Replica:
    """One rank's parameters and gradients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanting = set(session.parameters) - session.frozen
        self.gradients: dict[str, Tensor | None] = dict.fromkeys(session.parameters)
        self.trainable = set(self._wanting)
        self.synchronized = False

    def follow(self, steps: Script) -> Iterator[str]:
        """Does the steps that concern this rank alone; yields the others' names."""
        for step in steps:
            match step["do"]:
                case "backward" | "retaining backward":
                    self._accumulate(step["coefficients"])
                case "backward of two calls":
                    self._accumulate(step["coefficients"])
                    self._accumulate(step["more"])
                case "clear":
                    self._clear(step["set_to_none"])
                case "write":
                    self.gradients |= {name: gradient.double() for name, gradient in step["gradients"].items()}
                    self.synchronized = False
                case "require":
                    change = self._wanting.update if step["value"] else self._wanting.difference_update
                    change(step["names"])
                case "no_sync":
                    yield from self.follow(step["steps"])
                case "wrap again":
                    self.trainable = set(self._wanting)
                case "synchronize" | "look":
                    yield step["do"]
                case "refused synchronize":
                    yield "synchronize_gradients()"
                case "refused backward":
                    yield "backward()"

    def _accumulate(self, coefficients: Coefficients) -> None:
        self.synchronized = False
        for name, coefficient in coefficients.items():
            name = self._session.tied.get(name, name)
            if name in self._wanting:
                before = self.gradients[name]
                self.gradients[name] = coefficient.double() if before is None else before + coefficient.double()

    def _clear(self, set_to_none: bool) -> None:
        for name, gradient in self.gradients.items():
            if gradient is not None:
                self.gradients[name] = None if set_to_none else gradient * 0

    def snapshot(self) -> dict[str, Tensor | None]:
        """The gradients as they stand, each in its parameter's dtype."""
        return {
            name: None if gradient is None else gradient.to(self._session.parameters[name].dtype)
            for name, gradient in self.gradients.items()
        }


def _average(replicas: Sequence[_Replica]) -> None:
    for name in replicas[0].trainable:
        there = [replica.gradients[name] for replica in replicas]
        present = [gradient for gradient in there if gradient is not None]
        for replica in replicas:
            replica.gradients[name] = sum(present[1:], present[0]) / len(replicas) if present else None
    for replica in replicas:
        replica.synchronized = True
