"""Public checks of the functions of data_parallel.py, and of what the four wrappers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, check, expect
from tests.public.oracles import data_parallel as oracle
from tests.public.runs import cases

if TYPE_CHECKING:
    from torch import Tensor


@check(
    "data_parallel",
    points=1,
    statement="shard_batch returns the rows that the rank owns by the uneven rule, any number and also none, and "
    "raises ValueError for a rank outside the world.",
    needs=("shard_batch",),
)
def test_shard_batch(check: Check) -> None:
    from grader.given import piece_range

    calls: list[dict[str, Any]] = [
        {"shape": shape, "dtype": dtype, "rank": rank, "world_size": size, "transposed": transposed}
        for shape, dtype, size, transposed in [
            ((8, 3), "float32", 4, False),
            ((6,), "int64", 2, False),
            ((7, 3), "float32", 4, True),
            ((5, 2, 2), "float64", 3, False),
            ((2, 3), "float32", 4, False),
            ((0, 3), "int64", 2, False),
            ((3, 1), "float32", 1, False),
        ]
        for rank in range(size)
    ]
    wrong: list[dict[str, Any]] = [
        {"shape": (4, 2), "dtype": "float32", "rank": rank, "world_size": 4, "transposed": False} for rank in (-1, 4, 7)
    ]
    batches = [cases.tensor(check, 0, call["shape"], call["dtype"], call["shape"]) for call in calls + wrong]
    named = [
        f"shard_batch(batch of {call['shape'][0]} rows, {call['rank']}, {call['world_size']})" for call in calls + wrong
    ]
    values = check.run(1, "data_parallel.shard_batch", joined=False, cases=named, batches=batches, calls=calls + wrong)
    for number, call in enumerate(calls + wrong):
        what, came = named[number], expect.mapping(values[0][number], "result", "input", what=named[number], rank=0)
        if call in wrong:
            expect.raised(came["result"], "ValueError", what=what, rank=0)
            continue
        rows = piece_range(call["shape"][0], call["rank"], call["world_size"])
        result = expect.returned(came["result"], what=what, rank=0)
        expect.same(result, batches[number][rows.start : rows.stop], what=what, rank=0, contiguous=False)
        expect.same(came["input"], batches[number], what=f"the batch after {what}", rank=0, contiguous=False)


def module_tensors(check: Check, rank: int, path: object) -> dict[str, Tensor]:
    """Parameters and buffers for the programs' `Outer`, of this rank's own values."""
    shapes = {
        "weight": ((3, 4), "float32"),
        "gain": ((5,), "float16"),
        "count": ((), "int64"),
        "inner.frozen": ((2, 2), "float64"),
        "inner.mask": ((9,), "bool"),
        "inner.cache": ((0, 3), "float32"),
    }
    if path != "no elements":
        shapes["inner.cache"] = ((2, 3), "float32")
    return {name: cases.tensor(check, rank, shape, dtype, (path, name)) for name, (shape, dtype) in shapes.items()}


@check(
    "data_parallel",
    points=1,
    statement="broadcast_module gives every rank the parameters and buffers of rank src, in place: frozen ones and "
    "buffers outside the state_dict too; a src outside the group is a ValueError on every rank.",
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
                    expect.same(after[name], tensor, what=f"'{name}' after {what}", rank=rank)
                _expect_in_place(came, wanted, what=what, rank=rank)
                _expect_sum(came["sum"], size, what=what, rank=rank)


def _expect_in_place(came: dict[str, Any], names: dict[str, Tensor], *, what: str, rank: int) -> None:
    in_place = expect.mapping(came.get("in place"), *names, what=what, rank=rank)
    for name in names:
        expect.true(
            in_place[name] is True,
            f"rank {rank}: {what} put another object or other memory in place of '{name}'",
            help="write into the tensor that is there (broadcast it, or copy_ into it)",
        )
    expect.true(came.get("requires_grad") is True, f"rank {rank}: {what} changed requires_grad")
    expect.true(came.get("tied") is True, f"rank {rank}: {what} untied two names of one parameter")


def _expect_sum(value: Any, size: int, *, what: str, rank: int) -> None:
    import torch

    total = torch.tensor([size * (size + 1) / 2])
    expect.same(value, total, what=f"an all-reduce after {what}, which no other message may meet,", rank=rank)


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
        for rank in range(size):
            for number, what in enumerate(named):
                came = expect.mapping(values[rank][number], "outcome", "sum", what=what, rank=rank)
                rows = sum(by_case[number]) if number < len(by_case) else 0
                if rows == 0:
                    expect.raised(came["outcome"], "ValueError", what=what, rank=rank)
                else:
                    scale = expect.returned(came["outcome"], what=what, rank=rank)
                    expect.number(scale, size / rows, what=what, rank=rank)
                _expect_sum(came["sum"], size, what=what, rank=rank)


@check(
    "data_parallel",
    points=1,
    statement="plan_buckets takes the parameters in reverse and closes a bucket where the next one would take it over "
    "bucket_bytes or has another dtype or device; bucket_bytes below 1 is a ValueError.",
    needs=("plan_buckets",),
    core=False,
)
def test_plan_buckets(check: Check) -> None:
    import torch

    f32, f64, bf16, cpu = torch.float32, torch.float64, torch.bfloat16, "cpu"
    lists: list[tuple[str, list[oracle.Described], list[int]]] = [
        ("the docstring's example", [((2,), f32, cpu), ((5,), f32, cpu), ((1,), f32, cpu), ((1,), f32, cpu)], [12]),
        ("40, 20, 30, 100 and 10 bytes", [((n,), bf16, cpu) for n in (20, 10, 15, 50, 5)], [1, 10, 49, 50, 51, 1000]),
        ("no parameters", [], [8]),
        ("one parameter", [((3, 5), f64, cpu)], [1, 119, 120]),
        ("a scalar and a matrix", [((), f32, cpu), ((2, 3), f32, cpu)], [4, 24, 27, 28]),
        ("alternating dtypes", [((2,), f32, cpu), ((2,), bf16, cpu), ((2,), bf16, cpu), ((2,), f32, cpu)], [8, 10**9]),
        ("two devices", [((2,), f32, cpu), ((2,), f32, "meta"), ((2,), f32, "meta")], [10**9]),
        ("mebibytes", [((2**18,), f32, "meta"), ((2**18,), f32, "meta"), ((2**18,), f32, "meta")], [2 * 2**20]),
    ]
    generator = check.generator("random")
    for number in range(12):
        sizes = torch.randint(1, 40, (9,), generator=generator).tolist()
        kinds = torch.randint(0, 4, (9,), generator=generator).tolist()
        limit = int(torch.randint(30, 400, (1,), generator=generator))
        tensors: list[oracle.Described] = [
            ((n,), bf16 if kind == 0 else f32, cpu) for n, kind in zip(sizes, kinds, strict=True)
        ]
        lists.append((f"random list {number}", tensors, [limit]))
    calls = [(name, tensors, limit) for name, tensors, limits in lists for limit in limits]
    calls += [("too small", lists[0][1], limit) for limit in (0, -8)]
    named = [f"plan_buckets({name}, bucket_bytes={limit})" for name, _, limit in calls]
    sent = [{"tensors": tensors, "bucket_bytes": limit} for _, tensors, limit in calls]
    values = check.run(1, "data_parallel.plan_buckets", joined=False, cases=named, calls=sent)
    for value, what, (name, tensors, limit) in zip(values[0], named, calls, strict=True):
        if name == "too small":
            expect.raised(value, "ValueError", what=what, rank=0)
        else:
            what = f"{what}, parameters of {[oracle.num_bytes(tensor) for tensor in tensors]} bytes,"
            expect.same(expect.returned(value, what=what, rank=0), oracle.plan(tensors, limit), what=what, rank=0)


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
    values = check.run(size, "data_parallel.wrap", cases=STAGES, **sent)
    for rank in range(size):
        made, shown, refused, called, passed_on, kept = values[rank]
        made = expect.mapping(made, "weight", "count", what=STAGES[0], rank=rank)
        for name, root in [("weight", weight[0]), ("count", count[0])]:
            what = f"'{name}' after {STAGES[0]}, which gives every rank the values of rank 0,"
            expect.same(made[name], root, what=what, rank=rank, outside_autograd=False)
        named = ["module.weight", "module.count"]
        facts = {"is a DDP": True, "module is the module": True, "keys": named, "parameters": named[:1]}
        _expect_facts(shown, facts, what=STAGES[1], rank=rank)
        advice = "DDP is abstract: keep ABC and @abstractmethod, and give each of the four its synchronize_gradients()"
        expect.true(refused is True, f"rank {rank}: DDP(module) was made", expected="an error", help=advice)
        _expect_facts(called, {"hooks": ["forward hook"], "label": "kept"}, what=STAGES[3], rank=rank)
        expect.close(called.get("y"), x[rank] * weight[0] + count[0], what=f"{STAGES[3]}['y']", rank=rank)
        import torch

        facts = {"in eval": False, "in train": True, "dtypes": [torch.float64, torch.float64]}
        _expect_facts(passed_on, facts, what=STAGES[4], rank=rank)
        what = "the buffer that this rank changed after construction"
        expect.same(kept, later[rank], what=f"{what}, seen after a step,", rank=rank)


def _expect_facts(value: Any, facts: dict[str, Any], *, what: str, rank: int) -> None:
    came = expect.mapping(value, *facts, what=what, rank=rank)
    for name, fact in facts.items():
        expect.same(came[name], fact, what=f"{what}: {name!r}", rank=rank)
