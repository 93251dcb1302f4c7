"""One operation of a process group as data: what a rank tells of it before any data move. Both sides use it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
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
MAX_TENSORS = 4096  # of one operation
MAX_ELEMENTS = 2**48  # of one tensor
MAX_TEXT = 200


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
    """The message that tells of an operation; `read` inverts it. group_number: the rank's own count of its groups."""
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


def refusal(operation: Operation) -> str:
    """Why the group cannot even begin with it, or "": a rank that it does not have, or tensors that do not go together.

    What compares ranks relies on the numbers of tensors.
    """
    name, size = operation.name, len(operation.group)
    for what, number in (("root", operation.root), ("peer", operation.peer)):
        if number is not None and not 0 <= number < size:
            told = f"the {what} {number} is no rank of a group of {size}: they are 0 to {size - 1}"
            return f"{name}: {told}"
    is_root = operation.root == operation.group_rank
    reads, writes = len(operation.reads), len(operation.writes)
    each = f"one tensor for each rank of the group ({size})"
    match name:
        case "send" if reads != 1:
            return "send sends one tensor"
        case "send" if operation.peer == operation.group_rank:
            return f"send to rank {operation.rank} by rank {operation.rank} itself: keep a copy of the piece instead"
        case "recv" if writes != 1:
            return "recv receives one tensor"
        case "broadcast" | "reduce" if operation.root is None or reads + writes < 1:
            return f"{name} needs a tensor and a root"
        case "scatter" if operation.root is None or writes != 1 or reads != (size if is_root else 0):
            return f"scatter needs {each} on the root and none elsewhere; it got {reads}"
        case "gather" if operation.root is None or reads != 1 or writes != (size if is_root else 0):
            return f"gather needs {each} on the root and none elsewhere; it got {writes}"
        case "all_gather" if reads != 1 or writes != size:
            return f"all_gather needs {each} as its output; it got {writes}"
        case "reduce_scatter" if writes != 1 or reads != size:
            return f"reduce_scatter needs {each} as its input; it got {reads}"
        case "all_to_all" | "all_to_all_single" if not reads == writes == size:
            kind = "split sizes" if name == "all_to_all_single" else "tensors"
            return f"{name} gives and takes {each}; it got {reads} input and {writes} output {kind}"
        case "barrier":
            return ""
        case _ if reads + writes < 1:
            return f"{name} needs a tensor"
        case _:
            return _unlike(operation)


def _unlike(operation: Operation) -> str:
    """What one rank's tensors have to have in common, where they have not: gloo would say so when others wait."""
    name, size = operation.name, len(operation.group)
    reads, writes = operation.reads, operation.writes
    match name:
        case "all_gather":
            odd = next((spec for spec in writes if spec != reads[0]), None)
            return f"all_gather gives {reads[0]} and has room for {odd}: they must be alike" if odd else ""
        case "all_to_all":
            odd = next((spec for spec in (*reads, *writes) if spec != reads[0]), None)
            return (
                f"all_to_all has {reads[0]} and {odd}: on a CPU only all_to_all_single has unequal pieces"
                if odd
                else ""
            )
        case "all_gather_into_tensor" if reads and writes and reads[0].shape:
            rows, *rest = reads[0].shape
            wanted = (size * rows, *rest)
            fits = writes[0].shape == wanted
            return "" if fits else f"{name} of {reads[0]} needs an output of shape {wanted}, not {writes[0].shape}"
        case _:
            return ""


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
