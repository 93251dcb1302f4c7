"""One part of what each rank returned, for `expect.by_rank`: a submission may have returned anything there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def of_each(values: Mapping[int, Any], *keys: str | int) -> dict[int, Any]:
    """By rank: what stands under these keys, one below the other; where there is no such thing, what is there."""
    return {rank: _under(value, keys) for rank, value in values.items()}


def _under(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        if isinstance(key, str) and type(value) is dict:
            value = value.get(key)
        elif isinstance(key, int) and type(value) in (list, tuple) and key < len(value):
            value = value[key]
        else:
            return value
    return value
