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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.given import Group

# isort: split
import math
from itertools import pairwise
from typing import Any

from torch.autograd.function import once_differentiable

from grader.given import piece_range, piece_sizes


def shard_columns(weight_DF: Tensor, rank: int, world_size: int) -> Tensor:
    """The columns (last dimension) of `weight_DF` that `rank` owns: a contiguous copy; nothing is sent.

    A bias of shape (F,) is split the same way. Example: of 5 columns in a world of 3, rank 0 owns columns 0-1,
    rank 1 columns 2-3, rank 2 column 4. Of 2 columns, rank 2 owns none: a tensor of shape (D, 0).

    Raises ValueError if rank is outside 0 ... world_size - 1, or if there is no dimension to split.
    """
    if weight_DF.dim() == 0:
        raise ValueError("a 0-dimensional tensor has no columns; expected one dimension or more")
    columns = piece_range(weight_DF.shape[-1], rank, world_size)
    return weight_DF[..., columns.start : columns.stop].clone(memory_format=torch.contiguous_format)


def copy_to_shards(x: Tensor, *, group: Group = None) -> Tensor:
    """Where a tensor that is the same on every rank meets a consumer that is split over the ranks.

    Forward: x, on every rank; nothing is sent. Backward: the sum over ranks of their gradients, the same on every
    rank. Every rank of the group calls forward, and runs backward or not, alike.
    """
    _place(group)
    return _apply(_CopyToShards, x, group)


def gather_for_sharded(local: Tensor, full_size: int, *, group: Group = None) -> Tensor:
    """All columns on every rank, for a consumer that is split over the ranks and does not call copy_to_shards.

    Forward: `local` (..., own columns of full_size) of all ranks, concatenated by rank: (..., full_size), the same
    on every rank. Backward: each rank has a gradient of all columns, from its own consumer; it gets the sum over
    ranks of its own columns. Every rank of the group calls; the leading dimensions are the same on every rank.

    Raises ValueError, before it sends, on a rank whose `local` has not the columns that it owns of full_size.
    """
    _expect_own_columns(local, full_size, group)
    return _apply(_GatherForSharded, local, full_size, group)


def gather_for_replicated(local: Tensor, full_size: int, *, group: Group = None) -> Tensor:
    """All columns on every rank, where all that follows is the same on every rank.

    Forward: `local` (..., own columns of full_size) of all ranks, concatenated by rank: (..., full_size), the same
    on every rank. Backward: each rank has the same gradient of all columns; it keeps its own columns, and nothing
    is sent. Every rank of the group calls; the leading dimensions are the same on every rank.

    Raises ValueError, before it sends, on a rank whose `local` has not the columns that it owns of full_size.
    """
    _expect_own_columns(local, full_size, group)
    return _apply(_GatherForReplicated, local, full_size, group)


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
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise ValueError(f"in_features is {in_features}, out_features {out_features}; expected at least 1")
        self.in_features = in_features
        self.out_features = out_features
        self.gather_output = gather_output
        self.copy_input = copy_input
        self._group = group
        self._rank, self._world_size = _place(group)
        self.weight = nn.Parameter(self._own_columns_of_new_master(in_features, out_features))
        if bias:
            self.bias = nn.Parameter(self._own_columns_of_new_master(out_features))
        else:
            self.register_parameter("bias", None)

    def load_master(self, weight_DF: Tensor, bias_F: Tensor | None = None) -> None:
        """Copies this rank's columns of a whole weight (in, out) and bias (out,). Nothing is sent.

        Every rank passes the whole. The Parameter objects stay, and share no memory with the master.

        Raises ValueError, before anything is changed, if a shape is wrong, or if a bias is missing where there is
        one, or given where there is none.
        """
        expected = (self.in_features, self.out_features)
        if weight_DF.shape != expected:
            raise ValueError(f"the weight's shape is {tuple(weight_DF.shape)}; expected (in, out): {expected}")
        if (bias_F is None) != (self.bias is None):
            raise ValueError(
                "a bias came, and this layer has none"
                if self.bias is None
                else f"no bias came; expected one of shape {expected[1:]}"
            )
        if bias_F is not None and bias_F.shape != expected[1:]:
            raise ValueError(f"the bias's shape is {tuple(bias_F.shape)}; expected (out,): {expected[1:]}")
        with torch.no_grad():
            self.weight.copy_(shard_columns(weight_DF, self._rank, self._world_size))
            if self.bias is not None and bias_F is not None:
                self.bias.copy_(shard_columns(bias_F, self._rank, self._world_size))

    def forward(self, x: Tensor) -> Tensor:
        """(..., in), the same on every rank -> (..., out) if gather_output, else (..., own columns).

        Raises ValueError, before it sends, if the last dimension of x is not in_features.
        """
        if x.dim() == 0 or x.shape[-1] != self.in_features:
            raise ValueError(f"the input's shape is {tuple(x.shape)}; expected (..., {self.in_features})")
        if self.copy_input:
            x = copy_to_shards(x, group=self._group)
        y = x @ self.weight
        if self.bias is not None:
            y = y + self.bias
        return gather_for_replicated(y, self.out_features, group=self._group) if self.gather_output else y

    @torch.no_grad()
    def _own_columns_of_new_master(self, *shape: int) -> Tensor:
        """This rank's columns of a new tensor of rank 0's, uniform within 1 / sqrt(in), as in nn.Linear."""
        bound = 1 / math.sqrt(self.in_features)
        # Every rank draws, so that their random number generators stay in step; rank 0's draw counts.
        master = torch.empty(shape, device=_device(self._group)).uniform_(-bound, bound)
        dist.broadcast(master, group_src=0, group=self._group)
        return shard_columns(master, self._rank, self._world_size)


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
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"sizes is {list(sizes)}; expected two or more sizes, each at least 1")
        self.activation = activation
        self._group = group
        self._widths = list(sizes[1:])
        self.layers = nn.ModuleList(
            ColumnParallelLinear(width_in, width_out, bias, gather_output=False, copy_input=False, group=group)
            for width_in, width_out in pairwise(sizes)
        )

    def forward(self, x: Tensor) -> Tensor:
        """(..., sizes[0]), the same on every rank -> (..., sizes[-1]), the same on every rank.

        copy_to_shards once at the start. After every layer, the last too: the activation on the own columns, then
        the gather; gather_for_sharded between layers, gather_for_replicated at the end. If the loss is computed
        alike on every rank, output and gradients are those of the unsplit network.
        """
        x = copy_to_shards(x, group=self._group)
        for layer, width in zip(self.layers, self._widths, strict=True):
            gather = gather_for_replicated if layer is self.layers[-1] else gather_for_sharded
            x = gather(self.activation(layer(x)), width, group=self._group)
        return x


