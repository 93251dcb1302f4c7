"""Calls of a collective on every rank: what goes in, what must come out, and the comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from grader.checking import Check, PerRank, expect
from tests.public.runs import cases
from tests.public.runs.by_rank import of_each
from tests.public.runs.call_told import argument_told, entry_told, result_told
from tests.public.runs.messages import expect_messages
from tests.public.runs.told import explained, hinting
from tests.public.runs.traffic import Traffic

LAYOUTS = {
    "plain": "",
    "strided": ", a non-contiguous tensor (every other element of a wider one)",
    "transposed": ", a non-contiguous tensor (its dimensions in reverse order in memory)",
    "leaf": ", a tensor with requires_grad",
}


@dataclass(frozen=True)
class Call:
    """One call on every rank of the world.

    name:      what messages call it, e.g. "src=1, float32 (3,)".
    inputs:    by rank: a tensor, a list of tensors, or None.
    expected:  by rank: a tensor, a list of tensors, or None for no result.
    arguments: what follows the input, alike on all ranks: a root, then the name of an operator.
    layout:    how the input lies in memory: "plain", "strided", "transposed", or "leaf" for one with a gradient.
    group:     "default", "own" (the group that holds the rank) or "other" (one that does not).
    exact:     the results are moved, not computed.
    refused:   instead of returning, every rank raises a ValueError whose message holds each of `naming`.
    """

    name: str
    inputs: Sequence[Any]
    expected: Sequence[Any] = ()
    arguments: Sequence[int | str] = ()
    layout: Literal["plain", "strided", "transposed", "leaf"] = "plain"
    group: Literal["default", "own", "other"] = "default"
    exact: bool = False
    refused: bool = False
    naming: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The name and the layout."""
        return self.name + LAYOUTS[self.layout]

    def in_other_layouts(self) -> list[Call]:
        """The same call with inputs that are not contiguous, and with inputs that take part in autograd."""
        layouts: tuple[Literal["strided", "transposed", "leaf"], ...] = ("strided", "transposed", "leaf")
        return [replace(self, layout=layout) for layout in layouts]


def wrong_roots(
    parameter: str, inputs: Sequence[Any], *, group_size: int, group: Literal["default", "own"] = "default"
) -> list[Call]:
    """Calls with roots that are no rank in the group: the first beyond it, and one that Python's lists would take."""
    where = "" if group == "default" else f" in a group of {group_size} ranks or fewer"
    return [
        Call(f"{parameter}={root}{where}", inputs, arguments=[root], group=group, refused=True, naming=[str(root)])
        for root in (group_size, -1)
    ]


def wrong_operators(check: Check, world_size: int, arguments: Sequence[int] = ()) -> list[Call]:
    """Calls with an operator that is none of the five, or that the dtype does not have.

    arguments: what stands before the operator.
    """
    wrong = (("BAND", "int64", "BAND"), ("AVG", "int64", "int64"), ("MAX", "complex64", "complex64"))
    return [
        Call(
            f"{op}, {dtype}",
            cases.for_ranks(check, range(world_size), (world_size,), dtype, "wrong"),
            arguments=[*arguments, op],
            refused=True,
            naming=[naming],
        )
        for op, dtype, naming in wrong
    ]


def from_outside(inputs: Sequence[Any], arguments: Sequence[int | str] = ()) -> Call:
    """A call by ranks that are not in the group."""
    return Call("a group that does not hold this rank", inputs, arguments=arguments, group="other", refused=True)


def in_groups(groups: Sequence[Sequence[int]], calls_of: Callable[[Sequence[int]], list[Call]]) -> list[Call]:
    """The calls of several groups at the same time, as calls of the world that the groups share out.

    calls_of(ranks) makes the calls of one group, inputs and expected values by rank in the group; names and
    arguments must be alike in all groups.
    """
    merged = []
    for together in zip(*(calls_of(ranks) for ranks in groups), strict=True):
        inputs: dict[int, Any] = {}
        expected: dict[int, Any] = {}
        for ranks, call in zip(groups, together, strict=True):
            inputs |= zip(ranks, call.inputs, strict=True)
            expected |= zip(ranks, call.expected or [None] * len(ranks), strict=True)
        by_rank = sorted(inputs)
        merged.append(
            replace(
                together[0],
                name=f"{together[0].name}, in the groups {', '.join(str(list(ranks)) for ranks in groups)}",
                inputs=[inputs[rank] for rank in by_rank],
                expected=[expected[rank] for rank in by_rank],
                group="own",
            )
        )
    return merged


