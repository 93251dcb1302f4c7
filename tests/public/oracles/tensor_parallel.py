"""What the unsplit layers compute, in one process with whole weights, and the columns of it that each rank owns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.public.oracles.adamw import AdamW

if TYPE_CHECKING:
    from torch import Tensor


class Unsplit(NamedTuple):
    """Output and gradients of a chain of layers; one entry of `weights` and `biases` a layer (no biases: none)."""

    y: Tensor
    x: Tensor
    weights: list[Tensor]
    biases: list[Tensor]


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

    wide = [part.double().requires_grad_() for part in (x, *weights, *biases)]
    inner_x, inner_weights, inner_biases = wide[0], wide[1 : 1 + len(weights)], wide[1 + len(weights) :]
    y = _forward(inner_x, inner_weights, inner_biases, activation)
    gradients = [part.to(x.dtype) for part in torch.autograd.grad(y, wide, upstream.double())]
    return Unsplit(y.detach().to(x.dtype), gradients[0], gradients[1 : 1 + len(weights)], gradients[1 + len(weights) :])


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


def _forward(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str | None) -> Tensor:
    import torch

    for number, weight in enumerate(weights):
        x = x @ weight
        if biases:
            x = x + biases[number]
        if activation is not None:
            x = getattr(torch.nn.functional, activation)(x)
    return x
