"""Public checks of collectives.py."""

from __future__ import annotations

from grader.checking import Check, PerRank, check, expect
from tests.public import cases


@check(
    "collectives",
    points=2,
    statement="broadcast gives every rank the values of the root, for any root, shape and dtype.",
    worlds=(1, 2, 4),
    needs=("broadcast",),
)
def test_broadcast(check: Check) -> None:
    for size in check.worlds:
        calls = [
            {"src": src, "shape": shape, "dtype": dtype}
            for src in range(size)
            for shape in [(3,), (2, 5), (), (0, 4)]
            for dtype in ["float32", "int64"]
        ]
        tensors = [
            [
                cases.tensor(check, rank, call["shape"], call["dtype"], (size, number))
                for number, call in enumerate(calls)
            ]
            for rank in range(size)
        ]
        named = [f"src={call['src']}, {call['dtype']} {call['shape']}" for call in calls]
        values = check.run(size, "collectives.broadcast", cases=named, calls=calls, tensors=PerRank(tensors))
        for rank in range(size):
            for number, call in enumerate(calls):
                what = f"broadcast({named[number]})"
                came = expect.mapping(values[rank][number], "result", "input", what=what, rank=rank)
                expect.same(came["result"], tensors[call["src"]][number], what=what, rank=rank)
                expect.same(came["input"], tensors[rank][number], what=f"the argument of {what}", rank=rank)
