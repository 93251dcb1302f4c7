"""Module 4. Tensor parallelism: every rank sees all rows and holds some columns of each weight.

Weights are as in the lecture, (in, out): y = x @ weight + bias. That is not nn.Linear's layout, (out, in).
Shape suffixes: D in, F out. Of F columns, rank r owns F // W + (1 if r < F % W else 0), in rank order; where
there are fewer columns than ranks, some own none.

What crosses ranks in forward has a conjugate that crosses them in backward:

                             forward                        backward
    copy_to_shards           x                              all-reduce (sum)
    gather_for_sharded       gather the last dimension      reduce-scatter (sum)
    gather_for_replicated    gather the last dimension      own slice

Which gather is right depends on what follows. If each rank goes on with other columns, its gradient is only its
own part of the whole, and the parts are summed. If all ranks go on alike, each already has the whole gradient,
and a sum would be W times too large.

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_tensor_parallel
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.given import Group


def shard_columns(weight_DF: Tensor, rank: int, world_size: int) -> Tensor:
    """The columns (last dimension) of `weight_DF` that `rank` owns: a contiguous copy; nothing is sent.

    A bias of shape (F,) is split the same way. Example: of 5 columns in a world of 3, rank 0 owns columns 0-1,
    rank 1 columns 2-3, rank 2 column 4. Of 2 columns, rank 2 owns none: a tensor of shape (D, 0).

    Raises ValueError if rank is outside 0 ... world_size - 1, or if there is no dimension to split.
    """
    raise NotImplementedError("return a copy of the columns that this rank owns")


def copy_to_shards(x: Tensor, *, group: Group = None) -> Tensor:
    """Where a tensor that is the same on every rank meets a consumer that is split over the ranks.

    Forward: x, on every rank; nothing is sent. Backward: the sum over ranks of their gradients, the same on every
    rank. Every rank of the group calls forward, and runs backward or not, alike.
    """
    raise NotImplementedError("return x, with an all-reduce in backward")


def gather_for_sharded(local: Tensor, full_size: int, *, group: Group = None) -> Tensor:
    """All columns on every rank, for a consumer that is split over the ranks and does not call copy_to_shards.

    Forward: `local` (..., own columns of full_size) of all ranks, concatenated by rank: (..., full_size), the same
    on every rank. Backward: each rank has a gradient of all columns, from its own consumer; it gets the sum over
    ranks of its own columns. Every rank of the group calls; the leading dimensions are the same on every rank.

    Raises ValueError, before it sends, on a rank whose `local` has not the columns that it owns of full_size.
    """
    raise NotImplementedError("gather the columns, with a reduce-scatter in backward")


def gather_for_replicated(local: Tensor, full_size: int, *, group: Group = None) -> Tensor:
    """All columns on every rank, where all that follows is the same on every rank.

    Forward: `local` (..., own columns of full_size) of all ranks, concatenated by rank: (..., full_size), the same
    on every rank. Backward: each rank has the same gradient of all columns; it keeps its own columns, and nothing
    is sent. Every rank of the group calls; the leading dimensions are the same on every rank.

    Raises ValueError, before it sends, on a rank whose `local` has not the columns that it owns of full_size.
    """
    raise NotImplementedError("gather the columns, with the own slice in backward")


class ColumnParallelLinear(nn.Module):
    """y = x @ weight + bias, with the columns of weight and bias split over the ranks of a group.

    weight: (in, own columns).    bias: (own columns,), or None.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        gather_output: bool = True,
        copy_input: bool = True,
        group: Group = None,
    ) -> None:
        """The shards are slices of one master that is drawn on rank 0 of the group. Every rank of the group calls.

        gather_output: forward returns all columns, by gather_for_replicated; else the own columns.
        copy_input:    forward passes x through copy_to_shards, so that x gets its whole gradient. False where the
                       caller does so, or where x comes out of gather_for_sharded.

        Raises ValueError on every rank, before anything is sent, if in_features or out_features is below 1.
        """
        raise NotImplementedError("give each rank its own columns of one master")

    def load_master(self, weight_DF: Tensor, bias_F: Tensor | None = None) -> None:
        """Copies this rank's columns of a whole weight (in, out) and bias (out,). Nothing is sent.

        Every rank passes the whole. The Parameter objects stay, and share no memory with the master.

        Raises ValueError, before anything is changed, if a shape is wrong, or if a bias is missing where there is
        one, or given where there is none.
        """
        raise NotImplementedError("copy the own columns of weight and bias into the parameters")

    def forward(self, x: Tensor) -> Tensor:
        """(..., in), the same on every rank -> (..., out) if gather_output, else (..., own columns).

        Raises ValueError, before it sends, if the last dimension of x is not in_features.
        """
        raise NotImplementedError("compute the own columns, and gather them if asked to")


class ColumnParallelMLP(nn.Module):
    """A chain of column-parallel layers, each followed by its activation: the lecture's network.

    layers: one ColumnParallelLinear for each pair of neighbours in `sizes`.
    """

    layers: nn.ModuleList

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Callable[[Tensor], Tensor] = F.gelu,
        bias: bool = True,
        *,
        group: Group = None,
    ) -> None:
        """Layer i is (..., sizes[i]) -> (..., sizes[i + 1]). Every rank of the group calls.

        activation: works on each element by itself, so that it can be applied to the own columns.

        Raises ValueError on every rank, before anything is sent, for fewer than two sizes or a size below 1.
        """
        raise NotImplementedError("make the layers, so that forward alone decides what crosses ranks")

    def forward(self, x: Tensor) -> Tensor:
        """(..., sizes[0]), the same on every rank -> (..., sizes[-1]), the same on every rank.

        copy_to_shards once at the start. After every layer, the last too: the activation on the own columns, then
        the gather; gather_for_sharded between layers, gather_for_replicated at the end. If the loss is computed
        alike on every rank, output and gradients are those of the unsplit network.
        """
        raise NotImplementedError("run the chain, with the right gather after each layer")
