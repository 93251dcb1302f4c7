"""Public checks of collectives.py: the collectives that have no root."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.checking import Check, check
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.calls import Call, from_outside, in_groups, run_calls

if TYPE_CHECKING:
    from torch import Tensor

OPERATORS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")


@check(
    "collectives",
    points=1,
    statement="all_gather concatenates the ranks' pieces of equal length, in rank order, on every rank; each rank "
    "sends to one neighbour in the ring, in W − 1 steps.",
    worlds=(1, 2, 4),
    needs=("all_gather",),
)
def test_all_gather(check: Check) -> None:
    for size in check.worlds:
        calls = []
        for shape, dtype in (
            ((1,), "float32"),
            ((2, 3), "float64"),
            ((3, 1, 2), "int64"),
            ((2, 0), "float32"),
            ((40, 4), "float32"),
        ):
            pieces = cases.for_ranks(check, range(size), shape, dtype, shape)
            calls.append(Call(f"{dtype} {shape}", pieces, [oracle.concatenated(pieces)] * size, exact=True))
        pieces = cases.for_ranks(check, range(size), (3, 4), "float32", "layouts")
        calls += Call("a piece", pieces, [oracle.concatenated(pieces)] * size, exact=True).in_other_layouts()
        run_calls(check, size, "all_gather", calls)


@check(
    "collectives",
    points=1,
    statement="reduce_scatter gives rank r the r-th of W equal pieces of the reduced tensor, for every operator; each "
    "rank sends n − ⌊rows/W⌋ · (elements per row) elements at most, to one neighbour in the ring, in W − 1 steps.",
    worlds=(1, 2, 4),
    needs=("reduce_scatter",),
)
def test_reduce_scatter(check: Check) -> None:
    for size in check.worlds:
        calls = []
        for op in (None, *OPERATORS):
            for shape, dtype in (((4,), "float32"), ((8, 3), "float64"), ((4, 2, 2), "int64")):
                if op == "AVG" and dtype == "int64":
                    continue
                tensors = cases.operands(check, range(size), shape, dtype, op or "SUM", op)
                expected = oracle.pieces(oracle.reduced(tensors, op or "SUM"), size)
                name = ", ".join([*([op] if op else []), f"{dtype} {shape}"])
                calls.append(Call(name, tensors, expected, [op] if op else []))
        tensors = cases.operands(check, range(size), (8, 3), "float32", "SUM", "layouts")
        expected = oracle.pieces(oracle.reduced(tensors, "SUM"), size)
        calls += Call("a tensor", tensors, expected).in_other_layouts()
        run_calls(check, size, "reduce_scatter", calls)


@check(
    "collectives",
    points=1,
    statement="all_reduce gives every rank the sum of the ranks' tensors, the same bits on each; each rank sends "
    "2(n − ⌊n/W⌋) elements at most, to neighbours in the ring only.",
    worlds=(1, 2, 4),
    needs=("all_reduce",),
)
def test_all_reduce(check: Check) -> None:
    for size in check.worlds:
        calls = []
        for shape, dtype in (((4,), "float32"), ((2, 6), "float64"), ((3, 4, 2), "int64"), ((1, 1000), "float32")):
            tensors = cases.operands(check, range(size), shape, dtype, "SUM")
            calls.append(Call(f"{dtype} {shape}", tensors, [oracle.reduced(tensors, "SUM")] * size))
        tensors = cases.operands(check, range(size), (4, 6), "float32", "SUM", "layouts")
        calls += Call("a tensor", tensors, [oracle.reduced(tensors, "SUM")] * size).in_other_layouts()
        run_calls(check, size, "all_reduce", calls, same_bits=True)


@check(
    "collectives",
    points=1,
    statement="all_reduce takes any number of elements, by a ring too: one that W does not divide, fewer than W, a "
    "single number, none; and any group, which a rank outside it gets a ValueError for.",
    worlds=(1, 2, 4),
    needs=("all_reduce",),
    core=False,
)
def test_all_reduce_any_shape(check: Check) -> None:
    shapes = ((10,), (3, 5), (1,), (3,), (), (0,), (2, 0))

    def calls_of(ranks: Sequence[int]) -> list[Call]:
        calls = []
        for shape in shapes:
            tensors = cases.operands(check, ranks, shape, "float32", "SUM")
            calls.append(Call(f"float32 {shape}", tensors, [oracle.reduced(tensors, "SUM")] * len(ranks)))
        return calls

    for size in check.worlds:
        calls = calls_of(range(size))
        groups = []
        if size == 4:
            groups = [range(1, 4, 2), range(0, 4, 2)]
            calls += [*in_groups(groups, calls_of), from_outside(calls[0].inputs)]
        run_calls(check, size, "all_reduce", calls, groups=groups, same_bits=True)


@check(
    "collectives",
    points=1,
    statement="all_to_all gives each rank, as entry i of a list, the piece that rank i meant for it, of any length; "
    "each piece is sent once, to its own rank; wrong pieces, or a rank outside the group, are a ValueError before.",
    worlds=(1, 2, 4),
    needs=("all_to_all",),
    core=False,
)
def test_all_to_all(check: Check) -> None:
    def call_of(ranks: Sequence[int], rows: str, trailing: tuple[int, ...], dtype: str) -> Call:
        """Rank s sends to rank r `rows` rows: "equal" 2, "uneven" between 0 and 4, by both s and r."""
        size = len(ranks)
        lengths = [[2 if rows == "equal" else (3 * s + 2 * r + s * r) % 5 for r in range(size)] for s in range(size)]
        pieces = [
            [
                cases.tensor(check, rank, (lengths[s][r], *trailing), dtype, (size, rows, trailing, dtype, r))
                for r in range(size)
            ]
            for s, rank in enumerate(ranks)
        ]
        received = [[pieces[s][r] for s in range(size)] for r in range(size)]
        return Call(f"pieces of {rows} length, {dtype}, {trailing} after the rows", pieces, received, exact=True)

    def calls_of(ranks: Sequence[int]) -> list[Call]:
        return [
            call_of(ranks, rows, trailing, dtype)
            for rows in ("equal", "uneven")
            for trailing, dtype in (((), "float32"), ((3,), "int64"), ((5, 8), "float32"))
        ]

    for size in check.worlds:
        everyone = range(size)
        calls = calls_of(everyone) + call_of(everyone, "uneven", (3,), "float32").in_other_layouts()
        groups = []
        if size == 4:
            groups = [range(1, 4, 2), range(0, 4, 2)]
            calls += [*in_groups(groups, calls_of), from_outside(calls[0].inputs)]
        calls += wrong_pieces(check, size)
        run_calls(check, size, "all_to_all", calls, groups=groups)


def wrong_pieces(check: Check, size: int) -> list[Call]:
    """Calls that every rank must refuse."""

    def refused(name: str, pieces: list[Tensor], *naming: str) -> Call:
        return Call(name, [pieces] * size, refused=True, naming=naming)

    row = cases.tensor(check, 0, (1, 2), "float32", "wrong")
    wrong = [
        refused(f"{size + 1} pieces in a world of {size}", [row] * (size + 1), str(size + 1)),
        refused("0-dimensional pieces", [row[0, 0].clone()] * size),
    ]
    if size > 1:
        rest = [row] * (size - 1)
        wrong += [
            refused("pieces of float32 and float64", [*rest, row.double()]),
            refused("rows of 2 and of 3", [*rest, cases.tensor(check, 0, (1, 3), "float32", "wrong")]),
        ]
    return wrong
