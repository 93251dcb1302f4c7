"""What benchmark_collective did on one rank, step by step: from the marks and operations in the trace of its world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from grader.checking import CheckFailed
from grader.world import Doing, Event
from grader.world.operation import Operation
from tests.public.oracles import benchmark as oracle
from tests.public.runs.traffic import ASKERS

MARKS = ("clock", "synchronize", "barrier")


@dataclass(frozen=True)
class Step:
    """One thing that was done.

    name:   "clock", "synchronize", "barrier", or a collective as benchmark_collective calls it.
    part:   of an asynchronous operation, whether it was issued here, or waited for.
    memory: a number, the same for the same buffers. finite: all in them was finite when the call was over.
    """

    name: str
    operation: Operation | None = None
    memory: int = -1
    finite: bool = True
    part: Literal["whole", "start", "end"] = "whole"

    @property
    def text(self) -> str:
        """For messages."""
        group = f" (of ranks {list(self.operation.group)})" if self.operation is not None else ""
        return {"whole": "", "start": "the start of ", "end": "the wait for "}[self.part] + self.name + group

    @property
    def elements(self) -> list[int]:
        """How many it gives and how many it gets, the smaller first; once, where they are as many."""
        assert self.operation is not None
        sides = (self.operation.reads, self.operation.writes)
        return sorted({sum(spec.elements for spec in side) for side in sides} - {0})

    @property
    def dtype(self) -> str:
        """Of its buffers."""
        assert self.operation is not None
        specs = (*self.operation.reads, *self.operation.writes)
        return specs[0].dtype if specs else ""


def steps_of(events: Sequence[Event], buffers: Any, *, what: str, rank: int) -> list[Step]:
    """The steps of the submission. events: of one call on one rank. buffers: as the program has it, by operation."""
    issued = [event.operation for event in events if event.doing is Doing.ISSUE and event.operation is not None]
    if not isinstance(buffers, list) or len(buffers) < len(issued) or not all(_is_pair(pair) for pair in buffers):
        raise CheckFailed(f"rank {rank}: the buffers of {what} cannot be read")
    if len(buffers) > len(issued):
        raise CheckFailed(
            f"rank {rank}: {what} asks for an operation that is refused, and goes on",
            help="let the error out: it says what is wrong with the tensors",
        )
    by_seq = {operation.seq: pair for operation, pair in zip(issued, buffers, strict=True)}
    steps = []
    for event in events:
        operation = event.operation
        if operation is None:
            steps += [Step(event.name)] if event.name in MARKS else []
        elif operation.place.asker in ASKERS and operation.seq in by_seq:
            memory, finite = by_seq[operation.seq]
            step = Step(_collective(operation.name), operation, memory, bool(finite))
            if event.doing is Doing.ISSUE:
                steps.append(replace(step, part="start" if operation.is_async else "whole"))
            elif event.doing in (Doing.WAIT, Doing.POLL):
                steps.append(replace(step, part="end"))
    return steps


def joined(steps: Sequence[Step]) -> list[Step]:
    """An operation that is issued and waited for among these steps is whole, and stands where it is waited for."""
    parts: dict[int, set[str]] = {}
    for step in steps:
        if step.operation is not None:
            parts.setdefault(step.operation.seq, set()).add(step.part)
    whole = {seq for seq, found in parts.items() if found == {"start", "end"}}
    return [
        replace(step, part="whole") if step.operation is not None and step.operation.seq in whole else step
        for step in steps
        if not (step.part == "start" and step.operation is not None and step.operation.seq in whole)
    ]


def shown(steps: Sequence[Step]) -> str:
    """As one line."""
    return ", ".join(step.text for step in steps) or "nothing"


def _collective(name: str) -> str:
    """The name of torch's function as benchmark_collective has it: the forms for single tensors have longer ones."""
    return max((one for one in oracle.OPERATIONS if name.startswith(one)), key=len, default=name)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(type(one) is int for one in pair)
