"""Public checks of the functions of data_parallel.py, and of what the four wrappers have in common."""

from __future__ import annotations

from functools import partial
from typing import Any

from grader.checking import Check, PerRank, Slip, Slips, check, expect
from tests.public.runs import cases
from tests.public.runs.broadcasts import (
    KINDS,
    compare_sent,
    expect_in_place,
    expect_sent_once,
    expect_sum,
    module_tensors,
    of_ranks,
    under,
)
from tests.public.runs.bucket_plans import requests, run_requests
from tests.public.runs.mistakes import explaining
from tests.public.runs.row_shares import Shard, wrong_scales, wrong_shards
from tests.public.runs.wrapper_errors import AS_MODULE, explaining_errors


@check(
    "data_parallel",
    points=1,
    statement="shard_batch returns the rows that the rank owns by the uneven rule, any number and also none, and "
    "raises ValueError for a rank outside the world.",
    needs=("shard_batch",),
)
def test_shard_batch(check: Check) -> None:
    from grader.given import piece_range

    shapes: list[tuple[tuple[int, ...], str, int, bool]] = [
        ((8, 3), "float32", 4, False),
        ((6,), "int64", 2, False),
        ((7, 3), "float32", 4, True),
        ((5, 2, 2), "float64", 3, False),
        ((2, 3), "float32", 4, False),
        ((0, 3), "int64", 2, False),
        ((3, 1), "float32", 1, False),
    ]
    calls = [
        Shard(cases.tensor(check, 0, shape, dtype, shape), rank, size, transposed)
        for shape, dtype, size, transposed in shapes
        for rank in range(size)
    ]
    refused = cases.tensor(check, 0, (4, 2), path=(4, 2))
    calls += [Shard(refused, rank, 4, refused=True) for rank in (-1, 4, 7)]
    sent = [{"rank": call.rank, "world_size": call.world_size, "transposed": call.transposed} for call in calls]
    batches, named = [call.batch for call in calls], [call.title for call in calls]
    (values,) = check.run(1, "data_parallel.shard_batch", joined=False, cases=named, batches=batches, calls=sent)
    results = {number: under(value, "result", "value") for number, value in enumerate(values)}
    for number, (call, what) in enumerate(zip(calls, named, strict=True)):
        came = expect.mapping(values[number], "result", "input", what=what, rank=0)
        if call.refused:
            expect.raised(came["result"], "ValueError", what=what, rank=0)
            continue
        rows = piece_range(len(call.batch), call.rank, call.world_size)
        own, result = call.batch[rows.start : rows.stop], expect.returned(came["result"], what=what, rank=0)
        slips = explaining(partial(wrong_shards, calls), results, number)
        expect.same(result, own, what=what, rank=0, contiguous=False, slips=slips)
        expect.same(came["input"], call.batch, what=f"the batch after {what}", rank=0, contiguous=False)


@check(
    "data_parallel",
    points=1,
    statement="broadcast_module gives every rank the parameters and buffers of rank src, in place: frozen ones and "
    "buffers outside the state_dict too, and tied ones once; a src outside the group is a ValueError on every rank.",
    worlds=(2, 4),
    needs=("broadcast_module",),
)
def test_broadcast_module(check: Check) -> None:
    for size in check.worlds:
        sources = [*range(size), 0, -1, size]
        paths = [*range(size), "no elements", "wrong", "wrong"]
        tensors = [[module_tensors(check, rank, path) for path in paths] for rank in range(size)]
        named = [f"broadcast_module(module, src={src})" for src in sources]
        values = check.run(
            size, "data_parallel.broadcast_module", cases=named, sources=sources, tensors=PerRank(tensors)
        )
        for rank in range(size):
            for number, src in enumerate(sources):
                what, allowed = named[number], 0 <= src < size
                came = expect.mapping(values[rank][number], "outcome", "tensors", "sum", what=what, rank=rank)
                if allowed:
                    expect.returned(came["outcome"], what=what, rank=rank)
                else:
                    expect.raised(came["outcome"], "ValueError", what=what, rank=rank)
                wanted = tensors[src if allowed else rank][number]
                after = expect.mapping(came["tensors"], *wanted, what=what, rank=rank)
                for name, tensor in wanted.items():
                    of_name = f"{KINDS[name]} after {what}"
                    if not allowed:
                        expect.same(after[name], tensor, what=of_name, rank=rank)
                        continue
                    sent = of_ranks(values, number, "tensors", name)
                    before = {one: tensors[one][number][name] for one in range(size)}
                    compare_sent(sent, before, src, what=of_name, rank=rank)
                expect_in_place(came, wanted, what=what, rank=rank)
                if allowed:
                    sizes = {name: tensor.nbytes for name, tensor in wanted.items()}
                    expect_sent_once(check, number, sizes, src, what=what, rank=rank)
                expect_sum(came["sum"], size, what=what, rank=rank)


