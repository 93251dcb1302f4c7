"""Hidden checks of collectives.py: the collectives with a root, in uneven worlds and in groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from grader.checking import Check, check
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.calls import Call, from_outside, in_groups, run_calls, wrong_operators, wrong_roots

GROUPS = {3: [[0, 2], [1]], 5: [[1, 3], [0, 2, 4]]}
OPERATORS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")
DTYPES = ("float64", "float16", "bfloat16", "complex64", "int32", "int16", "bool")


def roots_of(size: int) -> range:
    """Ranks that every group of GROUPS[size] has."""
    return range(min(len(ranks) for ranks in GROUPS[size]))


@check(
    "collectives",
    points=1,
    statement="In broadcast, src is a rank in the group; a src that is none, or a rank outside the group, is a "
    "ValueError before anything is sent.",
    worlds=(3, 5),
    needs=("broadcast",),
    core=False,
)
def test_broadcast_in_groups(check: Check) -> None:
    def calls_of(ranks: Sequence[int], roots: range) -> list[Call]:
        calls = []
        for src in roots:
            for dtype in DTYPES:
                inputs = cases.for_ranks(check, ranks, (3, 2), dtype, src)
                calls.append(Call(f"src={src}, {dtype}", inputs, [inputs[src]] * len(ranks), [src], exact=True))
        return calls

    for size in check.worlds:
        roots = roots_of(size)
        everyone = range(size)
        calls = calls_of(everyone, everyone) + in_groups(GROUPS[size], partial(calls_of, roots=roots))
        inputs = cases.for_ranks(check, everyone, (3,), "float32", "wrong")
        calls += wrong_roots("src", inputs, group_size=size)
        # The world has this rank, and no group does.
        largest = max(len(ranks) for ranks in GROUPS[size])
        calls += wrong_roots("src", inputs, group_size=largest, group="own")
        run_calls(check, size, "broadcast", [*calls, from_outside(inputs, [0])], groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="scatter splits rows that W does not divide by the uneven rule, in any group; a wrong src, no tensor "
    "with a dimension on src, or a rank outside the group is a ValueError.",
    worlds=(3, 5),
    needs=("scatter",),
    core=False,
)
def test_scatter_uneven(check: Check) -> None:
    def calls_of(ranks: Sequence[int], roots: range) -> list[Call]:
        calls = []
        for src in roots:
            for shape, dtype in (((7, 2), "float32"), ((2,), "int64"), ((11, 1, 2), "bfloat16"), ((0, 3), "float32")):
                whole = cases.tensor(check, ranks[src], shape, dtype, (list(ranks), src, dtype))
                inputs = [whole if rank == src else None for rank in range(len(ranks))]
                expected = oracle.pieces(whole, len(ranks))
                calls.append(Call(f"src={src}, {dtype} {shape}", inputs, expected, [src], exact=True))
        return calls

    for size in check.worlds:
        roots = roots_of(size)
        everyone = range(size)
        calls = calls_of(everyone, everyone) + in_groups(GROUPS[size], partial(calls_of, roots=roots))
        calls += [
            *wrong_roots("src", calls[0].inputs, group_size=size),
            Call("src=1, which passes None", [None] * size, arguments=[1], refused=True),
            Call(
                "src=0, which passes a 0-dimensional tensor",
                [cases.tensor(check, 0, ()), *[None] * (size - 1)],
                arguments=[0],
                refused=True,
            ),
            from_outside(calls[0].inputs, [0]),
        ]
        run_calls(check, size, "scatter", calls, groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="gather concatenates pieces of any length, 0 too, in any group; a wrong dst, pieces of no dimension, or "
    "a rank outside the group are a ValueError.",
    worlds=(3, 5),
    needs=("gather",),
    core=False,
)
def test_gather_uneven(check: Check) -> None:
    def calls_of(ranks: Sequence[int], roots: range) -> list[Call]:
        calls = []
        for dst in roots:
            for trailing, dtype in (((), "float32"), ((2, 2), "int16"), ((3,), "complex64")):
                lengths = [(2 * rank + dst) % 4 for rank in range(len(ranks))]
                pieces = [
                    cases.tensor(check, rank, (rows, *trailing), dtype, (list(ranks), dst, dtype))
                    for rank, rows in zip(ranks, lengths, strict=True)
                ]
                expected = oracle.only_on(dst, oracle.concatenated(pieces), len(ranks))
                name = f"dst={dst}, {dtype} pieces with {trailing} after the rows, of different lengths"
                calls.append(Call(name, pieces, expected, [dst], exact=True))
        return calls

    for size in check.worlds:
        roots = roots_of(size)
        everyone = range(size)
        calls = calls_of(everyone, everyone) + in_groups(GROUPS[size], partial(calls_of, roots=roots))
        inputs = cases.for_ranks(check, everyone, (2,))
        calls += [
            *wrong_roots("dst", inputs, group_size=size),
            Call("0-dimensional pieces", cases.for_ranks(check, everyone, ()), arguments=[0], refused=True),
            from_outside(inputs, [0]),
        ]
        run_calls(check, size, "gather", calls, groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="In reduce, dst is a rank in the group, and AVG is over the group; a dst that is none, or a rank outside "
    "the group, is a ValueError before anything is sent.",
    worlds=(3, 5),
    needs=("reduce",),
    core=False,
)
def test_reduce_in_groups(check: Check) -> None:
    def calls_of(ranks: Sequence[int], roots: range) -> list[Call]:
        calls = []
        for dst in roots:
            for op in OPERATORS:
                tensors = cases.operands(check, ranks, (3, 2), "float32", op, dst)
                expected = oracle.only_on(dst, oracle.reduced(tensors, op), len(ranks))
                calls.append(Call(f"dst={dst}, {op}", tensors, expected, [dst, op]))
        return calls

    for size in check.worlds:
        roots = roots_of(size)
        calls = in_groups(GROUPS[size], partial(calls_of, roots=roots))
        inputs = cases.for_ranks(check, range(size), (3,))
        largest = max(len(ranks) for ranks in GROUPS[size])
        calls += [
            *wrong_roots("dst", inputs, group_size=size),
            *wrong_roots("dst", inputs, group_size=largest, group="own"),
            from_outside(inputs, [0]),
        ]
        run_calls(check, size, "reduce", calls, groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="reduce keeps the dtype, for every operator; an operator that is none of the five, or that the dtype "
    "does not have, is a ValueError that names it.",
    worlds=(3, 5),
    needs=("reduce",),
)
def test_reduce_operators(check: Check) -> None:
    for size in check.worlds:
        calls = []
        for op, dtype in oracle.operators_and_dtypes():
            tensors = cases.operands(check, range(size), (2, 3), dtype, op)
            expected = oracle.only_on(size - 2, oracle.reduced(tensors, op), size)
            calls.append(Call(f"dst={size - 2}, {op}, {dtype}", tensors, expected, [size - 2, op]))
        calls += wrong_operators(check, size, [0])
        run_calls(check, size, "reduce", calls)
