"""Calls of dispatch_rows and combine_rows on every rank, and the comparison with one process that has all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, PerRank, expect
from tests.public.oracles import collectives_bonus as oracle
from tests.public.runs import cases
from tests.public.runs.by_rank import of_each
from tests.public.runs.origins import Source, moved
from tests.public.runs.row_traffic import expect_rows
from tests.public.runs.told import UNWRITTEN, Told, explained, hinting, tensor_of
from tests.public.runs.traffic import Traffic

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Dispatch:
    """One call of dispatch_rows on every rank of the world.

    rows, destinations: by rank. layout: of the rows: "plain", "strided" or "leaf" (with a gradient).
    group:  "default", "own" (the group that holds the rank) or "other" (one that does not).
    naming: for a call that must raise a ValueError on every rank: what its message holds; else None.
    """

    name: str
    rows: Sequence[Tensor]
    destinations: Sequence[Tensor]
    layout: Literal["plain", "strided", "leaf"] = "plain"
    group: Literal["default", "own", "other"] = "default"
    naming: Sequence[str] | None = None

    @property
    def title(self) -> str:
        """What messages call it."""
        group = {"own": ", in one of several groups", "other": ", in a group without this rank"}.get(self.group, "")
        layout = {"strided": ", non-contiguous rows", "leaf": ", rows with requires_grad"}.get(self.layout, "")
        return f"dispatch_rows({self.name}{layout}{group})"


def drawn(
    check: Check,
    name: str,
    counts: Sequence[int],
    shape: Sequence[int] = (3,),
    dtype: str = "float32",
    *,
    among: Mapping[int, Sequence[int]] | None = None,
    **options: Any,
) -> Dispatch:
    """Rows that carry their origin, to random ranks. counts: rows by rank; among: the ranks that get some, by rank."""
    import torch

    rows, destinations = [], []
    for rank, count in enumerate(counts):
        targets = torch.tensor((among or {}).get(rank, range(len(counts))))
        picks = torch.randint(0, len(targets), (count,), generator=check.generator(name, list(counts), rank))
        rows.append(cases.tensor(check, rank, (count, *shape), dtype, (name, list(counts))))
        destinations.append(targets[picks])
    return Dispatch(f"{name}, {dtype} {('N', *shape)}".replace("'", ""), rows, destinations, **options)


def run_dispatches(
    check: Check, world_size: int, calls: Sequence[Dispatch], groups: Sequence[Sequence[int]] = ()
) -> None:
    """Makes the calls in one world. groups: those of the calls with a group; every rank is in one of them."""
    everyone = list(range(world_size))
    with hinting():
        values = check.run(
            world_size,
            "collectives_bonus.dispatch_rows",
            cases=[call.title for call in calls],
            calls=[{"layout": call.layout, "group": call.group, "refused": call.naming is not None} for call in calls],
            rows=PerRank([[call.rows[rank] for call in calls] for rank in everyone]),
            destinations=PerRank([[call.destinations[rank] for call in calls] for rank in everyone]),
            groups=[list(ranks) for ranks in groups],
        )
    traffic = Traffic(check, world_size)
    for number, call in enumerate(calls):
        right = _received(call, groups, everyone)
        for rank in everyone:
            came = expect.mapping(values[rank][number], "rows", "destination", "new", what=call.title, rank=rank)
            if call.naming is not None:
                expect.raised(came, "ValueError", what=call.title, rank=rank, naming=call.naming)
                traffic.expect_none(rank, number, what=call.title, given=True)
            else:
                received, wanted = came.get("received"), right[rank]
                tell = partial(_received_told, received, wanted, call)
                members = next(ranks for ranks in _groups_of(call, groups, everyone) if rank in ranks)
                all_came = of_each({member: values[member][number] for member in members}, "received")
                tables = expect.by_rank(all_came, {member: right[member] for member in members})
                with explained(tell, what=call.title, rank=rank), tables:
                    expect.same(received, wanted, what=f"the received rows of {call.title}", rank=rank)
                counts, row_bytes = _counts(call, members), _row_bytes(call.rows[rank])
                expect_rows(traffic, number, members, counts, row_bytes, what=call.title, rank=rank)
            expect.true(
                came["new"] is True, f"rank {rank}: the received rows of {call.title} share memory with the argument"
            )
            for name, original in (("rows", call.rows[rank]), ("destination", call.destinations[rank])):
                after = f"the argument {name} of {call.title}, after the call,"
                expect.same(came[name], original, what=after, rank=rank, contiguous=False, outside_autograd=False)


def _groups_of(call: Dispatch, groups: Sequence[Sequence[int]], everyone: Sequence[int]) -> Sequence[Sequence[int]]:
    """The groups that share the call out."""
    return groups if call.group == "own" else [everyone]


def _counts(call: Dispatch, members: Sequence[int]) -> list[list[int]]:
    """counts[s][r]: rows from s to r, ranks in the group."""
    return [[int((call.destinations[source] == target).sum()) for target in range(len(members))] for source in members]


def _row_bytes(rows: Tensor) -> int:
    return math.prod(rows.shape[1:]) * rows.element_size()


def _received(call: Dispatch, groups: Sequence[Sequence[int]], everyone: Sequence[int]) -> dict[int, Tensor]:
    """What each rank must receive, in its own group; destinations are ranks in the group."""
    if call.naming is not None:
        return {}
    right: dict[int, Tensor] = {}
    for members in _groups_of(call, groups, everyone):
        arrived = oracle.received(
            [call.rows[member] for member in members], [call.destinations[member] for member in members]
        )
        right.update(zip(members, arrived, strict=True))
    return right


def _received_told(value: Any, wanted: Tensor, call: Dispatch) -> Told | None:
    """Which rows were received in place of which."""
    came = tensor_of(value)
    sources = [Source(f"rank {rank}'s rows", rows, of=f"rank {rank}") for rank, rows in enumerate(call.rows)]
    told = moved(came, wanted, sources) if came is not None else None
    return (
        Told(told.did, "row i goes to rank destination[i]; first what rank 0 sent, in its order there")
        if told
        else None
    )


def _combined_told(value: Any, wanted: Tensor) -> Told | None:
    """Which of its own rows a rank got back in place of which."""
    came = tensor_of(value)
    told = moved(came, wanted, [Source("the processed rows", wanted)]) if came is not None else None
    if told is None:
        return None
    order = "row i of the result is what became of row i: undo the order of the sending"
    return Told(told.did, UNWRITTEN if "NaN" in told.did else order)


def run_combines(
    check: Check,
    world_size: int,
    call: Dispatch,
    processes: Sequence[Mapping[str, Any]],
    groups: Sequence[Sequence[int]] = (),
) -> None:
    """Dispatches the rows of one call and sends each process's rows back by the same plan; see the program.

    A process with "rows_too_many", or with the "other" group, must be refused.
    """
    everyone = list(range(world_size))
    names = [_name(process) for process in processes]
    with hinting():
        values = check.run(
            world_size,
            "collectives_bonus.combine_rows",
            cases=[call.title, *names],
            rows=PerRank(list(call.rows)),
            destination=PerRank(list(call.destinations)),
            group=call.group,
            processes=[dict(process) for process in processes],
            groups=[list(ranks) for ranks in groups],
        )
    traffic = Traffic(check, world_size)
    for rank in everyone:
        received = expect.tensor(values[rank][0], what=f"the received rows of {call.title}", rank=rank)
        members = next(ranks for ranks in _groups_of(call, groups, everyone) if rank in ranks)
        counts = _counts(call, members)
        for number, (what, process, value) in enumerate(zip(names, processes, values[rank][1:], strict=True), 1):
            came = expect.mapping(value, "processed", "new", what=what, rank=rank)
            if process.get("rows_too_many") or process.get("group"):
                expect.raised(came, "ValueError", what=what, rank=rank)
                traffic.expect_none(rank, number, what=what, given=True)
                continue
            wanted = oracle.processed(call.rows[rank], process)
            with explained(partial(_combined_told, came.get("value"), wanted), what=what, rank=rank):
                expect.same(came.get("value"), wanted, what=what, rank=rank)
            back = [list(column) for column in zip(*counts, strict=True)]  # each row goes where it came from
            expect_rows(traffic, number, members, back, _row_bytes(wanted), what=what, rank=rank)
            expect.true(
                came["new"] is True,
                f"rank {rank}: the result of {what} shares memory with the argument or with an earlier result",
            )
            if received.shape[1:] == call.rows[rank].shape[1:] and received.dtype == call.rows[rank].dtype:
                original = oracle.processed(received, process)
                after = f"the argument of {what}, after the call,"
                expect.same(
                    came["processed"], original, what=after, rank=rank, contiguous=False, outside_autograd=False
                )


def _name(process: Mapping[str, Any]) -> str:
    shape = "(rows,)" if process["width"] is None else f"(rows, {process['width']})"
    layout = {"strided": ", non-contiguous", "leaf": ", with requires_grad"}.get(process["layout"], "")
    extra = f", {process['rows_too_many']} row too many" if process.get("rows_too_many") else ""
    group = ", in a group without this rank" if process.get("group") else ""
    return f"combine_rows({process['dtype']} {shape}{layout}{extra}{group})"


def process(width: int | None, dtype: str = "float32", layout: str = "plain", **options: Any) -> dict[str, Any]:
    """What is done with the received rows before they go back; see programs/collectives_bonus.py."""
    return {"width": width, "dtype": dtype, "layout": layout, **options}
