"""The same computations without parallelism: buckets by the rule, and a replica trained in one process."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.public.oracles.adamw import AdamW

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Described = tuple[tuple[int, ...], "torch.dtype", str]  # shape, dtype, device


def plan(tensors: Sequence[Described], bucket_bytes: int) -> list[list[int]]:
    """Buckets of indices, from the last tensor to the first; one closes at its limit or where the kind changes."""
    return fill([num_bytes(tensor) for tensor in tensors], [tensor[1:] for tensor in tensors], bucket_bytes)


def fill(sizes: Sequence[int], kinds: Sequence[Hashable], limit: int) -> list[list[int]]:
    """The same for things of these sizes, where those of one bucket must be of one kind."""
    buckets: list[list[int]] = []
    open_bucket: list[int] = []
    for index in range(len(sizes) - 1, -1, -1):
        together = [*open_bucket, index]
        too_large = sum(sizes[each] for each in together) > limit
        another_kind = len({kinds[each] for each in together}) > 1
        if open_bucket and (too_large or another_kind):
            buckets.append(open_bucket)
            together = [index]
        open_bucket = together
    return [*buckets, open_bucket] if open_bucket else buckets


def num_bytes(tensor: Described) -> int:
    """The size of a tensor of this shape and dtype."""
    shape, dtype, _ = tensor
    count = 1
    for length in shape:
        count *= length
    return count * dtype.itemsize


class Replica:
    """A network and its AdamW, in one process: layers with tanh between them; the output times a buffer.

    initial: "weights", "biases" and "output_scale". A row's loss is the sum of its squared errors.
    """

    def __init__(self, initial: Mapping[str, Any], optimizer: Mapping[str, Any]) -> None:
        self.output_scale: Tensor = initial["output_scale"]
        layers = zip(initial["weights"], initial["biases"], strict=True)
        self.parameters: list[Tensor] = [parameter.clone() for layer in layers for parameter in layer]
        self._adam = AdamW(self.parameters, **optimizer)

    def gradients(self, x_BD: Tensor, y_BF: Tensor, scale: float) -> list[Tensor]:
        """Those of scale · (the sum of the rows' losses), for weight, bias, weight, bias, …"""
        import torch

        parameters = [parameter.detach().requires_grad_() for parameter in self.parameters]
        h = x_BD
        for number, (weight, bias) in enumerate(zip(parameters[::2], parameters[1::2], strict=True)):
            h = torch.addmm(bias, h if number == 0 else torch.tanh(h), weight.t())
        loss = scale * (h * self.output_scale - y_BF).square().sum()
        return list(torch.autograd.grad(loss, parameters))

    def step(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """One AdamW step; returns a copy of the parameters."""
        self._adam.step(gradients)
        return [parameter.clone() for parameter in self.parameters]
