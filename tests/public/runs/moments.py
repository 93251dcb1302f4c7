"""Calls of global_mean_and_variance on every rank, and the comparison with one process that has all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, PerRank, expect
from tests.public.oracles import collectives_bonus as oracle
from tests.public.runs import moment_slips
from tests.public.runs.by_rank import of_each
from tests.public.runs.told import explained
from tests.public.runs.traffic import Traffic, listed

if TYPE_CHECKING:
    from torch import Tensor

RTOL = 1e-6  # what the contract allows


@dataclass(frozen=True)
class Moments:
    """One call on every rank of the world.

    tensors: by rank. layout: "plain", "strided" or "leaf" (with a gradient).
    group:   "default", "own" (the group that holds the rank) or "other" (one that does not).
    refused: every rank raises a ValueError; where only all ranks together can know, after the all-reduce.
    alone:   each rank knows by itself that it must refuse, and sends nothing.
    """

    name: str
    tensors: Sequence[Tensor]
    layout: Literal["plain", "strided", "leaf"] = "plain"
    group: Literal["default", "own", "other"] = "default"
    refused: bool = False
    alone: bool = True

    @property
    def title(self) -> str:
        """What messages call it."""
        group = {"own": ", in one of several groups", "other": ", in a group without this rank"}.get(self.group, "")
        layout = {"strided": ", non-contiguous", "leaf": ", with requires_grad"}.get(self.layout, "")
        return f"global_mean_and_variance({self.name}{layout}{group})"


def run_moments(check: Check, world_size: int, calls: Sequence[Moments], groups: Sequence[Sequence[int]] = ()) -> None:
    """Makes the calls in one world. groups: those of the calls with a group; every rank is in one of them."""
    everyone = list(range(world_size))
    values = check.run(
        world_size,
        "collectives_bonus.global_mean_and_variance",
        cases=[call.title for call in calls],
        calls=[{"layout": call.layout, "group": call.group, "refused": call.refused} for call in calls],
        tensors=PerRank([[call.tensors[rank] for call in calls] for rank in everyone]),
        groups=[list(ranks) for ranks in groups],
    )
    traffic = Traffic(check, world_size)
    for rank in everyone:
        own = next((list(ranks) for ranks in groups if rank in ranks), everyone)
        for number, call in enumerate(calls):
            members = own if call.group == "own" else everyone
            value = expect.mapping(values[rank][number], "input", what=call.title, rank=rank)
            if call.refused:
                expect.raised(value, "ValueError", what=call.title, rank=rank)
                if call.alone:
                    traffic.expect_none(rank, number, what=call.title, given=True)
            else:
                came = {member: values[member][number] for member in members}
                _compare(came, call, rank=rank)
                _expect_one_all_reduce(traffic, number, members, what=call.title, rank=rank)
            after = f"the argument of {call.title}, after the call,"
            expect.same(
                value["input"], call.tensors[rank], what=after, rank=rank, contiguous=False, outside_autograd=False
            )
    for number, call in enumerate(calls):
        if not call.refused and call.group == "default":
            _compare_bits([values[rank][number]["value"] for rank in everyone], what=call.title)


def _compare(values: Mapping[int, Any], call: Moments, *, rank: int) -> None:
    """values: of each rank of the group."""
    members, value = list(values), values[rank]
    tensors = [call.tensors[member] for member in members]
    came = expect.sequence(value.get("value"), 2, kind=tuple, what=call.title, rank=rank)
    wanted = oracle.mean_and_variance(tensors)
    slips = moment_slips.slips(call.tensors, members, members.index(rank))
    for place, (one, right, wrong) in enumerate(zip(came, wanted, slips, strict=True)):
        name = ("mean", "variance")[place]
        tables = expect.by_rank(of_each(values, "value", place), dict.fromkeys(members, right))
        what = f"the {name} of {call.title}"
        helping = expect.helping(moment_slips.CANCELS if abs(float(wanted[0])) > 1e7 else "")
        told = partial(moment_slips.not_a_number, one, tensors)
        with explained(told, what=what, rank=rank), helping, tables:
            expect.close(one, right, rtol=RTOL, what=what, rank=rank, slips=wrong)


def _expect_one_all_reduce(traffic: Traffic, call: int, members: Sequence[int], *, what: str, rank: int) -> None:
    """One all-reduce of the group; a world of 1 need not communicate."""
    issued = traffic.issued(rank, call)
    names = [operation.name for operation in issued]
    expect.true(
        names == ["all_reduce"] or (len(members) == 1 and not names),
        f"rank {rank}: {what} asks for {listed(issued) or 'nothing'}, not for one all-reduce",
        expected="one all-reduce",
        actual=listed(issued) or "no operation",
        help="put count, mean and M2 into your own row of a table of zeros: its sum over ranks has every rank's row",
    )
    traffic.expect_group(rank, call, members, what=what)


def _compare_bits(pairs: Sequence[Any], *, what: str) -> None:
    """All ranks' results are those of rank 0, bit for bit; each has been compared with the right one before."""
    for rank, pair in enumerate(pairs):
        for name, own, first in zip(("mean", "variance"), pair, pairs[0], strict=True):
            expect.same(own, first.tensor, what=f"the {name} of {what}, beside rank 0's bit for bit,", rank=rank)
