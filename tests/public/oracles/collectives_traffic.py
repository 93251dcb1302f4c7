"""What one rank may send in a collective made of messages, and what must at least reach it. By the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.public.oracles.collectives import pieces

if TYPE_CHECKING:
    from torch import Tensor

HEADER_BYTES = 64  # a message of up to so many may tell a shape
RINGS = frozenset({"all_gather", "reduce_scatter", "all_reduce"})
ONE_WAY = frozenset({"all_gather", "reduce_scatter"})  # each rank sends to one neighbour only


class Bounds(NamedTuple):
    """Of one rank in one call; bytes. A least without which no algorithm can have the result; None for no most.

    most_steps: what a rank sends before it has waited for one more message is one step.
    headers:    messages of up to HEADER_BYTES are left out of what is at most.
    formula:    where most_sent comes from.
    whole, dtype: of the tensor that a rank reduces: its bytes and its dtype's name.
    """

    least_sent: int = 0
    least_received: int = 0
    most_sent: int | None = None
    most_received: int | None = None
    most_steps: int | None = None
    headers: bool = True
    formula: str = ""
    whole: int = 0
    dtype: str = ""


def bounds(function: str, inputs: Sequence[Any], root: int | None, place: int) -> Bounds:
    """The bounds of the rank `place` in the group. inputs: by rank in the group; root: a rank in the group."""
    size = len(inputs)
    others = size - 1
    match function:
        case "broadcast":
            whole = num_bytes(inputs[root or 0])
            # A chain or tree brings it once; scattered and gathered again, it comes in two parts.
            return Bounds(least_received=0 if place == root else whole, most_received=2 * whole)
        case "scatter":
            parts = [num_bytes(piece) for piece in pieces(inputs[root or 0], size)]
            most = others * max(parts)  # also where pieces are padded, or go on along a chain or a tree
            formula = "each other rank's piece once"
            return Bounds(0, 0 if place == root else parts[place], most, most, formula=formula)
        case "gather":
            parts = [num_bytes(piece) for piece in inputs]
            if place == root:
                return Bounds(0, sum(parts) - parts[place], most_received=others * max(parts))
            return Bounds(parts[place], most_received=others * max(parts))
        case "reduce":
            own = num_bytes(inputs[place])
            return Bounds(least_received=own) if place == root else Bounds(least_sent=own)
        case "all_gather":
            parts = [num_bytes(piece) for piece in inputs]
            most = others * max(parts)
            return Bounds(0, sum(parts) - parts[place], most, None, others, formula="one piece in each of W − 1 steps")
        case "reduce_scatter":
            tensor = inputs[place]
            least = num_bytes(pieces(tensor, size)[place])
            kept = tensor.shape[0] // size * tensor[:1].numel()
            most = (tensor.numel() - kept) * tensor.element_size()
            formula = "n − ⌊rows/W⌋ · (elements per row) elements of the input's dtype"
            return Bounds(0, least, most, None, others, False, formula, num_bytes(tensor), _name(tensor))
        case "all_reduce":
            tensor = inputs[place]
            most = 2 * (tensor.numel() - tensor.numel() // size) * tensor.element_size()
            formula = "2(n − ⌊n/W⌋) elements of the input's dtype"
            whole = num_bytes(tensor)
            return Bounds(0, whole, most, None, 2 * others, False, formula, whole, _name(tensor))
        case _:
            own, came = inputs[place], [by_rank[place] for by_rank in inputs]
            sent = sum(map(num_bytes, own)) - num_bytes(own[place])
            return Bounds(sent, sum(map(num_bytes, came)) - num_bytes(came[place]))


def num_bytes(tensor: Tensor) -> int:
    """Bytes of its elements."""
    return tensor.numel() * tensor.element_size()


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
