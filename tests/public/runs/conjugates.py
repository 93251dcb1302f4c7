"""Uses of a function whose backward is its conjugate: what goes in both ways, what must come out, the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, CheckFailed, PerRank, Slip, expect
from grader.world.operation import Spec
from tests.public.oracles.tensor_parallel import columns
from tests.public.runs import cases, column_traffic, conjugate_slips
from tests.public.runs.by_rank import of_each

if TYPE_CHECKING:
    from torch import Tensor

Layout = Literal["plain", "strided", "transposed"]
LAYOUTS: tuple[Layout, ...] = ("plain", "strided", "transposed")
GATHERS = ("gather_for_sharded", "gather_for_replicated")
SILENT = {"copy_to_shards": "forward", "gather_for_replicated": "backward"}
CUT = "torch.distributed's collectives cut autograd: give forward and backward to torch.autograd.Function"


@dataclass(frozen=True)
class Use:
    """One forward and backward on every rank of a group. The lists are by rank in the group.

    name:      what messages call it, e.g. "6 columns, float32 (2, 3, own columns)".
    inputs:    what each rank passes.
    results:   what each rank must get.
    upstream:  the gradient of the result that each rank passes back.
    gradients: the gradient of the input that each rank must get.
    arguments: what follows the input.
    layouts:   how input and gradient lie in memory: on rank r, that of entry r (again from the first after the last).
    alone:     rank 0 goes through what sends nothing (see `SILENT`) before the others start it.
    beside:    the result is added to another tensor, so that both get the same gradient, which must stay as it is.
    group:     the ranks of the group; None for the default group.
    refused:   instead of returning, every rank raises a ValueError whose message holds each of `naming`.
    """

    name: str
    inputs: Sequence[Tensor]
    results: Sequence[Tensor] = ()
    upstream: Sequence[Tensor] = ()
    gradients: Sequence[Tensor] = ()
    arguments: Sequence[int] = ()
    layouts: Sequence[Layout] = ("plain",)
    alone: str = ""
    beside: bool = False
    group: tuple[int, ...] | None = None
    refused: bool = False
    naming: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The name, the layouts and the group."""
        layouts = "" if set(self.layouts) == {"plain"} else f", laid out in memory: {', '.join(self.layouts)}"
        return self.name + layouts + ("" if self.group is None else f", group of the ranks {list(self.group)}")

    def member(self, rank: int) -> int | None:
        """This rank of the world as a rank in the group; None outside."""
        if self.group is None:
            return rank
        return self.group.index(rank) if rank in self.group else None

    def for_rank(self, rank: int) -> dict[str, Any]:
        """What this rank of the world is sent. A rank outside the group passes what the group's first passes."""
        own = self.member(rank) or 0
        return {
            "input": self.inputs[own],
            "arguments": list(self.arguments),
            "upstream": None if self.refused else self.upstream[own],
            "layout": self.layouts[own % len(self.layouts)],
            "alone": self.alone,
            "beside": self.beside,
            "group": None if self.group is None else list(self.group),
            "refused": self.refused,
        }

    def in_other_layouts(self) -> list[Use]:
        """The same use with tensors that are not contiguous, on all ranks and on some, beside another tensor."""
        orders: tuple[tuple[Layout, ...], ...] = (("strided",), ("transposed",), ("transposed", "plain", "strided"))
        return [replace(self, layouts=layouts, beside=True) for layouts in orders]


def copy_use(check: Check, size: int, shape: tuple[int, ...], dtype: str = "float32", **fields: Any) -> Use:
    """x of this shape, the same on every rank; each passes another gradient, and gets the sum of all."""
    path = (size, shape, dtype, fields.get("group"))
    x = cases.signed(check, 0, shape, dtype, path)
    upstream = [cases.signed(check, rank, shape, dtype, (*path, "gradient")) for rank in range(size)]
    total = conjugate_slips.sum_of(upstream)
    return Use(f"x: {dtype} {shape}", [x] * size, [x] * size, upstream, [total] * size, **fields)


