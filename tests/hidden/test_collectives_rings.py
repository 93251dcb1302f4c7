"""Hidden checks of collectives.py: the rings, in uneven worlds and in groups."""

from __future__ import annotations

from collections.abc import Sequence

from grader.checking import Check, check
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.calls import Call, from_outside, in_groups, run_calls, wrong_operators

GROUPS = {3: [[0, 2], [1]], 5: [[1, 3], [0, 2, 4]]}
OPERATORS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")


@check(
    "collectives",
    points=1,
    statement="all_gather concatenates pieces of any length, 0 too, in any group; pieces of no dimension, or a rank "
    "outside the group, are a ValueError.",
    worlds=(3, 5),
    needs=("all_gather",),
    core=False,
)
def test_all_gather_uneven(check: Check) -> None:
    def calls_of(ranks: Sequence[int]) -> list[Call]:
        calls = []
        for shift in range(3):
            for trailing, dtype in (((), "float32"), ((2, 2), "int16"), ((3,), "complex64"), ((1,), "bool")):
                lengths = [(2 * rank + shift) % 4 for rank in range(len(ranks))]  # differ by rank and shift
                pieces = [
                    cases.tensor(check, rank, (rows, *trailing), dtype, (list(ranks), shift, dtype))
                    for rank, rows in zip(ranks, lengths, strict=True)
                ]
                name = f"{dtype} pieces with {trailing} after the rows, {shift} rows on rank 0, others elsewhere"
                calls.append(Call(name, pieces, [oracle.concatenated(pieces)] * len(ranks), exact=True))
        return calls

    for size in check.worlds:
        everyone = range(size)
        calls = [*calls_of(everyone), *in_groups(GROUPS[size], calls_of)]
        calls += [
            Call("0-dimensional pieces", cases.for_ranks(check, everyone, ()), refused=True),
            from_outside(cases.for_ranks(check, everyone, (2,))),
        ]
        run_calls(check, size, "all_gather", calls, groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="reduce_scatter splits rows that W does not divide by the uneven rule, in any group; a wrong operator, a "
    "tensor of no dimension, or a rank outside the group is a ValueError.",
    worlds=(3, 5),
    needs=("reduce_scatter",),
    core=False,
)
def test_reduce_scatter_uneven(check: Check) -> None:
    def calls_of(ranks: Sequence[int]) -> list[Call]:
        calls = []
        for shape, dtype in (((7,), "float32"), ((2, 3), "float64"), ((11, 1, 2), "bfloat16"), ((0, 3), "float32")):
            for op in OPERATORS:
                tensors = cases.operands(check, ranks, shape, dtype, op)
                expected = oracle.pieces(oracle.reduced(tensors, op), len(ranks))
                calls.append(Call(f"{op}, {dtype} {shape}", tensors, expected, [op]))
        return calls

    for size in check.worlds:
        everyone = range(size)
        calls = [*calls_of(everyone), *in_groups(GROUPS[size], calls_of)]
        calls += [
            *wrong_operators(check, size),
            Call("a 0-dimensional tensor", cases.for_ranks(check, everyone, ()), refused=True),
            from_outside(cases.for_ranks(check, everyone, (4,))),
        ]
        run_calls(check, size, "reduce_scatter", calls, groups=GROUPS[size])


@check(
    "collectives",
    points=1,
    statement="all_reduce keeps the dtype and gives all ranks the same bits, for every operator; an operator that is "
    "none of the five, or that the dtype does not have, is a ValueError that names it.",
    worlds=(3, 5),
    needs=("all_reduce",),
)
def test_all_reduce_operators(check: Check) -> None:
    for size in check.worlds:
        everyone = range(size)
        calls = []
        for op, dtype in oracle.operators_and_dtypes():
            tensors = cases.operands(check, everyone, (5, 6), dtype, op)
            calls.append(Call(f"{op}, {dtype} (5, 6)", tensors, [oracle.reduced(tensors, op)] * size, [op]))
        calls += wrong_operators(check, size)
        run_calls(check, size, "all_reduce", calls, same_bits=True)
