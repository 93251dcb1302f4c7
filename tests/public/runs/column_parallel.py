"""Column-parallel layers and networks: what each rank holds and passes, what it must get, and the comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, Slip, expect
from grader.world.operation import Spec
from tests.public.oracles import tensor_parallel as oracle
from tests.public.runs import column_slips, column_traffic, conjugate_slips
from tests.public.runs.by_rank import of_each
from tests.public.runs.conjugates import gradient, unchanged

if TYPE_CHECKING:
    from torch import Tensor

Compare = Callable[..., None]
Phases = Callable[["Layers"], Sequence[column_traffic.Phase]]  # from the end of the constructor on


@dataclass(frozen=True)
class Layers:
    """A ColumnParallelLinear (one pair of sizes) or a ColumnParallelMLP, and its unsplit twin.

    sizes:      in, out; or those of the network.
    leading:    the dimensions of x before its last.
    options:    keywords of the constructor, apart from group and activation.
    activation: of a network: a name in torch.nn.functional; None leaves the default, gelu.
    layout:     how x lies in memory: "plain", "strided" or "transposed".
    group:      the ranks of the group; None for the default group.
    """

    sizes: tuple[int, ...]
    leading: tuple[int, ...] = (6,)
    dtype: str = "float64"
    options: Mapping[str, Any] = field(default_factory=dict)
    activation: str | None = None
    layout: str = "plain"
    group: tuple[int, ...] | None = None

    @property
    def bias(self) -> bool:
        """Whether the layers have one."""
        return bool(self.options.get("bias", True))

    def name(self, kind: str) -> str:
        """What messages call it: the call that makes it, and its input."""
        parts = [", ".join(map(str, self.sizes)) if kind == "ColumnParallelLinear" else str(list(self.sizes))]
        parts += [f"{option}={value}" for option, value in self.options.items()]
        parts += [f"activation={self.activation}"] if self.activation else []
        parts += [f"group of the ranks {list(self.group)}"] if self.group else []
        layout = "" if self.layout == "plain" else f", {self.layout} in memory"
        return f"{kind}({', '.join(parts)}) with x: {self.dtype} {(*self.leading, self.sizes[0])}{layout}"

    def whole(self, number: int) -> Spec:
        """The tensor whose last dimension is sizes[number]: 0 for x, -1 for the output."""
        return Spec(self.dtype, (*self.leading, self.sizes[number]))

    def member(self, rank: int) -> int | None:
        """This rank of the world as a rank in the group; None outside."""
        if self.group is None:
            return rank
        return self.group.index(rank) if rank in self.group else None


@dataclass(frozen=True)
class Numbers:
    """x, whole weights and biases, and the gradient of the whole output."""

    x: Tensor
    weights: list[Tensor]
    biases: list[Tensor]
    upstream: Tensor


def numbers(check: Check, layers: Layers, path: object = ()) -> Numbers:
    """Random ones of a size that keeps a network's activations near 1."""
    import torch

    kind = getattr(torch, layers.dtype)
    generator = check.generator(layers.sizes, layers.leading, path)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    pairs = list(zip(layers.sizes, layers.sizes[1:], strict=False))
    weights = [1.5 * normal(width_in, width_out) / math.sqrt(width_in) for width_in, width_out in pairs]
    biases = [0.5 * normal(width_out) for _, width_out in pairs] if layers.bias else []
    return Numbers(
        normal(*layers.leading, layers.sizes[0]).to(kind),
        [weight.to(kind) for weight in weights],
        [bias.to(kind) for bias in biases],
        normal(*layers.leading, layers.sizes[-1]).to(kind),
    )


def run_linear(check: Check, size: int, layers: Sequence[Layers]) -> None:
    """Forward and backward of each layer on every rank of one world, compared with the unsplit layer."""
    run_layers(check, size, "ColumnParallelLinear", "linear", layers, _compare_linear, _phases_of_linear)


def run_layers(
    check: Check, size: int, kind: str, program: str, layers: Sequence[Layers], compare: Compare, phases: Phases
) -> None:
    """Makes each layer, or network, in one world; `compare` looks at its values, and `phases` says what it sends."""
    names = [each.name(kind) for each in layers]
    given = [numbers(check, each, (size, number)) for number, each in enumerate(layers)]
    sent = [[_for_rank(each, own, rank, size) for each, own in zip(layers, given, strict=True)] for rank in range(size)]
    plans = [
        column_traffic.Plan(name, tuple(each.group or range(size)), [column_traffic.Phase("anything"), *phases(each)])
        for name, each in zip(names, layers, strict=True)
    ]
    with column_traffic.compared(check, plans):
        values = check.run(size, f"tensor_parallel.{program}", cases=names, layers=PerRank(sent))
        for number, (each, own) in enumerate(zip(layers, given, strict=True)):
            came = _members([values[rank][number] for rank in range(size)], each, own, what=names[number])
            compare(each, own, came, what=names[number])


