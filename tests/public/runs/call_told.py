"""What a student's collective did in one call, from what all ranks passed: see `Told`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.public.oracles import collectives as oracle
from tests.public.runs.origins import Source, moved
from tests.public.runs.reductions import reduced_wrongly
from tests.public.runs.told import IN_PLACE, UNWRITTEN, Told, near, tensor_of, tolerance

if TYPE_CHECKING:
    from torch import Tensor

    from tests.public.runs.calls import Call

ROOTS = {"broadcast": "src", "scatter": "src", "gather": "dst", "reduce": "dst"}
REDUCTIONS = ("reduce", "reduce_scatter", "all_reduce")
UNEVEN = "rank r owns piece r by the uneven rule: piece_sizes(n, W) has the lengths, for any n"
HELP = {
    "broadcast": "src's tensor goes to all; what the others hold is ignored",
    "scatter": UNEVEN,
    "gather": "the pieces stand in the order of the ranks, the root's own among them, each whole",
    "all_gather": "a ring passes on what it has: first the own piece, then in each step the one that came before",
    "reduce_scatter": "follow one piece round the ring on paper: after W − 1 steps piece r, with every rank's part, "
    "is on rank r",
    "all_reduce": "follow one chunk round the ring on paper, first while it is reduced, then while it is gathered",
    "all_to_all": "pieces[r] goes to rank r, and entry i of the result is what rank i sent here",
}


def result_told(function: str, call: Call, value: Any, *, rank: int, members: Sequence[int]) -> Told | None:
    """What a wrong result is. members: the ranks of the group, in its order."""
    expected = call.expected[rank]
    if expected is None:
        return _not_none(function, call, value, rank=rank, members=members)
    if value is None:
        return Told("returned None", IN_PLACE)
    came = tensor_of(value)
    if came is None or came.dtype != expected.dtype:
        return None
    if function in REDUCTIONS:
        told = _reduced(function, call, came, rank=rank, members=members)
    else:
        told = moved(came, expected, _sources(function, call, members))
    if told is None:
        return _nan(came, expected)
    return Told(told.did, told.help or _root_help(function, call, came, rank, members) or _help(function, told))


def entry_told(call: Call, entry: int, value: Any, *, rank: int, members: Sequence[int]) -> Told | None:
    """What a wrong entry of all_to_all's list is."""
    came, expected = tensor_of(value), call.expected[rank][entry]
    if came is None or came.dtype != expected.dtype:
        return None
    sources = [
        Source(f"the piece of rank {source} for rank {target}", piece)
        for source in members
        for target, piece in zip(members, call.inputs[source], strict=True)
    ]
    told = moved(came, expected, sources)
    return Told(told.did, _help("all_to_all", told)) if told else _nan(came, expected)


def argument_told(value: Any, result: Any) -> Told:
    """What became of an argument that is not any more what it was."""
    came, returned = tensor_of(value), tensor_of(result)
    holds = came is not None and returned is not None and near(came, returned)
    return Told(
        "changed its argument" + (", which holds the result now" if holds else ""),
        "work on a clone: the caller still needs the argument, and only what the contract calls in place may change it",
    )


def _sources(function: str, call: Call, members: Sequence[int]) -> list[Source]:
    """The rows that this collective can move, by their owner; only what was passed on a rank is there."""
    word = {"broadcast": "tensor", "scatter": "tensor"}.get(function, "piece")
    return [
        Source(f"rank {member}'s {word}", call.inputs[member])
        for member in members
        if call.inputs[member] is not None and not isinstance(call.inputs[member], list)
    ]


def _reduced(function: str, call: Call, came: Tensor, *, rank: int, members: Sequence[int]) -> Told | None:
    op = next((one for one in call.arguments if isinstance(one, str)), "SUM")
    tensors = [call.inputs[member] for member in members]
    whole = oracle.reduced(tensors, op)
    expected = call.expected[rank]
    if function == "all_reduce" and came.shape == expected.shape:
        flat = Source(f"the {op}", whole.reshape(-1))
        told = moved(came.reshape(-1), flat.rows, [flat], allowed=tolerance(whole), word="element")
    elif function == "reduce_scatter":
        pieces = oracle.pieces(whole, len(members))
        owned = [Source(f"rank {member}'s piece of the {op}", one) for member, one in zip(members, pieces, strict=True)]
        told = moved(came, expected, owned, allowed=tolerance(whole))
        if told is not None and came.shape != expected.shape:
            told = Told(told.did, UNEVEN)
        place = members.index(rank)
        tensors = [oracle.pieces(tensor, len(members))[place] for tensor in tensors]
    else:
        told = None
    if told is None or "NaN" in told.did:
        told = reduced_wrongly(came, tensors, op, rank=rank, members=members, world_size=len(call.inputs)) or told
    return told


def _not_none(function: str, call: Call, value: Any, *, rank: int, members: Sequence[int]) -> Told | None:
    """A rank that is not the root and returned something."""
    came, root = tensor_of(value), call.arguments[0]
    if came is None or not isinstance(root, int):
        return None
    result = call.expected[members[root]]
    only = f"which only rank {members[root]} is to have"
    if near(came, result):
        fixed = "; is rank 0 the root whatever dst says?" if rank == members[0] else ""
        return Told(f"returned the result, {only}", f"the root is the argument dst, the others return None{fixed}")
    part = _reduced(function, call, came, rank=rank, members=members) if function == "reduce" else None
    what = part.did.removeprefix("gave ") if part else "a tensor that is not the result"
    what = "its own argument" if near(came, call.inputs[rank]) else what
    return Told(
        f"returned {what}, where ranks other than dst return None",
        f"what a rank other than dst holds is at most a part of the {function}: return None there",
    )


def _root_help(function: str, call: Call, came: Tensor, rank: int, members: Sequence[int]) -> str:
    """A hint where the values are those of another root."""
    root = call.arguments[0] if function in ROOTS and call.arguments else None
    if not isinstance(root, int) or function != "broadcast":
        return ""
    if call.group == "own" and root in members and members[root] != root and near(came, call.inputs[root]):
        return f"src={root} is a rank in the group: of {list(members)} that is the process with rank {members[root]}"
    if root != 0 and near(came, call.inputs[members[0]]):
        return "the root is the argument src: is rank 0 the root whatever src says?"
    if near(came, call.inputs[rank]):
        return "a rank other than src receives into a fresh tensor, and returns that"
    return ""


def _help(function: str, told: Told) -> str:
    return f"{HELP[function]}; {UNWRITTEN}" if "NaN" in told.did else HELP.get(function, "")


def _nan(came: Tensor, expected: Tensor) -> Told | None:
    wrong = came != came
    if came.shape != expected.shape or not bool(wrong.any()) or bool((expected != expected).any()):
        return None
    return Told(f"gave NaN in {int(wrong.sum())} of its {came.numel()} numbers", UNWRITTEN)
