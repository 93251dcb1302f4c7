"""Public check of collectives.py: an all-reduce beside a computation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, check, expect
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.beside import expect_beside_compute
from tests.public.runs.by_rank import of_each
from tests.public.runs.reductions import reduced_wrongly
from tests.public.runs.told import IN_PLACE, Told, explained, tensor_of
from tests.public.runs.traffic import Traffic

if TYPE_CHECKING:
    from torch import Tensor

CHANGED = Told(
    "works on its argument, not on a copy: it is not what it was",
    "start the all-reduce on a clone: compute() may read the tensor, and the caller still needs it",
)


@check(
    "collectives",
    points=1,
    statement="all_reduce_while starts the all-reduce on a copy, computes beside it, then waits, also where compute "
    "raises: it waits for no other rank before compute has ended; it returns both results.",
    worlds=(1, 2, 4),
    needs=("all_reduce_while",),
    core=False,
)
def test_all_reduce_while(check: Check) -> None:
    operators = [
        (None, "float32"),
        *[(op, dtype) for op in ("SUM", "MAX", "MIN", "PRODUCT") for dtype in ("float32", "int64")],
        ("AVG", "float64"),
    ]
    for size in check.worlds:
        groups = [[1, 3], [0, 2]] if size == 4 else []
        members = [*groups, list(range(size))]
        calls: list[dict[str, Any]] = [
            {"op": op, "dtype": dtype, "fails": fails, "group": group, "refused": False}
            for group in (["default", "own"] if groups else ["default"])
            for fails in (False, True)
            for op, dtype in operators
        ]
        refused = [{"op": op, "dtype": "int64", "group": "default"} for op in ("AVG", "BAND")]
        refused += [{"op": "SUM", "dtype": "float32", "group": "other"}] if groups else []
        calls += [{**call, "fails": False, "refused": True} for call in refused]
        names = [_name(call) for call in calls]
        tensors = [
            cases.operands(check, range(size), (3, 2), call["dtype"], call["op"] or "SUM", number)
            for number, call in enumerate(calls)
        ]
        values = check.run(
            size,
            "collectives_while.all_reduce_while",
            cases=names,
            calls=calls,
            tensors=PerRank([[by_rank[rank] for by_rank in tensors] for rank in range(size)]),
            groups=groups,
        )
        traffic = Traffic(check, size)
        for rank in range(size):
            for number, call in enumerate(calls):
                own = next(ranks for ranks in members if rank in ranks) if call["group"] == "own" else members[-1]
                if call["refused"]:
                    expect.raised(values[rank][number], "ValueError", what=names[number], rank=rank)
                    traffic.expect_none(rank, number, what=names[number])
                    continue
                came = {member: values[member][number] for member in own}
                _compare(call, came, tensors[number], what=names[number], rank=rank)
                expect_beside_compute(traffic, number, own, what=names[number], rank=rank)


def _name(call: dict[str, Any]) -> str:
    parts = [call["dtype"], *([call["op"]] if call["op"] else [])]
    parts += {"own": ["in the groups [1, 3], [0, 2]"], "other": ["in a group without this rank"]}.get(call["group"], [])
    parts += ["compute raises"] if call["fails"] else []
    return f"all_reduce_while({', '.join(parts)})"


def _compare(
    call: dict[str, Any], values: Mapping[int, Any], tensors: Sequence[Tensor], *, what: str, rank: int
) -> None:
    """values: of each rank of the group. tensors: what each rank of the world passed."""
    members, value = list(values), values[rank]
    reduced, original = [tensors[member] for member in members], tensors[rank]
    came = expect.mapping(value, "input", "new", what=what, rank=rank)
    if call["fails"]:
        goes_on = "wait for the all-reduce in a finally block, and let compute's error go on"
        expect.true("raised" in came, f"rank {rank}: {what} kept the error of compute to itself", help=goes_on)
        expect.raised(value, "Fault", what=what, rank=rank)
    else:
        pair = expect.sequence(expect.returned(value, what=what, rank=rank), 2, kind=tuple, what=what, rank=rank)
        right = oracle.reduced(reduced, call["op"] or "SUM")
        tables = expect.by_rank(of_each(values, "value", 0), dict.fromkeys(members, right))
        with explained(lambda: _told(pair[0], call, reduced, rank=rank, members=members), what=what, rank=rank), tables:
            expect.close(pair[0], right, what=what, rank=rank)
        computed = expect.mapping(pair[1], "tensor", what=f"the second entry of {what}", rank=rank)
        with explained(lambda: CHANGED, what=what, rank=rank):
            expect.same(computed["tensor"], original, what=f"the tensor that compute saw in {what}", rank=rank)
    with explained(lambda: CHANGED, what=what, rank=rank):
        expect.same(came["input"], original, what=f"the argument of {what}, after the call,", rank=rank)
    expect.true(came["new"] is True, f"rank {rank}: the result of {what} shares memory with the argument")


def _told(
    value: Any, call: dict[str, Any], tensors: Sequence[Tensor], *, rank: int, members: Sequence[int]
) -> Told | None:
    """What a wrong sum is."""
    came = tensor_of(value)
    if value is None or came is None:
        return Told("returned None for the reduced tensor", IN_PLACE) if value is None else None
    op = call["op"] or "SUM"
    told = reduced_wrongly(came, tensors, op, rank=rank, members=members, world_size=len(members))
    if told is None or "NaN" in told.did or op != "AVG":
        return told
    return Told(told.did, "divide once, and after the wait: what is done to the tensor before that is lost")
