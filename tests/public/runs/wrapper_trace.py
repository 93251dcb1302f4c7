"""What a wrapper sends: the messages that it has to send for given parameters, and those that it sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from grader.checking import Check, CheckFailed
from grader.world import Doing, Event
from grader.world.failure import printable
from grader.world.mismatch import short
from grader.world.operation import Operation, Place
from grader.world.report import Finding

if TYPE_CHECKING:
    from torch import Tensor

MAX_LINES = 8
NOT_MET = (Finding.MISMATCH, Finding.DEADLOCK, Finding.LIVELOCK)
ALL_REDUCES = ("all_reduce", "all_reduce_coalesced")
RULES = {
    "NaiveDDP": "one all-reduce for each trainable parameter",
    "FlatDDP": "one all-reduce for each dtype",
    "OverlappedDDP": "one all-reduce for each trainable parameter, in reverse module.parameters()",
    "BucketedDDP": "one all-reduce for each bucket, in the order of .buckets",
}
IN_ORDER = ("OverlappedDDP", "BucketedDDP")
ONE_ORDER = (
    "a gradient that is ready before its predecessors are issued waits for its turn: the order is that of the plan, on "
    "every rank, and not that in which backward computes gradients"
)
TOGETHER = (
    "the gradients that travel together are one tensor, and one all-reduce: their sizes are those of the parameters"
)
ZEROS = "every rank sends as much, whichever gradients it has: zeros stand for a .grad that is None"

Buckets = Sequence[Sequence[str]]


class Message(NamedTuple):
    """The all-reduce of some parameters' gradients, all of one dtype."""

    names: tuple[str, ...]
    dtype: str
    elements: int

    def __str__(self) -> str:
        """ "float32, 11 elements: 'a', 'c'"."""
        return f"{_size(self.dtype, self.elements)}: {', '.join(self.names)}"


def messages(wrapper: str, trainable: Mapping[str, Tensor], buckets: Buckets) -> list[Message]:
    """What one synchronize_gradients() sends. trainable: by name, in the module's order. Nothing is empty."""
    alike: dict[str, list[str]] = {}
    for name, parameter in trainable.items():
        alike.setdefault(_dtype(parameter), []).append(name)
    together: Buckets = {
        "NaiveDDP": [[name] for name in trainable],
        "FlatDDP": list(alike.values()),
        "OverlappedDDP": [[name] for name in reversed(list(trainable))],
        "BucketedDDP": buckets,
    }[wrapper]
    made = []
    for names in together:
        elements = sum(trainable[name].numel() for name in names)
        if elements:
            made.append(Message(tuple(f"'{name}'" for name in names), _dtype(trainable[names[0]]), elements))
    return made


def issued(event: Event) -> Operation | None:
    """The operation that the event issues, if the submission has asked for it and it carries something.

    grader.given's are not counted, and messages of no elements may be sent or left out.
    """
    operation = event.operation
    if event.doing is not Doing.ISSUE or operation is None or operation.place.asker == "given":
        return None
    empty = bool(operation.reads or operation.writes) and num_elements(operation) == 0
    return None if empty else operation


def num_elements(operation: Operation) -> int:
    """Of what the rank gives or, if it gives nothing, gets."""
    return sum(spec.elements for spec in operation.reads or operation.writes)


def compare_sent(sent: Sequence[Operation], due: Sequence[Message], wrapper: str, *, what: str, rank: int) -> None:
    """The operations of one rank for one synchronize_gradients() are those that are due."""
    for operation in sent:
        if operation.name not in ALL_REDUCES:
            raise CheckFailed(
                f"rank {rank}: {what} calls {short(operation)}; what it sends are all-reduces",
                expected=f"{RULES[wrapper]}, and nothing else",
                actual=table(sent),
            )
    ours = [_form(operation) for operation in sent]
    theirs = [(message.dtype, message.elements) for message in due]
    if len(ours) < len(theirs) and not Counter(ours) - Counter(theirs):
        left_out = len(theirs) - len(ours)
        did, help = f"leaves out {left_out} of the {_count(len(theirs))} that are due", ZEROS
    elif Counter(ours) != Counter(theirs):
        other = "" if len(ours) != len(theirs) else " of these sizes"
        did, help = f"issues {_count(len(ours))}, not {len(theirs)}{other}", TOGETHER
    elif wrapper in IN_ORDER and ours != theirs:
        did, help = "issues its all-reduces in the wrong order", ONE_ORDER
    else:
        return
    raise CheckFailed(
        f"rank {rank}: {what} {did}",
        expected=f"{RULES[wrapper]}:\n{lines([str(message) for message in due])}",
        actual=table(sent),
        help=help,
    )


