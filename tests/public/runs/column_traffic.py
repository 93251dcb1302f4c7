"""What tensor parallelism sends: operations, phase by phase, against what the contract sends. By any collectives.

A program marks the end of each phase; a plan says what may happen until then. Bytes are counted as every torch
collective names them, by its arguments: what a rank gives, and what it gets. Events are claims of the ranks; where
nothing may be sent, programs prove it by letting one rank go alone (see `first_alone` in the programs).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from grader.checking import Check, CheckFailed
from grader.world import Doing, Failure, Trace
from grader.world.failure import printable
from grader.world.mismatch import describe, short
from grader.world.operation import Operation, Spec

# Two steps (reduce and scatter, reduce-scatter and all-gather, …) take 1 + 1 / W of one, in a world of 2 the most: 1.5.
MOST = 1.75
SIZES = 4096  # bytes that a call may spend on telling sizes, or on pickled objects' headers
MAX_SHOWN = 4
ASKERS = ("submission", "program", "given", "")  # of operations that torch issues in backward, there is no line of it
OWN = ("submission", "program", "")  # what grader.given sends is not counted
PASS_GROUP = "pass group=group to every operation of torch.distributed: without it, all ranks are meant"
GETS_GROUP = "does every operation of torch.distributed get group=group? Without it, all ranks are meant"
EMPTY = Spec("float64", (0,))


@dataclass(frozen=True)
class Phase:
    """What the ranks of a group send until the next mark.

    kind:  "gather" of all ranks' pieces, "sum" over the ranks, "nothing", or "anything" that stays in the group.
    when:  "in forward".
    whole: the tensor that the gather makes; of a sum, one like those that are summed.
    help:  for who sends something where nothing may be sent.
    """

    kind: Literal["gather", "sum", "nothing", "anything"]
    when: str = ""
    whole: Spec = EMPTY
    help: str = ""

    @property
    def due(self) -> str:
        """What the contract sends here."""
        return "nothing" if self.kind == "nothing" else f"one {self.kind} over the ranks of {self.whole}"


@dataclass(frozen=True)
class Plan:
    """What one case sends. group: its ranks in the world; the others send nothing. phases: until each mark in turn."""

    what: str
    group: tuple[int, ...]
    phases: Sequence[Phase]


Sent = Mapping[int, Sequence[Operation]]  # by rank of the world


@contextmanager
def compared(check: Check, plans: Sequence[Plan]) -> Iterator[None]:
    """Runs the block, in which a world runs and its values are compared; then compares what was sent.

    plans: by case. Where the world failed since ranks did not meet, the plan tells why, if an operation is one that
    should not be there: in another group, or where nothing is sent.
    """
    try:
        yield
    except CheckFailed as failed:
        if check.ran and check.ran[-1].failure is not None:
            _explain(check, check.ran[-1].failure, plans, failed)
        raise
    for case, plan in enumerate(plans):
        _compare(check, case, plan)


def _explain(check: Check, failure: Failure, plans: Sequence[Plan], failed: CheckFailed) -> None:
    """Raises a better failure than that of the world, if there is one: by the last case of each rank."""
    size = check.ran[-1].world_size
    if failure.report is None:
        cause = failure.cause
        in_some = cause.phase == "program" and cause.finished < len(plans) and len(plans[cause.finished].group) < size
        if in_some and not failed.explanation.help:
            failed.explanation = replace(failed.explanation, help=GETS_GROUP)
        return
    for rank in range(size):
        case = max((event.case for event in check.trace.of(rank)), default=len(plans))
        if case >= len(plans):
            continue
        try:
            _compare_place(check, case, plans[case], rank)
        except CheckFailed as better:
            stands = [failure.stand_text(stand) for stand in failure.report.stands if stand.place.line]
            better.explanation = replace(better.explanation, where="\n".join(stands[:MAX_SHOWN]))
            better.output = failed.output
            raise better from None
    _explain_held(check, failed)


def _explain_held(check: Check, failed: CheckFailed) -> None:
    """Raises the failure of a rank that waits for those that have left it alone, and are held until it is done."""
    last = {event.rank: event for event in check.trace}
    held = [rank for rank, event in last.items() if event.doing is Doing.HOLD]
    waiting = next((event.operation for event in last.values() if event.doing is not Doing.HOLD), None)
    if held and waiting is not None:
        ranks = f"rank {held[0]} has" if len(held) == 1 else f"ranks {', '.join(map(str, sorted(held)))} have"
        raise CheckFailed(
            f"rank {waiting.rank} waits in {short(waiting)}: {ranks} gone on without calling it",
            where=failed.explanation.where,
            help="every rank of the group must call it, and as often as the others, also one that has nothing to give",
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
        if phase.kind in ("gather", "sum") and phase.whole.num_bytes:
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
        when, there = (f" {phase.when}", " there") if phase.when else ("", "")
        for operation in part:
            if operation.group != plan.group:
                raise CheckFailed(
                    f"rank {rank}: {plan.what} calls {short(operation)} in the wrong group",
                    expected=f"the group that it is given, of the ranks {list(plan.group)}",
                    actual=f"the group of the ranks {list(operation.group)}: {_line(operation)}",
                    help=PASS_GROUP,
                )
            if phase.kind == "nothing" and len(plan.group) > 1:
                raise CheckFailed(
                    f"rank {rank}: {plan.what} calls {short(operation)}{when}; nothing may be sent{there}",
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
    mean = max(sum(map(_gives, sent.values())), sum(map(_gets, sent.values()))) / len(sent)
    if mean <= MOST * phase.whole.num_bytes + SIZES:
        return
    raise CheckFailed(
        f"{plan.what} moves {mean / phase.whole.num_bytes:.3g} times as much as it has to {phase.when}",
        expected=f"{phase.due}: {phase.whole.num_bytes} bytes",
        actual=_accounts(sent),
        help="an all-gather of the own columns brings all columns to all ranks, once"
        if phase.kind == "gather"
        else "a reduce-scatter or an all-reduce adds on the way; whoever gathers all ranks' gradients gets W times as "
        "much, to add them up alone",
    )


def _gives(operations: Sequence[Operation]) -> int:
    """Bytes that a rank gives to its operations."""
    return sum(operation.num_bytes for operation in operations)


def _gets(operations: Sequence[Operation]) -> int:
    """Bytes that a rank gets from its operations."""
    return sum(spec.num_bytes for operation in operations for spec in operation.writes)


def _accounts(sent: Sent) -> str:
    """A line for the ranks that do the same."""
    alike: dict[str, list[str]] = defaultdict(list)
    for rank, operations in sent.items():
        shown = "; ".join(map(_line, operations[:MAX_SHOWN]))
        more = f"; {len(operations) - MAX_SHOWN} more" if len(operations) > MAX_SHOWN else ""
        alike[f"gives {_gives(operations)} bytes and gets {_gets(operations)}: {shown}{more}"].append(str(rank))
    lines = [
        f"ranks {', '.join(ranks)}: each {text}" if len(ranks) > 1 else f"rank {ranks[0]} {text}"
        for text, ranks in alike.items()
    ]
    return "\n".join(lines[:MAX_SHOWN])


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