def gather_use(
    check: Check,
    size: int,
    function: str,
    leading: tuple[int, ...],
    full_size: int,
    dtype: str = "float32",
    **fields: Any,
) -> Use:
    """Own columns of full_size by the rule; gradients as the contract of the gather called `function` says."""
    path = (size, leading, full_size, dtype, fields.get("group"))
    shape = (*leading, full_size)
    owned = [len(columns(_arange(full_size), rank, size)) for rank in range(size)]
    local = [cases.tensor(check, rank, (*leading, owned[rank]), dtype, path) for rank in range(size)]
    whole = _concatenated(local)
    upstream = [cases.signed(check, rank, shape, dtype, (*path, "gradient")) for rank in range(size)]
    if function == "gather_for_replicated":
        upstream = [upstream[0]] * size
        gradient = upstream[0]
    else:
        gradient = conjugate_slips.sum_of(upstream)
    return Use(
        f"{dtype} {(*leading, 'own columns')!s}, full_size={full_size}".replace("'", ""),
        local,
        [whole] * size,
        upstream,
        [columns(gradient, rank, size) for rank in range(size)],
        [full_size],
        **fields,
    )


def refused_gather(check: Check, size: int, owned: int, expected: int) -> Use:
    """Every rank passes `owned` columns, and a full_size of which it owns `expected`."""
    local = [cases.tensor(check, rank, (3, owned), path="refused") for rank in range(size)]
    full_size = size * expected
    name = f"float32 (3, {owned}), full_size={full_size}"
    return Use(name, local, arguments=[full_size], refused=True, naming=[str(owned), str(expected)])


def run_uses(check: Check, size: int, function: str, uses: Sequence[Use]) -> None:
    """Runs the uses in one world of `size` ranks, and compares what came back on every rank."""
    titles = [use.title for use in uses]
    sent = PerRank([[use.for_rank(rank) for use in uses] for rank in range(size)])
    plans = [_plan(function, use, size) for use in uses]
    with column_traffic.compared(check, plans):
        values = check.run(size, "tensor_parallel.use", cases=titles, function=function, uses=sent)
        for number, (use, plan) in enumerate(zip(uses, plans, strict=True)):
            came = [values[rank][number] for rank in range(size)]
            for rank in range(size):
                _compare(function, use, came, what=plan.what, rank=rank)


def large(check: Check, size: int, function: str) -> Use:
    """A use whose tensors are far larger than what tells their sizes, for the account of what is sent."""
    fields: dict[str, Any] = {"dtype": "float64", "alone": SILENT.get(function, "")}
    if function == "copy_to_shards":
        return copy_use(check, size, (64, 16 * size), **fields)
    return gather_use(check, size, function, (64,), 16 * size, **fields)


def _plan(function: str, use: Use, size: int) -> column_traffic.Plan:
    """What the contract sends in forward and in backward."""
    what = f"{function}({use.title})"
    group = tuple(range(size)) if use.group is None else use.group
    if use.refused:
        look = "compare the argument with what this rank owns before anything is sent"
        return column_traffic.Plan(what, group, [column_traffic.Phase("nothing", "before it raises", help=look)])
    result = use.results[0]
    whole = Spec(str(result.dtype).removeprefix("torch."), tuple(result.shape))
    forward = column_traffic.Phase("gather", "in forward", whole)
    backward = column_traffic.Phase("sum", "in backward", whole)
    if function == "copy_to_shards":
        forward = column_traffic.Phase("nothing", "in forward", help="x is the same on every rank already: return it")
    if function == "gather_for_replicated":
        backward = column_traffic.Phase("nothing", "in backward", help=conjugate_slips.SLICE)
    return column_traffic.Plan(what, group, [forward, backward])