def _members(values: Sequence[Any], each: Layers, own: Numbers, *, what: str) -> dict[int, dict[str, Any]]:
    """What the members of the group returned, by rank of the world; the other ranks were refused."""
    came = {}
    for rank, value in enumerate(values):
        if each.member(rank) is None:
            expect.raised(value, "ValueError", what=f"{what}, made outside the group,", rank=rank)
            continue
        came[rank] = expect.mapping(value, "y", "x", "weight", "bias", "input", what=what, rank=rank)
        unchanged(came[rank]["input"], own.x, what=f"x, after the forward of {what},", rank=rank)
    return came


def _for_rank(each: Layers, own: Numbers, rank: int, size: int) -> dict[str, Any]:
    """What a rank of the world is sent: its own columns; a rank outside the group, those of the group's rank 0."""
    width = size if each.group is None else len(each.group)
    place = each.member(rank) or 0
    whole = each.options.get("gather_output", True)
    return {
        "sizes": list(each.sizes),
        "options": dict(each.options),
        "activation": each.activation,
        "layout": each.layout,
        "group": None if each.group is None else list(each.group),
        "x": own.x,
        "weights": [oracle.columns(weight, place, width) for weight in own.weights],
        "biases": [oracle.columns(bias, place, width) for bias in own.biases],
        "upstream": own.upstream if whole else oracle.columns(own.upstream, place, width),
    }


def _phases_of_linear(each: Layers) -> list[column_traffic.Phase]:
    """Forward and backward."""
    gathered, copied = (each.options.get(option, True) for option in ("gather_output", "copy_input"))
    alone = "with gather_output=False nothing is gathered: return the own columns"
    forward = column_traffic.Phase("nothing", "in forward", help=alone)
    summed = "with copy_input=False the caller sums over the ranks, and a gather of the output slices in backward"
    backward = column_traffic.Phase("nothing", "in backward", help=summed)
    if gathered:
        forward = column_traffic.Phase("gather", "in forward", each.whole(-1))
    if copied:
        backward = column_traffic.Phase("sum", "in backward", each.whole(0))
    return [forward, backward]


def _compare_linear(each: Layers, own: Numbers, came: Mapping[int, dict[str, Any]], *, what: str) -> None:
    expected = oracle.chain(own.x, own.weights, own.biases, own.upstream)
    size, members = len(came), list(came)
    gathered, copied = (each.options.get(option, True) for option in ("gather_output", "copy_input"))
    outputs = dict.fromkeys(members, expected.y) if gathered else owned(expected.y, members)
    for place, rank in enumerate(members):
        wrong = column_slips.outputs(expected.y, own.biases, place, size, gathered=gathered)
        with expect.by_rank(of_each(came, "y"), outputs):
            compare_output(came[rank]["y"], outputs[rank], what=what, rank=rank, scale=largest(expected.y), slips=wrong)
    for rank in members:
        compare_parameters(came, expected, what=what, rank=rank)
    parts = [_part(own, place, size) for place in range(size)]
    inputs = dict.fromkeys(members, expected.x) if copied else dict(zip(members, parts, strict=True))
    for place, rank in enumerate(members):
        slips = column_slips.inputs(expected.x, parts, place, members, copied=copied)
        of = f"the gradient of x, through {what},"
        with expect.by_rank(of_each(came, "x"), inputs):
            gradient(came[rank]["x"], inputs[rank], what=of, rank=rank, scale=largest(expected.x), slips=slips)


def _part(own: Numbers, place: int, size: int) -> Tensor:
    """The gradient of x that comes from one rank's columns."""
    weights, biases, upstream = (
        [oracle.columns(whole, place, size) for whole in kind] for kind in (own.weights, own.biases, [own.upstream])
    )
    return oracle.chain(own.x, weights, biases, upstream[0]).x


def compare_output(
    value: Any, expected: Tensor, *, what: str, rank: int, scale: float, slips: Iterable[Slip] = ()
) -> None:
    form: dict[str, Any] = {"contiguous": False, "outside_autograd": False}
    expect.close(value, expected, slips=slips, what=f"the output of {what}", rank=rank, scale=scale, **form)


def largest(whole: Tensor) -> float:
    """Of the whole: one rank's columns may be few, and small by cancellation."""
    return float(whole.abs().max()) if whole.numel() else 0.0


def owned(whole: Tensor, members: Sequence[int]) -> dict[int, Tensor]:
    """By rank: its own columns."""
    return {rank: oracle.columns(whole, place, len(members)) for place, rank in enumerate(members)}


def compare_parameters(came: Mapping[int, dict[str, Any]], expected: oracle.Unsplit, *, what: str, rank: int) -> None:
    """The gradients of the layers' parameters on one rank. came: what each rank of the group returned."""
    members = list(came)
    place = members.index(rank)
    for kind, wanted in (("weight", expected.weights), ("bias", expected.biases)):
        each = f"the gradient of each {kind} of {what}"
        found = expect.sequence(came[rank][kind], len(wanted), what=each, rank=rank)
        for number, (value, whole) in enumerate(zip(found, wanted, strict=True)):
            which = f"layers[{number}].{kind}" if len(expected.weights) > 1 else f"the {kind}"
            own, of = owned(whole, members), f"the gradient of {which}, through {what},"
            slips = conjugate_slips.sliced(whole, place, members, "the right gradient")
            with expect.by_rank(of_each(came, kind, number), own):
                gradient(value, own[rank], what=of, rank=rank, scale=largest(whole), slips=slips)