@check(
    "data_parallel",
    points=1,
    statement="loss_scale is the world size over the rows of all ranks, as a float, also where ranks hold different "
    "numbers of rows or none; no rows on any rank is a ValueError on every rank.",
    worlds=(1, 2, 4),
    needs=("loss_scale",),
)
def test_loss_scale(check: Check) -> None:
    for size in check.worlds:
        by_case = [[6] * size, [7, 1, 0, 5][:size], [0, 0, 0, 3][-size:], [0] * size]
        named = [f"loss_scale with rows {rows} on the ranks" for rows in by_case]
        own = [[rows[rank] for rows in by_case] for rank in range(size)]
        if size == 1:  # where no peer can wait for an answer
            own[0].append(-1)
            named.append("loss_scale with rows [-1]")
        values = check.run(size, "data_parallel.loss_scale", cases=named, rows=PerRank(own))
        scales = {
            (rank, number): scale
            for number in range(len(by_case))
            for rank, scale in of_ranks(values, number, "outcome", "value").items()
        }
        for rank in range(size):
            for number, what in enumerate(named):
                came = expect.mapping(values[rank][number], "outcome", "sum", what=what, rank=rank)
                rows = sum(by_case[number]) if number < len(by_case) else 0
                if rows == 0:
                    expect.raised(came["outcome"], "ValueError", what=what, rank=rank)
                else:
                    scale = expect.returned(came["outcome"], what=what, rank=rank)
                    slips = explaining(partial(wrong_scales, by_case, size), scales, (rank, number))
                    by_rank = {one: scales[one, number] for one in range(size)}
                    with expect.by_rank(by_rank, dict.fromkeys(by_rank, size / rows)):
                        expect.number(scale, size / rows, what=what, rank=rank, slips=slips)
                expect_sum(came["sum"], size, what=what, rank=rank)


@check(
    "data_parallel",
    points=1,
    statement="plan_buckets takes the parameters in reverse and closes a bucket where the next one would take it over "
    "bucket_bytes or has another dtype or device; bucket_bytes below 1 is a ValueError.",
    needs=("plan_buckets",),
    core=False,
)
def test_plan_buckets(check: Check) -> None:
    run_requests(check, requests(check))


ONCE = "parameters and buffers are broadcast when the wrapper is made, and never later"
CALL = "forward returns self.module(*args, **kwargs)"
STAGES = (
    "NaiveDDP(module)",
    "what the wrapper shows of the module",
    "DDP(module)",
    "model(x, label=...)",
    "eval(), train() and to()",
    "a step after construction",
)


@check(
    "data_parallel",
    points=1,
    statement="A wrapper gives every rank the parameters and buffers of rank 0 once, when it is made; it passes on "
    "calls, train, eval, to and the state_dict of its .module; DDP itself cannot be made.",
    worlds=(2,),
    needs=("DDP", "NaiveDDP"),
)
def test_wrapper(check: Check) -> None:
    (size,) = check.worlds
    weight = [cases.tensor(check, rank, (3,), path="weight") for rank in range(size)]
    count = [cases.tensor(check, rank, (3,), path="count") for rank in range(size)]
    later = [cases.tensor(check, rank, (3,), path="later") for rank in range(size)]
    x = [cases.tensor(check, rank, (2, 3), path="x") for rank in range(size)]
    inputs = {"weight": weight, "count": count, "later_count": later, "x": x}
    sent: dict[str, Any] = {name: PerRank(by_rank) for name, by_rank in inputs.items()}
    with explaining_errors("NaiveDDP"):
        values = check.run(size, "data_parallel.wrap", cases=STAGES, **sent)
    for rank in range(size):
        made, shown, refused, called, passed_on, kept = values[rank]
        made = expect.mapping(made, "weight", "count", what=STAGES[0], rank=rank)
        for name, before in [("weight", weight), ("count", count)]:
            what = f"{KINDS[name]} after {STAGES[0]}, which gives every rank the values of rank 0,"
            by_rank = of_ranks(values, 0, name)
            compare_sent(by_rank, dict(enumerate(before)), 0, what=what, rank=rank, outside_autograd=False)
        expect.true(shown is not None, f"rank {rank}: {STAGES[0]} is no nn.Module", help=AS_MODULE)
        named = ["module.weight", "module.count"]
        facts = {"is a DDP": True, "module is the module": True, "keys": named, "parameters": named[:1]}
        unseen = [Slip("none: nn.Module does not see the module that is wrapped", AS_MODULE, [])]
        _expect_facts(shown, facts, what=STAGES[1], rank=rank, slips=unseen)
        advice = "DDP is abstract: keep ABC and @abstractmethod, and give each of the four its synchronize_gradients()"
        expect.true(refused is True, f"rank {rank}: DDP(module) was made", expected="an error", help=advice)
        bypassed = [Slip("none: the module's own call, which runs its hooks, was bypassed", CALL, [])]
        _expect_facts(called, {"hooks": ["forward hook"], "label": "kept"}, what=STAGES[3], rank=rank, slips=bypassed)
        expect.close(called.get("y"), x[rank] * weight[0] + count[0], what=f"{STAGES[3]}['y']", rank=rank)
        import torch

        facts = {"in eval": False, "in train": True, "dtypes": [torch.float64, torch.float64]}
        _expect_facts(passed_on, facts, what=STAGES[4], rank=rank)
        what = "the buffer that this rank changed after construction"
        again = [Slip("the values of rank 0: buffers were broadcast once more", ONCE, later[0])]
        expect.same(kept, later[rank], what=f"{what}, seen after a step,", rank=rank, slips=again)


def _expect_facts(value: Any, facts: dict[str, Any], *, what: str, rank: int, slips: Slips = ()) -> None:
    came = expect.mapping(value, *facts, what=what, rank=rank)
    for name, fact in facts.items():
        expect.same(came[name], fact, what=f"{what}: {name!r}", rank=rank, slips=slips)