def _compare(function: str, use: Use, values: Sequence[Any], *, what: str, rank: int) -> None:
    """values: of each rank of the world."""
    own, value = use.member(rank), values[rank]
    if own is None:
        expect.raised(value, "ValueError", what=f"{what}, called outside the group,", rank=rank)
        return
    if use.refused:
        expect.raised(value, "ValueError", what=what, rank=rank, naming=use.naming)
        nothing_sent(value, size=len(values), what=what, rank=rank)
        return
    came = expect.mapping(value, "result", "gradient", "beside", "input", "new", what=what, rank=rank)
    gathers = function in GATHERS
    form: dict[str, Any] = {"contiguous": gathers, "outside_autograd": False}
    joined = conjugate_slips.gathered(use.inputs, own) if gathers else ()
    with _by_rank(use, values, "result", use.results):
        expect.same(came["result"], use.results[own], slips=joined, what=what, rank=rank, **form)
    unchanged(came["input"], use.inputs[own], what=f"the argument of {what}, after the call,", rank=rank)
    expect.true(
        came["new"] is True or not gathers,
        f"rank {rank}: the result of {what} shares memory with the argument",
        expected="a tensor of its own",
    )
    through = f"the gradient through {what}"
    slips = _wrong_gradients(function, use, own)
    with _by_rank(use, values, "gradient", use.gradients):
        gradient(came["gradient"], use.gradients[own], what=through, rank=rank, slips=slips)
    if use.beside:
        what_beside = f"the gradient of another tensor, to which the result of {what} was added,"
        with expect.helping("backward may change no gradient in place: others still need it; work on a copy"):
            gradient(came["beside"], use.upstream[own], what=what_beside, rank=rank)


def _by_rank(use: Use, values: Sequence[Any], kind: str, expected: Sequence[Tensor]) -> AbstractContextManager[None]:
    """`expect.by_rank` of the group's ranks. expected: by rank in the group."""
    members = range(len(values)) if use.group is None else use.group
    came = of_each({rank: values[rank] for rank in members}, kind)
    return expect.by_rank(came, dict(zip(members, expected, strict=True)))


def _wrong_gradients(function: str, use: Use, own: int) -> Iterator[Slip]:
    upstream = use.upstream
    members = range(len(upstream)) if use.group is None else use.group
    match function:
        case "copy_to_shards":
            turned = [use.layouts[place % len(use.layouts)] == "transposed" for place in range(len(members))]
            yield from conjugate_slips.summed(upstream, own, members)
            yield from conjugate_slips.summed_in_memory_order(upstream, own, turned)
        case "gather_for_sharded":
            yield from conjugate_slips.scattered(upstream, own, members)
        case "gather_for_replicated":
            yield from conjugate_slips.sliced(upstream[own], own, members, "its slice of the gradient")


def gradient(
    value: Any, expected: Tensor, *, what: str, rank: int, scale: float | None = None, slips: Iterable[Slip] = ()
) -> None:
    """A gradient came back and is `expected`; scale: see `expect.close`. One of no elements may be missing."""
    if value is None and expected.numel() == 0:
        return
    if value is None:
        raise CheckFailed(
            f"rank {rank}: {what} does not arrive: autograd knows of no way back from the result",
            expected="a gradient",
            actual="None",
            help=CUT,
        )
    form: dict[str, Any] = {"contiguous": False, "outside_autograd": False}
    expect.close(value, expected, slips=slips, what=what, rank=rank, scale=scale, **form)


def unchanged(value: Any, expected: Tensor, *, what: str, rank: int) -> None:
    """An argument after the call is what it was."""
    expect.same(value, expected, what=what, rank=rank, contiguous=False, outside_autograd=False)


def nothing_sent(value: dict[str, Any], *, size: int, what: str, rank: int) -> None:
    """The all-reduce after a refused call is right: the call left no message behind."""
    expect.same(value.get("sum"), size * (size + 1) // 2, what=f"an all-reduce after {what}", rank=rank)


def _arange(count: int) -> Tensor:
    import torch

    return torch.arange(count)


def _concatenated(pieces: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat(list(pieces), dim=-1)
