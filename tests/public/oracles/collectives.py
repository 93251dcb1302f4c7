"""What the collectives return, computed in one process from the inputs of all ranks. Lists are by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def pieces(tensor: Tensor, world_size: int) -> list[Tensor]:
    """Dimension 0 by the uneven rule; torch's tensor_split has the same."""
    import torch

    return [piece.contiguous() for piece in torch.tensor_split(tensor, world_size)]


def concatenated(pieces: Sequence[Tensor]) -> Tensor:
    """All rows, in rank order."""
    import torch

    return torch.cat(list(pieces))


def reduced(tensors: Sequence[Tensor], op: str) -> Tensor:
    """SUM, AVG, MAX, MIN or PRODUCT element by element; floats in double precision, integers in their own."""
    import torch

    dtype = tensors[0].dtype
    stacked = torch.stack(list(tensors))
    if dtype.is_complex:
        stacked = stacked.to(torch.complex128)
    elif dtype.is_floating_point:
        stacked = stacked.to(torch.float64)
    match op:
        case "SUM":
            result = stacked.sum(0, dtype=stacked.dtype)
        case "AVG":
            result = stacked.mean(0)
        case "MAX":
            result = stacked.amax(0)
        case "MIN":
            result = stacked.amin(0)
        case "PRODUCT":
            result = stacked.prod(0, dtype=stacked.dtype)
        case _:
            raise ValueError(f"no such operator: {op}")
    return result.to(dtype)


def only_on(root: int, result: Tensor, world_size: int) -> list[Tensor | None]:
    """The result on `root`, None elsewhere."""
    return [result if rank == root else None for rank in range(world_size)]


def operators_and_dtypes() -> list[tuple[str, str]]:
    """The operators with dtypes that have them, where numbers of some thousands do not overflow."""
    pairs = [(op, dtype) for op in ("SUM", "AVG", "MAX", "MIN") for dtype in ("float64", "float16", "bfloat16")]
    pairs += [(op, dtype) for op in ("SUM", "MAX", "MIN", "PRODUCT") for dtype in ("int64", "int32", "int16")]
    pairs += [(op, "complex64") for op in ("SUM", "AVG", "PRODUCT")]
    return [*pairs, ("PRODUCT", "float64"), ("PRODUCT", "bfloat16")]
