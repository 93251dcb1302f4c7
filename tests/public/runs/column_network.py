"""Column-parallel networks next to the unsplit one: what the gradients of all layers together say of the backward."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, CheckFailed, Slip, expect
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor
from tests.public.oracles import tensor_parallel as oracle
from tests.public.runs import column_slips, column_traffic, conjugate_slips
from tests.public.runs.by_rank import of_each
from tests.public.runs.column_parallel import (
    Layers,
    Numbers,
    compare_output,
    compare_parameters,
    largest,
    run_layers,
)
from tests.public.runs.conjugate_slips import SLICE
from tests.public.runs.conjugates import CUT, gradient

if TYPE_CHECKING:
    from torch import Tensor

BETWEEN = (
    "look at what the gathers and the copy of x send in backward; the gradient flows from the last layer to the first"
)
GATHER_LATE = "apply the activation to the layer's own columns, then gather"


def run_network(check: Check, size: int, layers: Sequence[Layers]) -> None:
    """Forward and backward of each network on every rank of one world, compared with the unsplit network."""
    run_layers(check, size, "ColumnParallelMLP", "network", layers, _compare_network, _phases)


def _phases(each: Layers) -> list[column_traffic.Phase]:
    """What is sent in forward and in backward; where the program sees the activations, from one to the next.

    The activations share out forward: a gather follows each. Their gradients share out backward: nothing comes
    before the last one's, then a sum for each of the other gathers, and one for x.
    """
    count = len(each.sizes) - 1
    if each.activation is None:
        return [column_traffic.Phase("anything", "in forward"), column_traffic.Phase("anything", "in backward")]
    phases = [column_traffic.Phase("nothing", "before its first activation", help=GATHER_LATE)]
    for number in range(1, count + 1):
        phases.append(column_traffic.Phase("gather", f"after activation {number}", each.whole(number)))
    phases.append(
        column_traffic.Phase("nothing", f"in backward, before the gradient of activation {count}", help=SLICE)
    )
    for number in range(count - 1, 0, -1):
        when = f"in backward, between the gradients of activations {number + 1} and {number}"
        phases.append(column_traffic.Phase("sum", when, each.whole(number)))
    phases.append(column_traffic.Phase("sum", "in backward, after the gradient of activation 1", each.whole(0)))
    return phases


def _compare_network(each: Layers, own: Numbers, came: Mapping[int, dict[str, Any]], *, what: str) -> None:
    activation = each.activation or "gelu"
    expected = oracle.chain(own.x, own.weights, own.biases, own.upstream, activation)
    size, members = len(came), list(came)
    for rank, value in came.items():
        expect.true(
            value.get("layers") is True,
            f"rank {rank}: the layers of {what} are not an nn.ModuleList of ColumnParallelLinear",
        )
        with expect.by_rank(of_each(came, "y"), dict.fromkeys(members, expected.y)):
            compare_output(value["y"], expected.y, what=what, rank=rank, scale=largest(expected.y))
    _compare_arrivals(came, expected, what=what)
    _compare_norms(own, expected, came, activation, what=what)
    for rank in members:
        compare_parameters(came, expected, what=what, rank=rank)
    for place, (rank, value) in enumerate(came.items()):
        of = f"the gradient of x, through {what},"
        with expect.by_rank(of_each(came, "x"), dict.fromkeys(members, expected.x)):
            gradient(value["x"], expected.x, what=of, rank=rank, slips=_unsummed(own, activation, place, members))
        if each.activation is not None:
            widths = [oracle.columns(weight, place, size).shape[-1] for weight in own.weights]
            expect.true(
                value.get("widths") == widths,
                f"rank {rank}: the activation was not given this rank's own columns, once after each layer: {what}",
                expected=f"tensors whose last dimension is {', '.join(map(str, widths))}",
                actual=value_text(value.get("widths")),
                help=GATHER_LATE,
            )


def _unsummed(own: Numbers, activation: str, place: int, members: Sequence[int]) -> Iterator[Slip]:
    """Wrong gradients of a network's input."""
    given = (own.x, own.weights, own.biases, own.upstream, activation, len(members))
    parts = oracle.backward_by_ranks(*given, oracle.Scheme("sum", "slice")).inputs
    yield from conjugate_slips.summed(parts, place, members)


def _compare_arrivals(came: Mapping[int, dict[str, Any]], expected: oracle.Unsplit, *, what: str) -> None:
    """Every weight gets a gradient; where only the last ones do, a gather between layers cuts the way back."""
    for place, (rank, value) in enumerate(came.items()):
        count = len(expected.weights)
        found = expect.sequence(value["weight"], count, what=f"the gradient of each weight of {what}", rank=rank)
        owned = [oracle.columns(whole, place, len(came)).numel() > 0 for whole in expected.weights]
        cut = [number for number in range(count) if found[number] is None and owned[number]]
        if not cut:
            continue
        there = ", ".join(f"layers[{number}]" for number in range(count) if found[number] is not None)
        who = f"only the weight of {there} gets" if there else "no weight gets"
        raise CheckFailed(
            f"rank {rank}: {who} a gradient, through {what}: autograd knows of no way back from the result",
            expected="a gradient of each weight",
            actual=f"None for {', '.join(f'layers[{number}]' for number in cut)}",
            help=CUT,
        )


def _compare_norms(
    own: Numbers, expected: oracle.Unsplit, came: Mapping[int, dict[str, Any]], activation: str, *, what: str
) -> None:
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
    found = [value["weight"] for value in came.values()]
    wrong = column_slips.matching_scheme(found, own.x, own.weights, own.biases, own.upstream, activation)
    right = [f"layers[{number}]" for number, ratio in enumerate(ratios) if math.isclose(ratio, 1, rel_tol=1e-3)]
    raise CheckFailed(
        f"the gradients of the weights, through {what}, are {wrong.gave if wrong else 'of the wrong size'}",
        expected=f"gradient norm over the right one, per layer: {', '.join('1' for _ in ratios)}",
        actual=f"gradient norm over the right one, per layer: {', '.join(f'{ratio:.3g}' for ratio in ratios)}",
        help=wrong.help if wrong else f"the norm is right in {', '.join(right) or 'no layer'}: {BETWEEN}",
    )


def _tensor(values: Any, number: int) -> Tensor | None:
    """Entry `number`, where it is a tensor."""
    found = values[number] if isinstance(values, list) and number < len(values) else None
    return found.tensor if isinstance(found, ReturnedTensor) else None
