"""Public checks of collectives.py: the collectives with a root, in the default group, with pieces of equal length."""

from __future__ import annotations

from grader.checking import Check, check
from tests.public.oracles import collectives as oracle
from tests.public.runs import cases
from tests.public.runs.calls import Call, run_calls

OPERATORS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")
SHAPES_AND_DTYPES = (
    ((4,), "float32"),
    ((8, 3), "float64"),
    ((4, 2, 3), "int64"),
    ((4, 0), "float32"),
    ((8,), "bool"),
    ((64, 8), "float32"),  # large beside a message that tells a shape
)


@check(
    "collectives",
    points=1,
    statement="broadcast gives every rank a new tensor with the root's values, for any root, shape and dtype, by "
    "messages between two ranks.",
    worlds=(1, 2, 4),
    needs=("broadcast",),
)
def test_broadcast(check: Check) -> None:
    for size in check.worlds:
        calls: list[Call] = []
        for src in range(size):
            for shape, dtype in (*SHAPES_AND_DTYPES, ((), "float32"), ((), "int64")):
                inputs = cases.for_ranks(check, range(size), shape, dtype, len(calls))
                name = f"src={src}, {dtype} {shape}"
                calls.append(Call(name, inputs, [inputs[src]] * size, [src], exact=True))
        inputs = cases.for_ranks(check, range(size), (3, 4), "float32", "layouts")
        calls += Call("src=0", inputs, [inputs[0]] * size, [0], exact=True).in_other_layouts()
        run_calls(check, size, "broadcast", calls)


@check(
    "collectives",
    points=1,
    statement="scatter gives rank r the r-th of W equal pieces of the root's rows, which sends each piece once; what "
    "other ranks pass is ignored.",
    worlds=(1, 2, 4),
    needs=("scatter",),
)
def test_scatter(check: Check) -> None:
    for size in check.worlds:
        calls: list[Call] = []
        for src in range(size):
            for shape, dtype in SHAPES_AND_DTYPES:
                whole = cases.tensor(check, src, shape, dtype, (size, len(calls)))
                name = f"src={src}, {dtype} {shape}"
                inputs = [whole if rank == src else None for rank in range(size)]
                calls.append(Call(name, inputs, oracle.pieces(whole, size), [src], exact=True))
        tensors = cases.for_ranks(check, range(size), (4, 3), "float32", "everywhere")
        everywhere = Call("src=0, a tensor on all ranks", tensors, oracle.pieces(tensors[0], size), [0], exact=True)
        run_calls(check, size, "scatter", [*calls, everywhere, *everywhere.in_other_layouts()])


@check(
    "collectives",
    points=1,
    statement="gather concatenates the ranks' pieces of equal length, in rank order, on the root, by messages that "
    "hold the pieces; others get None.",
    worlds=(1, 2, 4),
    needs=("gather",),
)
def test_gather(check: Check) -> None:
    for size in check.worlds:
        calls: list[Call] = []
        for dst in range(size):
            for shape, dtype in SHAPES_AND_DTYPES:
                pieces = cases.for_ranks(check, range(size), shape, dtype, len(calls))
                expected = oracle.only_on(dst, oracle.concatenated(pieces), size)
                calls.append(Call(f"dst={dst}, {dtype} {shape}", pieces, expected, [dst], exact=True))
        pieces = cases.for_ranks(check, range(size), (3, 4), "float32", "layouts")
        expected = oracle.only_on(0, oracle.concatenated(pieces), size)
        calls += Call("dst=0", pieces, expected, [0], exact=True).in_other_layouts()
        run_calls(check, size, "gather", calls)


@check(
    "collectives",
    points=1,
    statement="reduce gives the root the SUM (if no other operator is passed), AVG, MAX, MIN or PRODUCT of the ranks' "
    "tensors, element by element, by messages between two ranks; the others get None.",
    worlds=(1, 2, 4),
    needs=("reduce",),
)
def test_reduce(check: Check) -> None:
    for size in check.worlds:
        calls: list[Call] = []
        for dst in range(size):
            for op in (None, *OPERATORS):
                tensors = cases.operands(check, range(size), (2, 3), "float32", op or "SUM", dst)
                expected = oracle.only_on(dst, oracle.reduced(tensors, op or "SUM"), size)
                name = f"dst={dst}" + (f", {op}" if op else "")
                calls.append(Call(name, tensors, expected, [dst, op] if op else [dst]))
        for shape, dtype in (((), "float64"), ((0, 2), "float32"), ((4,), "int64")):
            tensors = cases.for_ranks(check, range(size), shape, dtype, (shape, dtype))
            expected = oracle.only_on(size - 1, oracle.reduced(tensors, "SUM"), size)
            calls.append(Call(f"dst={size - 1}, {dtype} {shape}", tensors, expected, [size - 1]))
        tensors = cases.for_ranks(check, range(size), (3, 4), "float32", "layouts")
        expected = oracle.only_on(0, oracle.reduced(tensors, "SUM"), size)
        calls += Call("dst=0", tensors, expected, [0]).in_other_layouts()
        run_calls(check, size, "reduce", calls)
