"""One training step of a network whose layers mark their forward and their backward, by each way to cut it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from grader.world import Here


def data_parallel(here: Here, *, wrapper: str, widths: Sequence[int], bucket_bytes: int | None) -> Iterator[None]:
    """Case 0: wraps a chain of layers. Case 1: one step. Layer i marks "Fi" and "Bi"."""
    torch.manual_seed(0)
    layers = [Layer(here, pair, bias=False, numbers=count(number)) for number, pair in enumerate(pairwise(widths), 1)]
    keywords = {} if bucket_bytes is None else {"bucket_bytes": bucket_bytes}
    model = getattr(here.submission, wrapper)(nn.Sequential(*layers), **keywords)
    yield None
    model(torch.ones(2, widths[0])).sum().backward()
    model.synchronize_gradients()
    yield None


def tensor_parallel(here: Here, *, sizes: Sequence[int]) -> Iterator[None]:
    """Case 0: makes the network. Case 1: forward and backward. The activation of layer i marks "Fi" and "Bi"."""
    torch.manual_seed(0)
    numbers = count(1)
    network = here.submission.ColumnParallelMLP(sizes, lambda x: marked(torch.relu(x), here, next(numbers)))
    yield None
    network(torch.ones(3, sizes[0], requires_grad=True)).sum().backward()
    yield None


def pipeline_parallel(here: Here, *, num_microbatches: int, width: int) -> Iterator[Tensor | None]:
    """Case 0: makes a stage of one layer. Case 1: one step, one row in each microbatch k, which marks "Fk" and "Bk"."""
    torch.manual_seed(here.rank)
    layers = nn.Sequential(Layer(here, (width, width), bias=True, numbers=count()))
    stage = here.submission.PipelineStage(layers, num_microbatches=num_microbatches, input_shape=(width,))
    yield None
    rows = torch.ones(num_microbatches, width)
    batch = rows if here.rank == 0 else None
    target = rows if here.rank == here.world_size - 1 else None
    yield stage.train_step(batch, target, loss_fn=nn.functional.mse_loss, num_rows=num_microbatches)


class Layer(nn.Module):
    """A linear layer of (in, out) features. Its mark comes after it in forward, and so before it in backward."""

    def __init__(self, here: Here, widths: tuple[int, int], *, bias: bool, numbers: Iterator[int]) -> None:
        super().__init__()
        self.here, self.numbers = here, numbers
        self.linear = nn.Linear(*widths, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out); marks with the next of its numbers."""
        return marked(self.linear(x), self.here, next(self.numbers))


def marked(x: Tensor, here: Here, number: int) -> Tensor:
    """x; marks "F" and the number now, and "B" and the number when backward comes here."""
    result: Tensor = _Marked.apply(x, here, number)  # type: ignore[no-untyped-call]
    return result


class _Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, here: Here, number: int) -> Tensor:
        ctx.here, ctx.number = here, number
        here.mark(f"F{number}")
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.here.mark(f"B{ctx.number}")
        return gradients[0], None, None