class _CopyToShards(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # A copy, since autograd may still need its own: a gradient is never changed in place.
        summed = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed, op=dist.ReduceOp.SUM, group=ctx.group)
        return summed, None


class _GatherForSharded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, full_size: int, group: Group) -> Tensor:
        ctx.group = group
        return _gather_columns(local, full_size, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _reduce_scatter_columns(gradient, ctx.group), None, None


class _GatherForReplicated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, full_size: int, group: Group) -> Tensor:
        ctx.group = group
        return _gather_columns(local, full_size, group)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return shard_columns(gradient, *_place(ctx.group)), None, None


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


# The collectives want pieces of one size, and in memory the columns of one rank do not lie together in the whole.
# So pieces travel as blocks of their own: (..., width), where width is that of the widest piece.


def _gather_columns(local: Tensor, full_size: int, group: Group) -> Tensor:
    """(..., own columns) of every rank -> (..., full_size) on every rank."""
    sizes = piece_sizes(full_size, dist.get_world_size(group))
    block = _widened(local, max(sizes))
    blocks = [torch.empty_like(block) for _ in sizes]
    dist.all_gather(blocks, block, group=group)
    return torch.cat([block[..., :size] for block, size in zip(blocks, sizes, strict=True)], dim=-1)


def _reduce_scatter_columns(full: Tensor, group: Group) -> Tensor:
    """(..., full_size) of every rank -> the sum over ranks of (..., own columns)."""
    rank, world_size = _place(group)
    sizes = piece_sizes(full.shape[-1], world_size)
    blocks = [_widened(piece, max(sizes)) for piece in torch.split(full, sizes, dim=-1)]
    block = torch.empty_like(blocks[rank])
    dist.reduce_scatter(block, blocks, op=dist.ReduceOp.SUM, group=group)
    return block[..., : sizes[rank]].contiguous()


def _widened(piece: Tensor, width: int) -> Tensor:
    """The piece, contiguous, with columns of zeros up to `width`."""
    if piece.shape[-1] == width:
        return piece.contiguous()
    block = piece.new_zeros(*piece.shape[:-1], width)
    block[..., : piece.shape[-1]] = piece
    return block


def _expect_own_columns(local: Tensor, full_size: int, group: Group) -> None:
    rank, world_size = _place(group)
    own = piece_sizes(full_size, world_size)[rank]
    if local.dim() == 0 or local.shape[-1] != own:
        raise ValueError(
            f"the shape is {tuple(local.shape)}; expected (..., {own}): "
            f"of {full_size} columns, rank {rank} of {world_size} owns {own}"
        )


def _place(group: Group) -> tuple[int, int]:
    """This process's rank in the group, and the world size. Raises ValueError on a rank outside the group."""
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this rank is not in the group; only the ranks of the group may call")
    return rank, dist.get_world_size(group)


def _device(group: Group) -> torch.device:
    """Where new tensors for the group are made: NCCL sends from a GPU only; else torch's default device."""
    return torch.device("cuda" if "nccl" in dist.get_backend(group) else torch.get_default_device())