def run_calls(
    check: Check,
    world_size: int,
    function: str,
    calls: Sequence[Call],
    *,
    groups: Sequence[Sequence[int]] = (),
    same_bits: bool = False,
) -> None:
    """Makes the calls in one world and compares results, inputs afterwards, and what was sent.

    groups:    those of the calls with group "own"; every rank is in one of them.
    same_bits: all ranks of a group return the same, bit for bit.
    """
    names = [f"{function}({call.title})" for call in calls]
    with hinting():
        values = check.run(
            world_size,
            "collectives.call",
            cases=[call.title for call in calls],
            function=function,
            calls=[
                {"arguments": list(call.arguments), "layout": call.layout, "group": call.group, "refused": call.refused}
                for call in calls
            ],
            inputs=PerRank([[call.inputs[rank] for call in calls] for rank in range(world_size)]),
            groups=[list(ranks) for ranks in groups],
        )
    everyone = list(range(world_size))
    traffic = Traffic(check, world_size)
    for number, (call, what) in enumerate(zip(calls, names, strict=True)):
        for rank in everyone:
            value = values[rank][number]
            if call.refused:
                expect.raised(value, "ValueError", what=what, rank=rank, naming=call.naming)
                traffic.expect_none(rank, number, what=what)
                continue
            members = next((list(ranks) for ranks in groups if rank in ranks), everyone)
            members = members if call.group == "own" else everyone
            came = {member: values[member][number] for member in members}
            _compare(function, call, came, what=what, rank=rank)
            if same_bits:
                _compare_bits(value, values[members[0]][number], members[0], what=what, rank=rank)
        if not call.refused:
            for members in [list(ranks) for ranks in groups] if call.group == "own" else [everyone]:
                expect_messages(function, call, number, traffic, members, what=what)


def _compare(function: str, call: Call, values: Mapping[int, Any], *, what: str, rank: int) -> None:
    """values: of each rank of the group."""
    came = expect.mapping(values[rank], "result", "input", "new", what=what, rank=rank)
    _compare_result(function, call, of_each(values, "result"), what=what, rank=rank)
    with explained(lambda: argument_told(came["input"], came["result"]), what=what, rank=rank):
        _compare_input(came["input"], call.inputs[rank], what=what, rank=rank)
    expect.true(
        came["new"] is True,
        f"rank {rank}: the result of {what} shares memory with the argument, or with an earlier result",
        expected="a tensor of its own",
        help="return a clone, or receive into a fresh tensor",
    )


def _compare_bits(value: Any, of_first: Any, first: int, *, what: str, rank: int) -> None:
    """Both are results that have been compared with the expected values already."""
    import torch

    expect.true(
        torch.equal(value["result"].tensor, of_first["result"].tensor),
        f"rank {rank}: the result of {what} differs in its last bits from that of rank {first}",
        expected="the same bits on all ranks",
        help="sums depend on their order: reduce each element on one rank, and pass the result on",
    )


def _compare_result(function: str, call: Call, results: Mapping[int, Any], *, what: str, rank: int) -> None:
    compare = expect.same if call.exact else expect.close
    members, value, right = list(results), results[rank], {member: call.expected[member] for member in results}
    expected = right[rank]
    if isinstance(expected, list):
        entries = expect.sequence(value, len(expected), what=what, rank=rank)
        for number, (came, wanted) in enumerate(zip(entries, expected, strict=True)):
            entry = f"entry {number} of {what}"
            told = partial(entry_told, call, number, came, rank=rank, members=members)
            tables = expect.by_rank(of_each(results, number), of_each(right, number))
            with explained(told, what=entry, rank=rank), tables:
                compare(came, wanted, what=entry, rank=rank)
        return
    told = partial(result_told, function, call, value, rank=rank, members=members)
    with explained(told, what=what, rank=rank), expect.by_rank(results, right):
        (compare if expected is not None else expect.same)(value, expected, what=what, rank=rank)


def _compare_input(value: Any, original: Any, *, what: str, rank: int) -> None:
    """An argument after the call is what it was."""
    as_it_was = f"the argument of {what}, after the call,"
    if isinstance(original, list):
        entries = expect.sequence(value, len(original), what=as_it_was, rank=rank)
    else:
        entries, original = [value], [original]
    for came, wanted in zip(entries, original, strict=True):
        if wanted is None:
            expect.same(came, None, what=as_it_was, rank=rank)
        else:
            expect.same(came, wanted, what=as_it_was, rank=rank, contiguous=False, outside_autograd=False)
