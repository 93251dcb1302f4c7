"""Inputs that checks share: numbers that carry their origin, so that a misplaced one can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from grader.checking import Check


def tensor(check: Check, rank: int, shape: Sequence[int], dtype: str = "float32", path: object = ()) -> torch.Tensor:
    """A tensor of 1000 · rank + index, plus a random fraction where the dtype has one; bools are random.

    path: tells inputs of one check apart, e.g. (world_size, case).
    """
    import torch

    kind = getattr(torch, dtype)
    generator = check.generator(rank, path)
    count = 1
    for length in shape:
        count *= length
    if kind is torch.bool:
        return torch.randint(0, 2, tuple(shape), generator=generator).bool()
    numbers = torch.arange(count, dtype=torch.float64) + 1000 * rank
    if kind.is_floating_point or kind.is_complex:
        numbers = numbers + torch.rand(count, generator=generator, dtype=torch.float64)
    if kind.is_complex:
        numbers = torch.complex(numbers, torch.rand(count, generator=generator, dtype=torch.float64))
    return numbers.to(kind).reshape(tuple(shape))


def signed(check: Check, rank: int, shape: Sequence[int], dtype: str = "float32", path: object = ()) -> torch.Tensor:
    """As `tensor`, each number with a random sign: which rank holds the largest differs from element to element."""
    import torch

    numbers = tensor(check, rank, shape, dtype, path)
    signs = 2 * torch.randint(0, 2, numbers.shape, generator=check.generator(rank, path, "signs")) - 1
    return numbers * signs.to(numbers.dtype)


def for_ranks(
    check: Check, ranks: Sequence[int], shape: Sequence[int], dtype: str = "float32", path: object = ()
) -> list[torch.Tensor]:
    """A `tensor` for each of these ranks; other groups of ranks, shapes and dtypes get other numbers."""
    return [tensor(check, rank, shape, dtype, (list(ranks), list(shape), dtype, path)) for rank in ranks]


def operands(
    check: Check, ranks: Sequence[int], shape: Sequence[int], dtype: str, op: str, path: object = ()
) -> list[torch.Tensor]:
    """What these ranks reduce: for MAX and MIN with signs, else without, so that a sum does not cancel."""
    kind = signed if op in ("MAX", "MIN") else tensor
    return [kind(check, rank, shape, dtype, (list(ranks), list(shape), dtype, op, path)) for rank in ranks]
