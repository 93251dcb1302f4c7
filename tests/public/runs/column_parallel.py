"""Column-parallel layers and networks: what each rank holds and passes, what it must get, and the comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor
from tests.public.oracles import tensor_parallel as oracle
from tests.public.runs.conjugates import gradient, unchanged

if TYPE_CHECKING:
    from torch import Tensor

SPLIT_CONSUMER = (
    "the consumer of x is split: the gradient that a rank computes comes from its own columns alone, and x gets the "
    "sum over ranks"
)

Compare = Callable[..., None]


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
    _run(check, size, "ColumnParallelLinear", "linear", layers, _compare_linear)


def run_network(check: Check, size: int, layers: Sequence[Layers]) -> None:
    """Forward and backward of each network on every rank of one world, compared with the unsplit network."""
    _run(check, size, "ColumnParallelMLP", "network", layers, _compare_network)


def _run(check: Check, size: int, kind: str, program: str, layers: Sequence[Layers], compare: Compare) -> None:
    names = [each.name(kind) for each in layers]
    given = [numbers(check, each, (size, number)) for number, each in enumerate(layers)]
    sent = [[_for_rank(each, own, rank, size) for each, own in zip(layers, given, strict=True)] for rank in range(size)]
    values = check.run(size, f"tensor_parallel.{program}", cases=names, layers=PerRank(sent))
    for number, (each, own) in enumerate(zip(layers, given, strict=True)):
        came = {}
        for rank in range(size):
            value = values[rank][number]
            if each.member(rank) is None:
                expect.raised(value, "ValueError", what=f"{names[number]}, made outside the group,", rank=rank)
                continue
            came[rank] = expect.mapping(value, "y", "x", "weight", "bias", "input", what=names[number], rank=rank)
            unchanged(came[rank]["input"], own.x, what=f"x, after the forward of {names[number]},", rank=rank)
        compare(each, own, came, what=names[number])


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


def _compare_linear(each: Layers, own: Numbers, came: Mapping[int, dict[str, Any]], *, what: str) -> None:
    expected = oracle.chain(own.x, own.weights, own.biases, own.upstream)
    size = len(came)
    for place, (rank, value) in enumerate(came.items()):
        gathered, copied = (each.options.get(option, True) for option in ("gather_output", "copy_input"))
        y = expected.y if gathered else oracle.columns(expected.y, place, size)
        _output(value["y"], y, what=what, rank=rank, scale=largest(expected.y))
        _compare_parameters(value, expected, place, size, what=what, rank=rank)
        if copied:
            with expect.helping(SPLIT_CONSUMER):
                gradient(value["x"], expected.x, what=f"the gradient of x, through {what},", rank=rank)
        else:
            weights, biases, upstream = (
                [oracle.columns(whole, place, size) for whole in kind]
                for kind in (own.weights, own.biases, [own.upstream])
            )
            part = oracle.chain(own.x, weights, biases, upstream[0]).x
            with expect.helping("with copy_input=False the gradient of x is what comes from this rank's columns"):
                scale = largest(expected.x)
                gradient(value["x"], part, what=f"the gradient of x, through {what},", rank=rank, scale=scale)


def _compare_network(each: Layers, own: Numbers, came: Mapping[int, dict[str, Any]], *, what: str) -> None:
    expected = oracle.chain(own.x, own.weights, own.biases, own.upstream, each.activation or "gelu")
    size = len(came)
    for rank, value in came.items():
        expect.true(
            value.get("layers") is True,
            f"rank {rank}: the layers of {what} are not an nn.ModuleList of ColumnParallelLinear",
        )
        _output(value["y"], expected.y, what=what, rank=rank, scale=largest(expected.y))
    _compare_norms(expected, came, what=what)
    for place, (rank, value) in enumerate(came.items()):
        _compare_parameters(value, expected, place, size, what=what, rank=rank)
        with expect.helping(SPLIT_CONSUMER):
            gradient(value["x"], expected.x, what=f"the gradient of x, through {what},", rank=rank)
        if each.activation is not None:
            widths = [oracle.columns(weight, place, size).shape[-1] for weight in own.weights]
            expect.true(
                value.get("widths") == widths,
                f"rank {rank}: the activation was not given this rank's own columns, once after each layer: {what}",
                expected=f"tensors whose last dimension is {', '.join(map(str, widths))}",
                actual=value_text(value.get("widths")),
                help="apply the activation to the layer's own columns, then gather",
            )


def _output(value: Any, expected: Tensor, *, what: str, rank: int, scale: float) -> None:
    of = f"the output of {what}"
    expect.close(value, expected, what=of, rank=rank, scale=scale, contiguous=False, outside_autograd=False)


def largest(whole: Tensor) -> float:
    """Of the whole: one rank's columns may be few, and small by cancellation."""
    return float(whole.abs().max()) if whole.numel() else 0.0


def _compare_parameters(
    value: dict[str, Any], expected: oracle.Unsplit, place: int, size: int, *, what: str, rank: int
) -> None:
    for kind, wanted in (("weight", expected.weights), ("bias", expected.biases)):
        found = expect.sequence(value[kind], len(wanted), what=f"the gradient of each {kind} of {what}", rank=rank)
        for number, (came, whole) in enumerate(zip(found, wanted, strict=True)):
            which = f"layers[{number}].{kind}" if len(expected.weights) > 1 else f"the {kind}"
            of = f"the gradient of {which}, through {what},"
            gradient(came, oracle.columns(whole, place, size), what=of, rank=rank, scale=largest(whole))


def _compare_norms(expected: oracle.Unsplit, came: Mapping[int, dict[str, Any]], *, what: str) -> None:
    """The norms of the weights' gradients, layer by layer, tell which conjugate is wrong; single numbers do not."""
    size = len(came)
    ratios = []
    for number, whole in enumerate(expected.weights):
        parts = [_tensor(value["weight"], number) for value in came.values()]
        squares = sum(float(part.double().square().sum()) for part in parts if part is not None)
        norm = float(whole.double().norm())
        ratios.append(math.sqrt(squares) / norm if norm else 1.0)
    if size == 1 or all(math.isclose(ratio, 1, rel_tol=1e-3) for ratio in ratios):
        return
    raise CheckFailed(
        f"the gradients of the weights are wrong, through {what}",
        expected=f"gradient norm over the right one, per layer: {', '.join('1' for _ in ratios)}",
        actual=f"gradient norm over the right one, per layer: {', '.join(f'{ratio:.3g}' for ratio in ratios)}",
        help=_diagnosis(ratios, size),
    )


def _tensor(values: Any, number: int) -> Tensor | None:
    """Entry `number`, where it is a tensor."""
    found = values[number] if isinstance(values, list) and number < len(values) else None
    return found.tensor if isinstance(found, ReturnedTensor) else None


def _diagnosis(ratios: Sequence[float], size: int) -> str:
    *inner, last = ratios
    if math.isclose(last, size, rel_tol=1e-3):
        return (
            f"the last layer's gradient has the factor {size}: after the last gather all ranks go on alike, so each "
            "has the whole gradient already, and a sum counts it once for each rank"
        )
    if not math.isclose(last, 1, rel_tol=1e-3) or not inner:
        return ""
    if math.isclose(inner[-1], size, rel_tol=1e-3):
        return (
            "only the last layer is right: before it, gradients are summed twice on their way from layer to layer. The "
            "reduce-scatter of gather_for_sharded is the sum over ranks, so its consumer does not copy its input"
        )
    return (
        "only the last layer is right: before it, a rank's gradient of the gathered columns comes from its own columns "
        "of the next weight alone. Each rank must get, for its columns, the sum of what all ranks have"
    )
