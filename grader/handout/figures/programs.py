"""What runs on the ranks for the handout's pictures: calls of the reference, with the values that come back.

These are calls and arguments only; each rank runs this file by itself (see grader/world/program.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import torch.distributed as dist
from torch import Tensor

from grader.world.program import Here


def collective(here: Here, *, name: str, arguments: Sequence[Any], keywords: dict[str, int]) -> Iterator[Any]:
    """Yields what the submission's function `name` returns for each of this rank's arguments."""
    function = getattr(here.submission, name)
    for argument in arguments:
        yield function(argument, **keywords)


def ring_all_reduce(here: Here, *, tensors: Sequence[Tensor]) -> Iterator[dict[str, Any]]:
    """Yields, for each tensor, this rank's result and its messages in order: {"to": rank, "payload": Tensor}."""
    for tensor in tensors:
        sent: list[dict[str, Any]] = []
        with _recording(sent):
            result = here.submission.all_reduce(tensor)
        yield {"result": result, "sent": sent}


@contextmanager
def _recording(sent: list[dict[str, Any]]) -> Iterator[None]:
    """Notes what batch_isend_irecv is asked to send, before it is sent. The trace tells sizes, not values."""
    batch_isend_irecv = dist.batch_isend_irecv

    def noting(p2p_op_list: list[dist.P2POp]) -> list[dist.Work]:
        for each in p2p_op_list:
            if each.op is dist.isend:
                sent.append({"to": each.peer, "payload": each.tensor.clone()})
        return batch_isend_irecv(p2p_op_list)

    dist.batch_isend_irecv = noting
    try:
        yield
    finally:
        dist.batch_isend_irecv = batch_isend_irecv


def column_shards(here: Here, *, x_BD: Tensor, weight_DF: Tensor) -> dict[str, Tensor]:
    """This rank's columns of the weight, its columns of the output, and the output gathered from all ranks."""
    own_DF = here.submission.shard_columns(weight_DF, here.rank, here.world_size)
    local_BF = x_BD @ own_DF
    gathered_BF = here.submission.gather_for_replicated(local_BF, weight_DF.shape[-1])
    return {"own": own_DF, "local": local_BF, "gathered": gathered_BF}


def batch_shard(here: Here, *, batch: Tensor) -> Tensor:
    """This rank's rows of the batch."""
    rows: Tensor = here.submission.shard_batch(batch, here.rank, here.world_size)
    return rows


def column_shard(here: Here, *, weight_DF: Tensor) -> Tensor:
    """This rank's columns of the weight."""
    columns: Tensor = here.submission.shard_columns(weight_DF, here.rank, here.world_size)
    return columns


def layers_of_stages(here: Here, *, num_layers: int, num_stages: int) -> list[list[int]]:
    """The layers of each stage."""
    return [list(layers) for layers in here.submission.split_layers(num_layers, num_stages)]


def bubble_fractions(here: Here, *, stages: Sequence[int], microbatches: Sequence[int]) -> list[list[Fraction]]:
    """The bubble for each number of stages, by number of microbatches."""
    return [[here.submission.bubble_fraction(p, m) for m in microbatches] for p in stages]


def all_reduce_seconds(
    here: Here, *, sizes: Sequence[int], num_ranks: int, latency: Fraction, bandwidth: int
) -> list[Fraction]:
    """The seconds of a ring all-reduce by the alpha-beta model, by number of bytes."""
    return [
        here.submission.ring_seconds("all_reduce", size, num_ranks, latency=latency, bandwidth=bandwidth)
        for size in sizes
    ]
