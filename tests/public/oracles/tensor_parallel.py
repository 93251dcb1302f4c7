"""What the unsplit layers compute, in one process with whole weights, and the columns of it that each rank owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tests.public.oracles.adamw import AdamW

if TYPE_CHECKING:
    from torch import Tensor


class Unsplit(NamedTuple):
    """Output and gradients of a chain of layers; one entry of `weights` and `biases` a layer (no biases: none)."""

    y: Tensor
    x: Tensor
    weights: list[Tensor]
    biases: list[Tensor]


class Scheme(NamedTuple):
    """What backward does at the gathers between layers, at the last gather, and at the inputs of the layers.

    between, last: "sum" (reduce-scatter: own columns of the sum over ranks) or "slice" (own columns of this rank's).
    copies:        every layer sums the gradient of its input over the ranks.
    """

    between: Literal["sum", "slice"]
    last: Literal["sum", "slice"]
    copies: bool = False


class Backward(NamedTuple):
    """Gradients of weights and biases, put together from the ranks' columns, and by rank that of x before any sum."""

    weights: list[Tensor]
    biases: list[Tensor]
    inputs: list[Tensor]


class Step(NamedTuple):
    """The loss of one step of training, and the parameters after it."""

    loss: Tensor
    weights: list[Tensor]
    biases: list[Tensor]


def columns(whole: Tensor, rank: int, world_size: int) -> Tensor:
    """The last dimension by the uneven rule; torch's tensor_split has the same."""
    import torch

    return torch.tensor_split(whole, world_size, dim=-1)[rank].contiguous()


def chain(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], upstream: Tensor, activation: str | None = None
) -> Unsplit:
    """y = activation(... activation(x @ weight + bias) ...) and what `upstream`, the gradient of y, becomes.

    activation: a name in torch.nn.functional; None for none. Computed in float64, returned in the dtype of x.
    """
    import torch

    wide = [part.double().clone().requires_grad_() for part in (x, *weights, *biases)]
    inner_x, inner_weights, inner_biases = wide[0], wide[1 : 1 + len(weights)], wide[1 + len(weights) :]
    y = _forward(inner_x, inner_weights, inner_biases, activation)
    gradients = [part.to(x.dtype) for part in torch.autograd.grad(y, wide, upstream.double())]
    return Unsplit(y.detach().to(x.dtype), gradients[0], gradients[1 : 1 + len(weights)], gradients[1 + len(weights) :])


def backward_by_ranks(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    upstream: Tensor,
    activation: str,
    world_size: int,
    scheme: Scheme,
) -> Backward:
    """The gradients that the ranks get by this scheme, right or wrong; `chain` has those of Scheme("sum", "slice")."""
    import torch

    activate = getattr(torch.nn.functional, activation)
    entering = [x.double().reshape(-1, x.shape[-1])]
    products = []
    for number, weight in enumerate(weights):
        product = entering[-1] @ weight.double()
        product = product + biases[number].double() if biases else product
        products.append(product.detach().requires_grad_())
        entering.append(activate(products[-1]).detach())
    parts = [upstream.double().reshape(-1, upstream.shape[-1])] * world_size  # by rank: its gradient of all columns
    of_weights, of_biases = [], []
    for number in reversed(range(len(weights))):
        conjugate = scheme.last if number == len(weights) - 1 else scheme.between
        total = torch.stack(list(parts)).sum(0)
        own = [columns(total if conjugate == "sum" else part, rank, world_size) for rank, part in enumerate(parts)]
        (back,) = torch.autograd.grad(activate(products[number]), products[number], torch.cat(own, dim=-1))
        of_weights.append((entering[number].t() @ back).to(x.dtype))
        of_biases.append(back.sum(0).to(x.dtype))
        weight = weights[number].double()
        parts = [columns(back, rank, world_size) @ columns(weight, rank, world_size).t() for rank in range(world_size)]
        if scheme.copies:
            parts = [torch.stack(parts).sum(0)] * world_size
    return Backward(
        of_weights[::-1], of_biases[::-1] if biases else [], [part.reshape(x.shape).to(x.dtype) for part in parts]
    )


def trained(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    batches: Sequence[tuple[Tensor, Tensor]],
    optimizer: Mapping[str, Any],
    activation: str,
) -> list[Step]:
    """AdamW on the mean squared error, one step for each (x, target)."""
    import torch

    parameters = [parameter.clone().requires_grad_() for parameter in (*weights, *biases)]
    own_weights, own_biases = parameters[: len(weights)], parameters[len(weights) :]
    adam = AdamW([parameter.detach() for parameter in parameters], **optimizer)
    steps = []
    for x, target in batches:
        loss = torch.nn.functional.mse_loss(_forward(x, own_weights, own_biases, activation), target)
        adam.step(torch.autograd.grad(loss, parameters))
        after = [[parameter.detach().clone() for parameter in kind] for kind in (own_weights, own_biases)]
        steps.append(Step(loss.detach(), *after))
    return steps


def after_first_step(
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    batch: tuple[Tensor, Tensor],
    optimizer: Mapping[str, Any],
    activation: str,
    world_size: int,
    scheme: Scheme,
) -> Step:
    """The first step of `trained`, with the gradients of a scheme."""
    x, target = batch
    difference = _forward(x, weights, biases, activation) - target
    upstream = 2 * difference / target.numel()  # of the mean squared error
    back = backward_by_ranks(x, weights, biases, upstream, activation, world_size, scheme)
    after = [parameter.clone() for parameter in (*weights, *biases)]
    AdamW(after, **optimizer).step([*back.weights, *back.biases])
    return Step(difference.square().mean(), after[: len(weights)], after[len(weights) :])


def _forward(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str | None) -> Tensor:
    import torch

    for number, weight in enumerate(weights):
        x = x @ weight
        if biases:
            x = x + biases[number]
        if activation is not None:
            x = getattr(torch.nn.functional, activation)(x)
    return x
