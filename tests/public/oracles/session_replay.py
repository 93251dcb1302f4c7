"""What the gradients must be after any steps with a wrapper: each rank's by hand, and means over ranks.

All ranks are followed in one process, with plain tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.public.oracles.sessions import Coefficients, Script, Session

if TYPE_CHECKING:
    from torch import Tensor

ByRank = Mapping[int, Mapping[str, "Tensor | None"]]


@dataclass(frozen=True)
class Averaged:
    """One synchronize_gradients() and what led to it: by rank of the group, `.grad` of each parameter, in float64.

    held:    as it was given. None for none.
    earlier: before the last backward.
    first:   after the first backward since the step before.
    before:  after the synchronize_gradients() before this one; empty in the first step.
    """

    held: ByRank
    earlier: ByRank
    first: ByRank
    before: ByRank


@dataclass(frozen=True)
class Gradients:
    """What a look must show.

    by_rank:      by_rank[rank][name]; None for no gradient.
    parameters:   by rank and name.
    synchronized: nothing was added since.
    averaged:     the last synchronize_gradients(), if there was one.
    """

    by_rank: ByRank
    parameters: Mapping[int, Mapping[str, Tensor]]
    trainable: frozenset[str]
    synchronized: bool
    averaged: Averaged | None


@dataclass(frozen=True)
class Refused:
    """A RuntimeError, out of "backward()" or "synchronize_gradients()"."""

    call: str


def replay(session: Session) -> list[Gradients | Refused]:
    """What each look of the session must show. Gradients are summed in float64 and have their parameter's dtype."""
    replicas = {rank: _Replica(session) for rank in session.members}
    runs = [replicas[rank].follow(session.scripts[rank]) for rank in session.members]
    expected: list[Gradients | Refused] = []
    averaged: Averaged | None = None
    for events in zip(*runs, strict=True):
        match events[0]:
            case "synchronize":
                averaged = _average(replicas)
            case "look":
                first = replicas[session.members[0]]
                seen = {rank: replica.snapshot() for rank, replica in replicas.items()}
                values = {rank: dict(replica.parameters) for rank, replica in replicas.items()}
                expected.append(Gradients(seen, values, frozenset(first.trainable), first.synchronized, averaged))
            case call:
                expected.append(Refused(call))
    return expected


class _Replica:
    """One rank's parameters and gradients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wanting = set(session.parameters) - session.frozen
        self.parameters = dict(session.parameters)
        self.gradients: dict[str, Tensor | None] = dict.fromkeys(session.parameters)
        self.earlier = dict(self.gradients)  # before the last backward
        self.first: dict[str, Tensor | None] = {}  # after the first backward of this step
        self.before: dict[str, Tensor | None] = {}  # after the step before
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
                case "move":
                    for name, amount in step["amounts"].items():
                        self.parameters[name] = self.parameters[name] + amount
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
        self.earlier = dict(self.gradients)
        for name, coefficient in coefficients.items():
            name = self._session.tied.get(name, name)
            if name in self._wanting:
                before = self.gradients[name]
                self.gradients[name] = coefficient.double() if before is None else before + coefficient.double()
        self.first = self.first or dict(self.gradients)

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


def _average(replicas: Mapping[int, _Replica]) -> Averaged:
    """Makes every trainable gradient the mean over ranks; returns what led to it."""
    led = Averaged(
        held={rank: dict(replica.gradients) for rank, replica in replicas.items()},
        earlier={rank: replica.earlier for rank, replica in replicas.items()},
        first={rank: replica.first or dict(replica.gradients) for rank, replica in replicas.items()},
        before={rank: replica.before for rank, replica in replicas.items() if replica.before},
    )
    for name in next(iter(replicas.values())).trainable:
        present = [gradient for by_name in led.held.values() if (gradient := by_name[name]) is not None]
        for replica in replicas.values():
            replica.gradients[name] = sum(present[1:], present[0]) / len(replicas) if present else None
    for replica in replicas.values():
        replica.before, replica.first, replica.synchronized = dict(replica.gradients), {}, True
    return led