def compare_part(sent: Sequence[Operation], due: Sequence[Message], wrapper: str, *, what: str, rank: int) -> None:
    """As `compare_sent` for a rank that has not come to the end: each of its all-reduces is one of those due."""
    left = Counter((message.dtype, message.elements) for message in due)
    for operation in sent:
        form = _form(operation)
        if operation.name in ALL_REDUCES and not left[form]:
            raise CheckFailed(
                f"rank {rank}: {what} issues an all-reduce of {_size(*form)}, which is not due",
                expected=f"{RULES[wrapper]}:\n{lines([str(message) for message in due])}",
                actual=table(sent),
                help=ZEROS,
            )
        left[form] -= 1


def compare_group(operation: Operation, group: tuple[int, ...], *, what: str, rank: int) -> None:
    """The operation is one of a group of these ranks of the world, and no other rank's."""
    if rank not in group:
        raise CheckFailed(
            f"rank {rank} is not in the group of {what}, and calls {short(operation)}",
            expected="a ValueError on a rank outside the group, before anything is sent",
            actual=line(operation),
        )
    if operation.group != group:
        raise CheckFailed(
            f"rank {rank}: {what} calls {short(operation)} in the wrong group",
            expected=f"the group that it is given, of the ranks {list(group)}",
            actual=f"the group of the ranks {list(operation.group)}: {line(operation)}",
            help="pass group=group to every operation of torch.distributed: without it, all ranks are meant",
        )


@contextmanager
def told_by_trace(check: Check, compare: Callable[[bool], None]) -> Iterator[None]:
    """Runs the block, which runs a world and compares its values; then compare(True) looks at its trace.

    Where the world failed since ranks did not meet, compare(False) looks at what there is, and may tell why.
    """
    try:
        yield
    except CheckFailed as failed:
        failure = check.ran[-1].failure if check.ran else None
        if failure is None or failure.report is None or failure.report.finding not in NOT_MET:
            raise
        try:
            compare(False)
        except CheckFailed as better:
            told, where = better.explanation, failed.explanation.where
            raise CheckFailed(
                told.rationale, expected=told.expected, actual=told.actual, help=told.help, where=where
            ) from None
        raise
    compare(True)


def table(sent: Sequence[Operation]) -> str:
    """A line for each operation: what, and the submission's line that asked for it."""
    return lines([line(operation) for operation in sent]) or "nothing sent"


def line(operation: Operation) -> str:
    """ "all_reduce of float32, 6 elements, at data_parallel.py:41"."""
    told = short(operation)
    if operation.reads or operation.writes:
        told += f" of {_size(*_form(operation))}"
    return told + at(operation.place)


def at(place: Place) -> str:
    """ ", at data_parallel.py:41"; "" for a line that is not the submission's."""
    return f", at {printable(place.file, 100)}:{place.line}" if place.asker == "submission" else ""


def lines(texts: Sequence[str]) -> str:
    """One below the other, a few of them."""
    left_out = len(texts) - MAX_LINES
    return "\n".join([*texts[:MAX_LINES], f"(and {left_out} more)"] if left_out > 0 else texts)


def _form(operation: Operation) -> tuple[str, int]:
    specs = operation.reads or operation.writes
    return "/".join(sorted({spec.dtype for spec in specs})), num_elements(operation)


def _size(dtype: str, elements: int) -> str:
    return f"{dtype}, {elements} element{'' if elements == 1 else 's'}"


def _count(number: int) -> str:
    return f"{number} all-reduce{'' if number == 1 else 's'}"


def _dtype(parameter: Tensor) -> str:
    return str(parameter.dtype).removeprefix("torch.")
