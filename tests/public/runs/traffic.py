"""What a call sends: its operations, phase by phase, against what the contract sends there. By whatever collectives.

A program marks the end of each phase; a plan says what may happen until then. Bytes are counted as every torch
collective names them, by its arguments: what a rank gives, and what it gets. Events are claims of the ranks; where
nothing may be sent, programs prove it by letting one rank go alone (see `first_alone` in the programs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from grader.checking import Check, CheckFailed
from grader.world import Doing, Trace
from grader.world.failure import printable
from grader.world.mismatch import describe, short
from grader.world.operation import Operation

if TYPE_CHECKING:
    from torch import Tensor

# Two steps (reduce and scatter, reduce-scatter and all-gather, …) take 1 + 1 / W of one, in a world of 2 the most: 1.5.
MOST = 1.75
SIZES = 4096  # bytes that a call may spend on telling sizes, or on pickled objects' headers
MAX_SHOWN = 4
ASKERS = ("submission", "program", "given", "")  # of operations that torch issues in backward, there is no line of it
OWN = ("submission", "program", "")  # what grader.given sends is not counted


@dataclass(frozen=True)
class Phase:
    """What the ranks of a group send until the next mark.

    kind:      "gather" of all ranks' pieces, "sum" over the ranks, "nothing", or "anything" that stays in the group.
    when:      "in forward".
    num_bytes: of the whole that is gathered or summed. text: its dtype and shape.
    help:      where something is sent, and nothing may be.
    """

    kind: Literal["gather", "sum", "nothing", "anything"]
    when: str = ""
    num_bytes: int = 0
    text: str = ""
    help: str = ""

    @property
    def due(self) -> str:
        """What the contract sends here."""
        return "nothing" if self.kind == "nothing" else f"one {self.kind} over the ranks of {self.text}"


@dataclass(frozen=True)
class Plan:
    """What one case sends. group: its ranks in the world; the others send nothing. phases: until each mark in turn."""

    what: str
    group: tuple[int, ...]
    phases: Sequence[Phase]


Sent = Mapping[int, Sequence[Operation]]  # by rank of the world


def whole(kind: Literal["gather", "sum"], when: str, tensor: Tensor) -> Phase:
    """A gather whose result is this tensor, or a sum over the ranks of tensors like it."""
    text = f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
    return Phase(kind, when, tensor.numel() * tensor.element_size(), text)


@contextmanager
def compared(check: Check, plans: Sequence[Plan | None]) -> Iterator[None]:
    """Runs the block, in which a world runs and its values are compared; then compares what was sent.

    plans: by case; None for a case of which nothing is said. Where the world failed since ranks did not meet, the
    plan tells why, if an operation is one that should not be there: in another group, or where nothing is sent.
    """
    try:
        yield
    except CheckFailed as failed:
        if check.ran and check.ran[-1].failure is not None and check.ran[-1].failure.report is not None:
            _explain(check, plans, failed)
        raise
    if not check.trace.complete:
        raise CheckFailed("the ranks did more operations than can be counted", help="look for a loop that never ends")
    for case, plan in enumerate(plans):
        if plan is not None:
            _compare(check, case, plan)


def _explain(check: Check, plans: Sequence[Plan | None], failed: CheckFailed) -> None:
    """Raises a better failure than that of the world, if there is one: by the last case of each rank."""
    for rank in range(check.ran[-1].world_size):
        events = check.trace.of(rank)
        plan = plans[events[-1].case] if len(events) and events[-1].case < len(plans) else None
        if plan is None:
            continue
        try:
            _compare_place(check, events[-1].case, plan, rank)
        except CheckFailed as better:
            raise CheckFailed(
                better.explanation.rationale,
                expected=better.explanation.expected,
                actual=better.explanation.actual,
                help=better.explanation.help,
                where=failed.explanation.where,
                output=failed.output,
            ) from None


def _compare(check: Check, case: int, plan: Plan) -> None:
    for rank in range(check.ran[-1].world_size):
        _compare_place(check, case, plan, rank)
    if len(plan.group) == 1:
        return
    by_rank = {rank: _parts(check.trace.of(rank, case), OWN) for rank in plan.group}
    for number, phase in enumerate(plan.phases):
        sent = {rank: parts[number] if number < len(parts) else [] for rank, parts in by_rank.items()}
        if phase.kind in ("gather", "sum") and phase.num_bytes:
            _compare_bytes(plan, phase, sent)


def _compare_place(check: Check, case: int, plan: Plan, rank: int) -> None:
    """Nothing outside the group, and nothing where nothing is sent."""
    events = check.trace.of(rank, case)
    if rank not in plan.group:
        for operation in events.issued(by=("submission",)):
            raise CheckFailed(
                f"rank {rank} is not in the group of {plan.what}, and calls {short(operation)}",
                expected="a ValueError on a rank outside the group, before anything is sent",
                actual=_line(operation),
            )
        return
    for phase, part in zip(plan.phases, _parts(events, ASKERS), strict=False):
        when = f" {phase.when}" if phase.when else ""
        for operation in part:
            if operation.group != plan.group:
                raise CheckFailed(
                    f"rank {rank}: {plan.what} calls {short(operation)} in the wrong group",
                    expected=f"the group that it is given, of the ranks {list(plan.group)}",
                    actual=f"the group of the ranks {list(operation.group)}: {_line(operation)}",
                    help="pass group=group to every operation of torch.distributed: without it, all ranks are meant",
                )
            if phase.kind == "nothing" and len(plan.group) > 1:
                raise CheckFailed(
                    f"rank {rank}: {plan.what} calls {short(operation)}{when}; nothing may be sent there",
                    expected="no operation of torch.distributed",
                    actual=_line(operation),
                    help=phase.help,
                )


def _compare_bytes(plan: Plan, phase: Phase, sent: Sent) -> None:
    idle = [rank for rank, operations in sent.items() if not operations]
    if idle:
        raise CheckFailed(
            f"rank {idle[0]}: {plan.what} calls no operation of torch.distributed {phase.when}",
            expected=phase.due,
            actual="nothing sent, and nothing received",
            help="what ranks tell each other goes through the process group",
        )
    gives = sum(operation.num_bytes for operations in sent.values() for operation in operations)
    gets = sum(spec.num_bytes for operations in sent.values() for operation in operations for spec in operation.writes)
    mean = max(gives, gets) / len(sent)
    if mean <= MOST * phase.num_bytes + SIZES:
        return
    raise CheckFailed(
        f"{plan.what} moves {mean / phase.num_bytes:.1f} times as much as it has to {phase.when}",
        expected=f"{phase.due}: {phase.num_bytes} bytes",
        actual="\n".join(_account(rank, operations) for rank, operations in list(sent.items())[:MAX_SHOWN]),
        help="an all-gather of the own columns brings all columns to all ranks, once"
        if phase.kind == "gather"
        else "a reduce-scatter or an all-reduce adds on the way; whoever gathers all ranks' gradients gets W times as "
        "much, to add them up alone",
    )


def _account(rank: int, operations: Sequence[Operation]) -> str:
    gives = sum(operation.num_bytes for operation in operations)
    gets = sum(spec.num_bytes for operation in operations for spec in operation.writes)
    shown = "; ".join(map(_line, operations[:MAX_SHOWN]))
    more = f"; {len(operations) - MAX_SHOWN} more" if len(operations) > MAX_SHOWN else ""
    return f"rank {rank} gives {gives} bytes and gets {gets}: {shown}{more}"


def _line(operation: Operation) -> str:
    """The operation and its line."""
    place = operation.place
    where = f", {printable(place.file, 100)}:{place.line} in {printable(place.function, 100)}"
    return describe(operation) + (where if place.asker == "submission" else "")


def _parts(events: Trace, askers: Sequence[str]) -> list[list[Operation]]:
    """What a rank asked for until each of its marks, and after the last."""
    parts: list[list[Operation]] = [[]]
    for event in events:
        if event.doing is Doing.MARK:
            parts.append([])
        elif event.doing is Doing.ISSUE and event.operation is not None and event.operation.place.asker in askers:
            parts[-1].append(event.operation)
    return parts
