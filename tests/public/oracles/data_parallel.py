"""The same computations without parallelism: buckets by the rule, and training in one process on whole batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.public.oracles.adamw import AdamW

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Described = tuple[tuple[int, ...], "torch.dtype", str]  # shape, dtype, device


def plan(tensors: Sequence[Described], bucket_bytes: int) -> list[list[int]]:
    """Buckets of indices, from the last tensor to the first; one closes at its limit or where the kind changes."""
    buckets: list[list[int]] = []
    open_bucket: list[int] = []
    for index in range(len(tensors) - 1, -1, -1):
        together = [*open_bucket, index]
        too_large = sum(num_bytes(tensors[each]) for each in together) > bucket_bytes
        another_kind = len({tensors[each][1:] for each in together}) > 1
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


def train(
    initial: Mapping[str, Any], batches: Sequence[tuple[Tensor, Tensor]], optimizer: Mapping[str, Any]
) -> Iterator[list[Tensor]]:
    """The parameters (weight, bias, weight, bias, …) after each AdamW step on the mean loss of a whole batch.

    initial: "weights", "biases" and "output_scale" of layers with tanh between them. A row's loss is the sum of
    its squared errors.
    """
    import torch

    weights = [weight.clone().requires_grad_() for weight in initial["weights"]]
    biases = [bias.clone().requires_grad_() for bias in initial["biases"]]
    parameters = [parameter for layer in zip(weights, biases, strict=True) for parameter in layer]
    adam = AdamW([parameter.detach() for parameter in parameters], **optimizer)
    for x_BD, y_BF in batches:
        h = x_BD
        for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            h = torch.addmm(bias, h if number == 0 else torch.tanh(h), weight.t())
        loss = (h * initial["output_scale"] - y_BF).square().sum() / len(x_BD)
        adam.step(torch.autograd.grad(loss, parameters))
        yield [parameter.detach().clone() for parameter in parameters]
