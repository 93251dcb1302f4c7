"""What classic mistakes in the three conjugates give, for the messages: forwards, and backwards.

All lists are by rank in the group, and so is `own`, the rank that looks; `members` are the ranks of the world in the
group, for messages. In a group of one rank there is nothing to mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from grader.checking import Slip
from tests.public.oracles.tensor_parallel import columns

if TYPE_CHECKING:
    from torch import Tensor

JOIN = "concatenate the pieces of all ranks along the last dimension (dim=-1), in the order of the ranks"
SUM = (
    "the consumer of x is split: the gradient that a rank computes comes from its own columns alone, and x gets the "
    "sum over ranks, by an all-reduce in backward"
)
SCATTER = (
    "the consumers are split: each rank's gradient of all columns comes from its own consumer alone, and a rank must "
    "get, for its own columns, the sum of what all ranks have: a reduce-scatter in backward"
)
SLICE = (
    "all that follows is the same on every rank, so each rank has the whole gradient already: backward keeps the own "
    "columns, once; a sum over ranks counts them once for each rank"
)
OWN = "rank r keeps the columns that it owns, in forward and in backward: the r-th piece by the uneven rule"


def gathered(pieces: Sequence[Tensor], own: int) -> Iterator[Slip]:
    """Wrong ways to put the ranks' pieces (..., own columns) together."""
    import torch

    world_size, dims, whole = len(pieces), pieces[0].dim(), torch.cat(list(pieces), dim=-1)
    if len({piece.shape for piece in pieces}) == 1:
        for dim in range(dims - 1):
            joined = torch.cat(list(pieces), dim=dim)
            yield Slip(f"the ranks' columns joined along dimension {dim}, not along the last", JOIN, joined)
        yield Slip("the ranks' columns stacked in a new first dimension", JOIN, torch.stack(list(pieces)))
        yield Slip(
            "the ranks' blocks one below the other, as all_gather_into_tensor lays them, in another shape only",
            "in memory the columns of one rank do not lie together in the whole: " + JOIN,
            torch.cat([piece.reshape(-1) for piece in pieces]).reshape(whole.shape),
        )
        yield Slip(f"this rank's own columns {world_size} times", JOIN, torch.cat([pieces[own]] * world_size, dim=-1))
    turned = [*pieces[own:], *pieces[:own]]
    yield Slip("this rank's own columns first, then the others'", JOIN, torch.cat(turned, dim=-1))
    yield Slip("the ranks' columns from the last rank to the first", JOIN, torch.cat([*reversed(pieces)], dim=-1))
    alone = [piece if rank == own else piece * 0 for rank, piece in enumerate(pieces)]
    yield Slip("this rank's own columns, and zeros for those of others", JOIN, torch.cat(alone, dim=-1))
    yield Slip("this rank's own columns alone", JOIN, pieces[own])


def summed(parts: Sequence[Tensor], own: int, members: Sequence[int]) -> Iterator[Slip]:
    """Wrong sums of the ranks' gradients."""
    total, world_size = sum_of(parts), len(parts)
    over = f"the {world_size} ranks"
    yield Slip(f"this rank's own part alone, not the sum over {over}", SUM, parts[own])
    for rank, part in zip(members, parts, strict=True):
        yield Slip(f"rank {rank}'s part alone, not the sum over {over}", SUM, part)
    yield Slip(
        f"the mean over {over}, not their sum: too small by {world_size}, the world size", SUM, total / world_size
    )
    yield Slip(
        f"{world_size} times the sum over {over}: too large by {world_size}, the world size", SUM, total * world_size
    )


def summed_in_memory_order(parts: Sequence[Tensor], own: int, turned: Sequence[bool]) -> Iterator[Slip]:
    """The sum that gloo makes of tensors whose memory is in another order. turned: the ranks whose dimensions are."""
    lying = [(_reversed(part) if turn else part).reshape(-1) for part, turn in zip(parts, turned, strict=True)]
    total, shape = sum_of(lying), parts[own].shape
    wrong = _reversed(total.reshape(shape[::-1])) if turned[own] else total.reshape(shape)
    yield Slip(
        "a sum of numbers from different places: they were paired as they lie in memory, which differs between ranks",
        "a collective takes the memory as it lies: give it a contiguous copy",
        wrong,
    )


def scattered(parts: Sequence[Tensor], own: int, members: Sequence[int]) -> Iterator[Slip]:
    """Wrong gradients of own columns, where each rank has its own gradient of all columns and theirs are summed."""
    total, world_size = sum_of(parts), len(parts)
    mine, right = columns(parts[own], own, world_size), columns(total, own, world_size)
    over = f"the {world_size} ranks"
    yield Slip(f"the slice of this rank's own gradient alone, not the sum over {over}", SCATTER, mine)
    for place, rank in enumerate(members):
        yield Slip(f"rank {rank}'s columns of the sum, not this rank's own", OWN, columns(total, place, world_size))
    yield Slip(
        f"the mean over {over}, not their sum: too small by {world_size}, the world size", SCATTER, right / world_size
    )
    yield Slip(
        f"{world_size} times the sum over {over}: too large by {world_size}, the world size",
        SCATTER,
        right * world_size,
    )


def sliced(whole: Tensor, own: int, members: Sequence[int], of: str) -> Iterator[Slip]:
    """Wrong gradients of own columns, where every rank has the whole gradient. of: what the messages call it."""
    world_size = len(members)
    right = columns(whole, own, world_size)
    yield Slip(f"{of} {world_size} times: too large by {world_size}, the world size", SLICE, right * world_size)
    yield Slip(f"{of}, but too small by {world_size}, the world size", SLICE, right / world_size)
    for place, rank in enumerate(members):
        yield Slip(f"{of} for rank {rank}'s columns, not for this rank's own", OWN, columns(whole, place, world_size))


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    """The sum in float64, in the dtype of the first."""
    import torch

    return torch.stack(list(tensors)).double().sum(0).to(tensors[0].dtype)


def _reversed(tensor: Tensor) -> Tensor:
    return tensor.permute(*reversed(range(tensor.dim())))
