"""What the bonus functions of collectives.py return, computed in one process from what all ranks pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def mean_and_variance(tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Over all elements of all tensors, in double precision, from one list of them all."""
    import torch

    everything = torch.cat([tensor.reshape(-1).to(torch.float64) for tensor in tensors])
    return everything.mean(), everything.var(correction=0)


def received(rows: Sequence[Tensor], destinations: Sequence[Tensor]) -> list[Tensor]:
    """What each rank gets: from rank 0 its rows for this rank in their order, then from rank 1, and so on."""
    import torch

    return [
        torch.cat([own[to == rank] for own, to in zip(rows, destinations, strict=True)]) for rank in range(len(rows))
    ]


def processed(rows: Tensor, process: Mapping[str, Any]) -> Tensor:
    """What programs/collectives_bonus.py makes of rows before they go back; row by row, so of the own rows as well."""
    import torch

    width = process["width"]
    columns = [column % rows.shape[1] for column in range(width or 1)]
    picked = rows[:, columns] if width is not None else rows[:, 0]
    dtype = getattr(torch, process["dtype"])
    return (picked.to(torch.int64) % 2 if dtype == torch.bool else -picked).to(dtype)
