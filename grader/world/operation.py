"""One operation of a process group as data: what a rank tells of it before any data move. Both sides use it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

# By the names of torch.distributed's functions; `new_group` stands for the forming of any group, the default one too.
COLLECTIVES = frozenset(
    {
        *("all_reduce", "all_reduce_coalesced", "broadcast", "reduce", "gather", "scatter", "barrier"),
        *("all_gather", "all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_to_all"),
        *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced", "all_to_all_single"),
    }
)
POINT_TO_POINT = frozenset({"send", "recv"})
ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
REDUCE_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
ELEMENT_BYTES = {
    **dict.fromkeys(("bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


class Spec(NamedTuple):
    """A tensor's dtype, by its name in torch, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes of its elements."""
        return self.elements * ELEMENT_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


class Place(NamedTuple):
    """Where an operation was asked for.

    file, line, function: the innermost frame of the submission; of the program, where the submission has none.
    asker: whose line it is that calls torch: "submission", "given" (grader.given), "program", or "" for another's.
    """

    file: str = ""
    line: int = 0
    function: str = ""
    asker: str = ""


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Operation:
    """What one rank asks a group for.

    rank:      of the world. seq: counts this rank's operations from 0.
    group:     the ranks of the group, by rank in the group. group_id: tells groups of the same ranks apart.
    reads:     what the rank gives: one spec, or one for each rank of the group (scatter, all_to_all, …).
    writes:    what it gets, in the same way.
    root:      rank in the group; peer: too, None for a receive from any rank.
    reduce_op: "SUM", …, or "".
    case:      how many values the rank had returned when it asked.
    is_async:  whether the caller gets a handle to wait for. Messages always: torch makes its blocking ones from it.
    """

    rank: int
    seq: int
    name: str
    group: tuple[int, ...]
    group_id: int = 0
    reads: tuple[Spec, ...] = ()
    writes: tuple[Spec, ...] = ()
    reduce_op: str = ""
    root: int | None = None
    peer: int | None = None
    tag: int = 0
    is_async: bool = False
    place: Place = NOWHERE
    case: int = 0

    @property
    def group_rank(self) -> int:
        """This rank's number in the group."""
        return self.group.index(self.rank)

    @property
    def peer_rank(self) -> int | None:
        """The peer's rank in the world."""
        return None if self.peer is None else self.group[self.peer]

    @property
    def num_bytes(self) -> int:
        """Bytes of what the rank gives: of a send, those of the message."""
        return sum(spec.num_bytes for spec in self.reads)

    def with_peer(self, rank: int) -> Operation:
        """A receive from any rank, now that it is known from which (a rank of the world)."""
        return replace(self, peer=self.group.index(rank))


def head_of(operation: Operation, group_number: int) -> dict[str, Any]:
    """The message that tells of an operation; see reading.py. group_number: the rank's own count of its groups."""
    head: dict[str, Any] = {"event": "issue", "s": operation.seq, "g": group_number, "op": operation.name}
    if operation.reads:
        head["reads"] = operation.reads
    if operation.writes:
        head["writes"] = operation.writes
    if operation.reduce_op:
        head["reduce_op"] = operation.reduce_op
    if operation.root is not None:
        head["root"] = operation.root
    if operation.name in POINT_TO_POINT:
        head["peer"], head["tag"] = operation.peer, operation.tag
    if operation.is_async:
        head["async"] = True
    head["at"] = operation.place
    return head
