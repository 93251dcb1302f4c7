"""Public check of collectives.py: an all-reduce beside a computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, check, expect
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.reductions import reduced_wrongly
from tests.public.runs.told import IN_PLACE, Told, explained, tensor_of

if TYPE_CHECKING:
    from torch import Tensor

CHANGED = Told(
    "works on its argument, not on a copy: it is not what it was",
    "start the all-reduce on a clone: compute() may read the tensor, and the caller still needs it",
)


@check(
    "collectives",
    points=1,
    statement="all_reduce_while starts the all-reduce on a copy, computes, then waits, also where compute raises; it "
    "returns both results.",
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
            {"op": op, "dtype": dtype, "fails": fails, "group": group}
            for group in (["default", "own"] if groups else ["default"])
            for fails in (False, True)
            for op, dtype in operators
        ]
        calls += [{"op": op, "dtype": "int64", "fails": False, "group": "default"} for op in ("AVG", "BAND")]
        calls += [{"op": "SUM", "dtype": "float32", "fails": False, "group": "other"}] if groups else []
        names = [_name(call) for call in calls]
        tensors = [
            cases.operands(check, range(size), (3, 2), call["dtype"], call["op"] or "SUM", number)
            for number, call in enumerate(calls)
        ]
        values = check.run(
            size,
            "collectives_while.all_reduce_while",
            cases=[*names, "an all-reduce after the calls"],
            calls=calls,
            tensors=PerRank([[by_rank[rank] for by_rank in tensors] for rank in range(size)]),
            groups=groups,
        )
        for rank in range(size):
            for number, call in enumerate(calls):
                own = next(ranks for ranks in members if rank in ranks) if call["group"] == "own" else members[-1]
                _compare(call, values[rank][number], tensors[number], own, what=names[number], rank=rank)
            expect.same(values[rank][-1], size, what="an all-reduce of 1 after the calls", rank=rank)


def _name(call: dict[str, Any]) -> str:
    parts = [call["dtype"], *([call["op"]] if call["op"] else [])]
    parts += {"own": ["in the groups [1, 3], [0, 2]"], "other": ["in a group without this rank"]}.get(call["group"], [])
    parts += ["compute raises"] if call["fails"] else []
    return f"all_reduce_while({', '.join(parts)})"


def _compare(
    call: dict[str, Any], value: Any, tensors: Sequence[Tensor], members: Sequence[int], *, what: str, rank: int
) -> None:
    """tensors: what each rank of the world passed. members: the ranks of the group."""
    reduced, original = [tensors[member] for member in members], tensors[rank]
    refused = (call["op"] in ("AVG", "BAND") and call["dtype"] == "int64") or call["group"] == "other"
    came = expect.mapping(value, "input", "new", "events", what=what, rank=rank)
    if refused:
        expect.raised(value, "ValueError", what=what, rank=rank)
    elif call["fails"]:
        goes_on = "wait for the all-reduce in a finally block, and let compute's error go on"
        expect.true("raised" in came, f"rank {rank}: {what} kept the error of compute to itself", help=goes_on)
        expect.raised(value, "Fault", what=what, rank=rank)
    else:
        pair = expect.sequence(expect.returned(value, what=what, rank=rank), 2, kind=tuple, what=what, rank=rank)
        with explained(lambda: _told(pair[0], call, reduced, rank=rank, members=members), what=what, rank=rank):
            expect.close(pair[0], oracle.reduced(reduced, call["op"] or "SUM"), what=what, rank=rank)
        computed = expect.mapping(pair[1], "tensor", what=f"the second entry of {what}", rank=rank)
        with explained(lambda: CHANGED, what=what, rank=rank):
            expect.same(computed["tensor"], original, what=f"the tensor that compute saw in {what}", rank=rank)
    _compare_events(came["events"], len(reduced), refused=refused, what=what, rank=rank)
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


def _compare_events(events: Any, size: int, *, refused: bool, what: str, rank: int) -> None:
    events = events if isinstance(events, list) else []
    if refused:
        expect.true("start" not in events, f"rank {rank}: {what} started an all-reduce before it raised")
        return
    expect.true(
        events.count("compute") == 1,
        f"rank {rank}: {what} called compute {events.count('compute')} times",
        expected="one call",
    )
    if size > 1:
        before, after = events[: events.index("compute")], events[events.index("compute") + 1 :]
        starts = len(before)
        expect.true(
            starts > 0 and before == ["start"] * starts and after == ["end"] * starts,
            f"rank {rank}: {what} does not start the all-reduce, then compute, then wait",
            expected="start of the all-reduce, compute, end of the wait",
            actual=", ".join(map(str, events)),
            help="pass async_op=True, keep the work that comes back, and wait for it after compute, in a finally block",
        )
