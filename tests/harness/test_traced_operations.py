"""Every collective on the traced group: the results of plain computation, and the account of what was asked for."""

from __future__ import annotations

from functools import reduce as fold
from typing import Any

import pytest
import torch
from torch import Tensor

from grader.world import Launcher, Returned, World
from tests.harness import programs_traced
from tests.harness.programs_traced import own
from tests.harness.traced import PROGRAM, names, plain, returned, same

SIZES = (1, 2, 3, 4, 5)


class Ran:
    """A world that ran all cases: what each rank got by the case's name, and the case's number."""

    def __init__(self, outcome: Returned) -> None:
        self.trace = outcome.trace
        self.values = [dict(plain(values)) for values in outcome.values]
        self.number = {name: number for number, (name, _) in enumerate(outcome.values[0])}


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"world of {size}")
def ran(request: pytest.FixtureRequest, launcher: Launcher) -> Ran:
    return Ran(returned(World(request.param, launcher=launcher).run(programs_traced.all_cases)))


def total(size: int, length: int = 4, dtype: torch.dtype = torch.float32) -> Tensor:
    return fold(torch.add, [own(rank, length, dtype) for rank in range(size)])


def folded(size: int, function: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    return fold(function, [own(rank, dtype=dtype) for rank in range(size)])


def expected(name: str, rank: int, size: int) -> Any:
    """What a rank gets in a case, by plain computation."""
    match name:
        case "all_reduce":
            least, most = folded(size, torch.minimum), folded(size, torch.maximum)
            whole = total(size)
            return {
                "SUM": whole,
                "AVG": whole / size,
                "PRODUCT": folded(size, torch.mul),
                "MIN": least,
                "MAX": most,
            }
        case "all_reduce_bits":
            functions = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}
            return {op: folded(size, function, torch.int64) for op, function in functions.items()}
        case "all_reduce_dtypes":
            dtypes = ("float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "complex64")
            return {dtype: total(size, dtype=getattr(torch, dtype)) for dtype in dtypes}
        case "all_reduce_bool":
            return torch.tensor([True, False, True])
        case "empty_and_scalar":
            return torch.empty(0, 3), torch.tensor(float(sum(range(size)) * size))
        case "one_op_many_shapes":
            return [torch.tensor(float(sum(range(size)) * elements)) for elements in (1, 6, 4, 1000)]
        case "all_reduce_coalesced":
            return [total(size), total(size, 2)]
        case "coalescing_manager":
            gathered = [torch.cat([own(one, length) for one in range(size)]) for length in (4, 2)]
            shares = [total(size, size)[rank : rank + 1], total(size, 2 * size)[2 * rank : 2 * rank + 2]]
            return [total(size), total(size, 2)], gathered, shares
        case "broadcast":
            return [own(root) for root in range(size)]
        case "reduce":
            return [total(size) if root == rank else own(rank) for root in range(size)]
        case "reduce_async":
            return total(size) if rank == size - 1 else own(rank)
        case "all_gather":
            return [own(one) for one in range(size)]
        case "all_gather_into_tensor":
            return [torch.cat([own(one) for one in range(size)])] * 2
        case "gather":
            return [own(one) for one in range(size)] if rank == size - 1 else None
        case "scatter":
            return own(rank)
        case "reduce_scatter":
            return total(size, 2) * (rank + 1), total(size, rank + 1)
        case "reduce_scatter_tensor":
            share = total(size, 2 * size)[2 * rank : 2 * rank + 2]
            return [share, share, share / size]
        case "all_to_all":
            return [own(one, 2) + 100 * rank for one in range(size)]
        case "all_to_all_single":
            even = torch.stack([own(one, 2 * size).reshape(size, 2)[rank] for one in range(size)])
            begin = rank * (rank + 1) // 2
            gives = [own(one, size * (size + 1)).reshape(-1, 2) for one in range(size)]
            return even, torch.cat([rows[begin : begin + rank + 1] for rows in gives])
        case "barriers":
            return None
        case "objects":
            gathered = [{"rank": one, "text": "x" * one} for one in range(size)]
            on_root = [["my rank", one] for one in range(size)] if rank == 0 else None
            return gathered, [("from", size - 1), size - 1], on_root, [f"for {rank}"]
        case "after_refusals":
            return total(size)
    raise LookupError(name)


RESULTS = [
    function.__name__ for function in programs_traced.CASES if function.__name__ not in ("refusals", "object_bytes")
]


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_plain_computation(name: str, ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        wanted = expected(name, rank, size)
        assert same(ran.values[rank][name], wanted), (rank, ran.values[rank][name], wanted)


def asked(name: str, rank: int, size: int) -> list[tuple[str, int]]:
    """The operations that a case asks for, and the bytes that the rank gives in each."""
    is_last = rank == size - 1
    match name:
        case "all_reduce":
            return [("all_reduce", 16)] * 5
        case "all_reduce_dtypes":
            return [("all_reduce", 4 * width) for width in (2, 2, 8, 1, 1, 4, 8, 8)]
        case "all_reduce_bool":
            return [("all_reduce", 3)]
        case "empty_and_scalar":
            return [("all_reduce", 0), ("all_reduce", 4), ("broadcast", 0), ("all_reduce", 4)]
        case "one_op_many_shapes":
            return [("all_reduce", 4 * elements) for elements in (1, 6, 4, 1000)]
        case "all_reduce_coalesced":
            return [("all_reduce_coalesced", 24)]
        case "coalescing_manager":
            of_single = [("all_gather_into_tensor_coalesced", 24), ("reduce_scatter_tensor_coalesced", 12 * size)]
            return [("all_reduce_coalesced", 24), *of_single]
        case "broadcast":
            return [("broadcast", 16 if root == rank else 0) for root in range(size)]
        case "reduce":
            return [("reduce", 16)] * size
        case "all_gather":
            return [("all_gather", 16)]
        case "all_gather_into_tensor":
            return [("all_gather_into_tensor", 16)] * 2
        case "gather":
            return [("gather", 16)]
        case "scatter":
            return [("scatter", 16 * size if is_last else 0)]
        case "reduce_scatter":
            return [("reduce_scatter", 8 * size), ("reduce_scatter", 4 * size * (size + 1) // 2)]
        case "reduce_scatter_tensor":
            return [("reduce_scatter_tensor", 8 * size)] * 3
        case "all_to_all":
            return [("all_to_all", 8 * size)]
        case "all_to_all_single":
            return [("all_to_all_single", 8 * size), ("all_to_all_single", 4 * size * (size + 1))]
        case "barriers":
            return [("barrier", 0)] * 3
    raise LookupError(name)


COUNTED = [name for name in RESULTS if name not in ("all_reduce_bits", "reduce_async", "objects", "after_refusals")]


@pytest.mark.parametrize("name", COUNTED)
def test_the_trace_has_each_operation_in_order_with_its_bytes(name: str, ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        issued = ran.trace.of(rank, ran.number[name]).issued(by=PROGRAM)
        assert [(operation.name, operation.num_bytes) for operation in issued] == asked(name, rank, size)
        for operation in issued:
            assert (operation.rank, operation.group) == (rank, tuple(range(size)))
            assert operation.place.file == "programs/programs_traced.py"
            assert operation.place.function in (name, "reduced")


def test_roots_and_reductions_are_told(ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        of_reduce = ran.trace.of(rank, ran.number["reduce"]).issued(by=PROGRAM)
        assert [operation.root for operation in of_reduce] == list(range(size))
        of_all = ran.trace.of(rank, ran.number["all_reduce"]).issued(by=PROGRAM)
        assert [operation.reduce_op for operation in of_all] == ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]
        assert [str(operation.reads[0]) for operation in of_all] == ["float32 (4,)"] * 5


def test_object_collectives_are_the_collectives_that_torch_makes_of_them(ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        issued = ran.trace.of(rank, ran.number["objects"]).issued(by=PROGRAM)
        kinds = [operation.name for operation in issued]
        assert kinds == ["all_gather"] * 2 + ["broadcast"] * 2 + ["all_gather", "gather"] + kinds[6:]
        assert set(kinds[6:]) == {"broadcast", "scatter"}
        longest = max(values["object_bytes"] for values in ran.values)
        assert issued[1].num_bytes == longest, "each gives as much as the longest needs"


def test_operations_start_in_one_order(ran: Ran) -> None:
    """The n-th collective of each rank met the n-th of every other; all have started."""
    size = len(ran.values)
    counts = [0] * size
    for operations in ran.trace.met:
        assert sorted(operation.rank for operation in operations) == list(range(size))
        for operation in operations:
            assert operation.seq == counts[operation.rank]
            counts[operation.rank] += 1
        assert len({operation.name for operation in operations}) == 1
    assert counts == [len(names(ran.trace.of(rank))) for rank in range(size)]
    assert ran.trace.complete


REFUSED = [
    ("RuntimeError", "all_reduce got a tensor that is not contiguous (shape (4,), strides (2,))"),
    ("RuntimeError", "broadcast got a tensor that is not contiguous (shape (3, 2), strides (1, 3))"),
    ("RuntimeError", "all_reduce with PREMUL_SUM is not there on a CPU"),
    ("RuntimeError", "all_reduce with AVG divides, and torch.int64 has no fractions"),
    ("RuntimeError", "broadcast: the root {size} is no rank of a group of {size}"),
    ("RuntimeError", "all_gather needs one tensor for each rank of the group ({size}) as its output; it got {more}"),
    ("RuntimeError", "it got {more} input and {more} output split sizes"),
    ("RuntimeError", "all_gather_into_tensor of float32 (4,) needs an output of shape ({four},), not ({size}, 4)"),
    ("RuntimeError", "No device associated with the default pg"),
]


@pytest.mark.parametrize(("number", "error", "message"), [(n, *told) for n, told in enumerate(REFUSED)])
def test_refusals_come_out_of_the_call_on_every_rank(number: int, error: str, message: str, ran: Ran) -> None:
    size = len(ran.values)
    for values in ran.values:
        outcome = values["refusals"][number]
        assert error in outcome["raised"], outcome
        assert message.format(size=size, more=size + 1, four=4 * size) in outcome["message"]
