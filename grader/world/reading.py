"""Reading what a rank tells of an operation: bounded, and refused where no rank of ours tells it. Pure."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from grader.world.operation import (
    COLLECTIVES,
    ELEMENT_BYTES,
    NOWHERE,
    POINT_TO_POINT,
    REDUCE_OPS,
    ROOTED,
    Operation,
    Place,
    Spec,
)
from grader.world.refusal import refusal

MAX_TENSORS = 4096  # of one operation
MAX_ELEMENTS = 2**48  # of one tensor
MAX_TEXT = 200


def read(rank: int, head: dict[str, Any], group: tuple[int, ...], group_id: int, *, case: int = 0) -> Operation:
    """The operation that a rank tells of, in this case. Raises ValueError for anything that no rank tells."""
    name: Any = head.get("op")
    known = name in COLLECTIVES or name in POINT_TO_POINT
    reduce_op = head.get("reduce_op", "")
    if not known or reduce_op not in ("", *REDUCE_OPS):
        raise ValueError("an operation that there is not")
    root = None if head.get("root") is None else _whole(head["root"], 0, len(group))
    peer = None if head.get("peer") is None else _whole(head["peer"], 0, len(group))
    if (root is not None and name not in ROOTED) or (peer is not None and name not in POINT_TO_POINT):
        raise ValueError("a rank that this operation has no use for")
    if name == "send" and peer is None:
        raise ValueError("a message to nobody")
    operation = Operation(
        rank=rank,
        seq=_whole(head["s"], 0, 2**31),
        name=name,
        group=group,
        group_id=group_id,
        reads=_specs(head.get("reads", [])),
        writes=_specs(head.get("writes", [])),
        reduce_op=reduce_op,
        root=root,
        peer=peer,
        tag=_whole(head.get("tag", 0), -(2**31), 2**63),
        is_async=head.get("async") is True,
        place=read_place(head.get("at")),
        case=case,
    )
    if refusal(operation):
        raise ValueError("an operation that cannot be")
    return operation


def read_place(at: Any) -> Place:
    """A place as a rank tells it, bounded and printable; one that cannot be read is nowhere."""
    if not isinstance(at, list) or [type(each) for each in at] != [str, int, str, str] or not 0 <= at[1] < 10**9:
        return NOWHERE
    return _place(*at)


@lru_cache(maxsize=4096)  # a program asks from few places, again and again
def _place(file: str, line: int, function: str, asker: str) -> Place:
    return Place(_one_line(file), line, _one_line(function), _one_line(asker))


def _one_line(text: str) -> str:
    """Bounded, and without anything that moves a cursor or reorders text: such a name is no honest one."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[:MAX_TEXT])


def _whole(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value < high:
        raise ValueError("a number out of range")
    return value


def _specs(told: Any) -> tuple[Spec, ...]:
    if not isinstance(told, list) or len(told) > MAX_TENSORS:
        raise ValueError("tensors that cannot be read")
    specs = []
    for entry in told:
        dtype, shape = entry
        if type(dtype) is not str or not isinstance(shape, list) or len(shape) > 64:
            raise ValueError("a tensor that cannot be read")
        if any(type(length) is not int for length in shape):
            raise ValueError("a tensor that cannot be read")
        specs.append(_spec(dtype, tuple(shape)))
    return tuple(specs)


@lru_cache(maxsize=4096)
def _spec(dtype: str, shape: tuple[int, ...]) -> Spec:
    if dtype not in ELEMENT_BYTES or any(not 0 <= length < MAX_ELEMENTS for length in shape):
        raise ValueError("a tensor that cannot be read")
    if math.prod(max(length, 1) for length in shape) > MAX_ELEMENTS:
        raise ValueError("a tensor that no memory holds")
    return Spec(dtype, shape)
