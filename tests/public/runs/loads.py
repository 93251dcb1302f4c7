"""Masters that are loaded into a ColumnParallelLinear, or refused: what each rank must hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, Slip, expect
from tests.public.oracles.tensor_parallel import columns
from tests.public.runs import cases, column_traffic
from tests.public.runs.by_rank import of_each
from tests.public.runs.conjugate_slips import OWN
from tests.public.runs.conjugates import nothing_sent, unchanged

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Master:
    """One call of load_master, alike on every rank.

    name:    what messages say of it. bias: None where none is passed.
    refused: every rank raises a ValueError whose message holds each of `naming`, and keeps what it held.
    """

    name: str
    weight: Tensor
    bias: Tensor | None
    refused: bool = False
    naming: Sequence[str] = ()


@dataclass(frozen=True)
class Loads:
    """Calls of load_master on one layer, one after the other; the first is not refused.

    layout: how the masters lie in memory: "plain", or "transposed" (and with a gradient, as nn.Linear's weight.t()).
    """

    sizes: tuple[int, int]
    masters: Sequence[Master]
    bias: bool = True
    layout: Literal["plain", "transposed"] = "plain"

    def title(self, one: Master) -> str:
        """What messages call a call."""
        return f"load_master({one.name})" + ("" if self.layout == "plain" else f" with masters {self.layout} in memory")


def master(
    check: Check, sizes: tuple[int, int], bias: bool = True, dtype: str = "float32", path: object = ()
) -> Master:
    """A weight and a bias of the right shapes."""
    return Master(
        f"{dtype} {sizes}",
        cases.signed(check, 0, sizes, dtype, ("weight", path)),
        cases.signed(check, 1, sizes[1:], dtype, ("bias", path)) if bias else None,
    )


def run_loads(check: Check, size: int, loads: Sequence[Loads]) -> None:
    """Loads them in one world of `size` ranks, and compares what each rank holds after each."""
    named = [each.title(one) for each in loads for one in each.masters]
    sent = [
        {
            "sizes": list(each.sizes),
            "options": {} if each.bias else {"bias": False},
            "layout": each.layout,
            "masters": [{"weight": one.weight, "bias": one.bias, "refused": one.refused} for one in each.masters],
        }
        for each in loads
    ]
    silent = column_traffic.Phase("nothing", help="every rank has the whole master, and keeps its own columns of it")
    plans = [
        column_traffic.Plan(name, tuple(range(size)), [column_traffic.Phase("anything"), silent]) for name in named
    ]
    with column_traffic.compared(check, plans):
        values = check.run(size, "tensor_parallel.load_master", cases=named, loads=sent)
        number = 0
        for each in loads:
            held = each.masters[0]
            for one in each.masters:
                held = held if one.refused else one
                came = [values[rank][number] for rank in range(size)]
                for rank in range(size):
                    _compare(one, held, came, what=named[number], rank=rank)
                number += 1


def _others(whole: Tensor, rank: int, size: int) -> Iterator[Slip]:
    for other in range(size):
        gave = f"rank {other}'s columns of the master, not rank {rank}'s own"
        yield Slip(gave, OWN, columns(whole, other, size))


def _compare(one: Master, held: Master, values: Sequence[Any], *, what: str, rank: int) -> None:
    """values: of each rank."""
    size = len(values)
    parts = ("weight", "bias", "same objects", "own memory", "masters", "sum")
    came = expect.mapping(values[rank], *parts, what=what, rank=rank)
    if one.refused:
        expect.raised(came, "ValueError", what=what, rank=rank, naming=one.naming)
        nothing_sent(came, size=size, what=what, rank=rank)
    for name, whole in (("weight", held.weight), ("bias", held.bias)):
        of = f"the {name} after {what}" + (", which is refused and changes nothing," if one.refused else "")
        if whole is None:
            expect.same(came[name], None, what=of, rank=rank, contiguous=False, outside_autograd=False)
            continue
        form: dict[str, Any] = {"contiguous": False, "outside_autograd": False}
        own = {member: columns(whole, member, size) for member in range(size)}
        with expect.by_rank(of_each(dict(enumerate(values)), name), own):
            expect.same(came[name], own[rank], slips=_others(whole, rank, size), what=of, rank=rank, **form)
    if one.refused:
        return
    expect.true(
        came["same objects"] is True,
        f"rank {rank}: {what} put new objects in the place of the parameters",
        expected="the Parameter objects of before, with new numbers: an optimizer may hold them",
        help="copy into the parameter under torch.no_grad()",
    )
    expect.true(
        came["own memory"] is True,
        f"rank {rank}: a parameter shares memory with the master after {what}",
        expected="a copy: training must not change the master, nor a view keep the whole alive",
    )
    given = [one.weight] if one.bias is None else [one.weight, one.bias]
    masters = expect.sequence(came["masters"], len(given), what=f"the arguments of {what}", rank=rank)
    for argument, original in zip(masters, given, strict=True):
        unchanged(argument, original, what=f"the master of {what}, after the call,", rank=rank)
