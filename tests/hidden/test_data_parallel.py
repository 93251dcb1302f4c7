"""Hidden checks of data_parallel.py."""

from __future__ import annotations

from functools import partial
from typing import Any

from grader.checking import Check, PerRank, check, expect
from tests.hidden.runs.wrapper_sessions import (
    frozen_later,
    in_group,
    layouts,
    second_backwards,
    wrapped_again,
)
from tests.public.runs import cases
from tests.public.runs.broadcasts import compare_sent, expect_sent_once, of_ranks, out_of_place, under
from tests.public.runs.mistakes import explaining
from tests.public.runs.row_shares import wrong_scales
from tests.public.runs.wrapper_overlap import BUCKET_BYTES, keep_in_flight
from tests.public.runs.wrapper_sessions import Builder, accumulation, dtypes, missing, several_backwards, steps
from tests.public.runs.wrapper_traffic import within
from tests.public.runs.wrappers import follow

MISSING = (
    "With {} a missing gradient counts as zeros, also where only some ranks lack it; gradients of parameters that were "
    "frozen at construction stay as they are, and tied ones count once"
)
NO_SYNC = (
    "Inside no_sync() of {} gradients only accumulate, nothing is sent and synchronize_gradients() is a RuntimeError; "
    "the next one outside sends all, with or without a backward outside"
)
SECOND = (
    "outside, a second backward before synchronize_gradients() is a RuntimeError that says what to do, whatever "
    "parameters it uses"
)
AGAIN = "a module whose wrapper is gone may be wrapped again"
GROUP = (1, 2, 4)


@check(
    "data_parallel",
    points=1,
    statement="broadcast_module is right for tensors of any layout: views of columns, transposed memory on some ranks; "
    "memory that the module has under two names is sent once.",
    worlds=(3,),
    needs=("broadcast_module",),
)
def test_broadcast_module_layouts(check: Check) -> None:
    (size,) = check.worlds
    sources = list(range(size))
    shapes = {"table": (3, 5), "weight": (48, 64), "flipped": (2, 6)}
    tensors = [
        [
            {name: cases.tensor(check, rank, shape, path=(src, name)) for name, shape in shapes.items()}
            for src in sources
        ]
        for rank in range(size)
    ]
    named = [f"broadcast_module(module of views, src={src})" for src in sources]
    inputs: dict[str, Any] = {
        "tensors": PerRank(tensors),
        "transpose": PerRank([rank % 2 == 1 for rank in range(size)]),
    }
    values = check.run(size, "data_parallel_hidden.broadcast_layouts", cases=named, sources=sources, **inputs)
    laid = {"weight": " in transposed memory on some ranks,"}
    laid |= {"turned": " the transpose of 'weight' in its memory,", "columns": " every other column of a table,"}
    for rank in range(size):
        for src, what in zip(sources, named, strict=True):
            own, root = tensors[rank][src], tensors[src][src]
            table = own["table"].clone()
            table[:, ::2] = root["table"][:, ::2]
            wanted = {
                "weight": root["weight"],
                "turned": root["weight"].t(),
                "columns": root["table"][:, ::2],
                "row": root["weight"][1],
                "flipped": root["flipped"].t(),
                "table": table,
            }
            came = expect.mapping(values[rank][src], *wanted, "in place", "shared", what=what, rank=rank)
            for name, tensor in wanted.items():
                of_name = f"'{name}',{laid[name]} after {what}" if name in laid else f"'{name}' after {what}"
                slips = partial(out_of_place, came[name], tensor, src)
                expect.same(came[name], tensor, what=of_name, rank=rank, contiguous=False, slips=slips)
            expect.true(came["in place"] is True, f"rank {rank}: {what} put other memory in place of a tensor")
            expect.true(came["shared"] is True, f"rank {rank}: {what} parted memory that had two names")
            sizes = {name: tensor.nbytes for name, tensor in wanted.items() if name not in ("turned", "table")}
            expect_sent_once(check, src, sizes, src, what=what, rank=rank)


@check(
    "data_parallel",
    points=1,
    statement="broadcast_module, loss_scale and NaiveDDP work in any group: src is a rank in the group, rows and "
    "gradients are those of its ranks, all that is sent stays in it, and a rank outside it gets a ValueError.",
    worlds=(5,),
    needs=("broadcast_module", "loss_scale", "NaiveDDP"),
    core=False,
)
def test_groups(check: Check) -> None:
    (size,) = check.worlds
    sources = range(len(GROUP))
    weights = [[cases.tensor(check, rank, (2, 3), path=src) for src in sources] for rank in range(size)]
    rows = [40, 3, 0, 50, 4]
    of_group = [rows[member] for member in GROUP]
    named = [f"broadcast_module(module, {src}, group of ranks {list(GROUP)})" for src in sources]
    named.append(f"loss_scale(rows, group of ranks {list(GROUP)})")
    inputs: dict[str, Any] = {"weights": PerRank(weights), "rows": PerRank(rows), "members": list(GROUP)}
    with within(check, GROUP, named):
        values = check.run(size, "data_parallel_hidden.groups", cases=named, **inputs)
    for rank in range(size):
        *broadcasts, scale = values[rank]
        for src, what in zip(sources, named, strict=False):
            came = expect.mapping(broadcasts[src], "outcome", "weight", what=what, rank=rank)
            if rank in GROUP:
                with expect.helping("src is a rank in the group: 0 to the group's size - 1; pass it on as group_src"):
                    expect.returned(came["outcome"], what=what, rank=rank)
            else:
                expect.raised(came["outcome"], "ValueError", what=what, rank=rank)
            if rank in GROUP:
                sent = {one: value for one, value in of_ranks(values, src, "weight").items() if one in GROUP}
                before = {one: weights[one][src] for one in GROUP}
                compare_sent(sent, before, GROUP[src], what=f"the weight after {what}", rank=rank)
            else:
                expect.same(came["weight"], weights[rank][src], what=f"the weight after {what}", rank=rank)
        if rank in GROUP:
            right = len(GROUP) / sum(of_group)
            came = {(place, 0): under(values[member][-1], "value") for place, member in enumerate(GROUP)}
            slips = explaining(partial(wrong_scales, [of_group], size), came, (GROUP.index(rank), 0))
            value = expect.returned(scale, what=named[-1], rank=rank)
            expect.number(value, right, what=named[-1], rank=rank, slips=slips)
        else:
            expect.raised(scale, "ValueError", what=named[-1], rank=rank)
    make = Builder(check, size)
    follow(check, size, "NaiveDDP", in_group([*steps(make), *missing(make), *layouts(make)], GROUP))


@check(
    "data_parallel",
    points=1,
    statement="NaiveDDP reads at construction which parameters are trainable: later changes of requires_grad change "
    "nothing; gradients of any layout and of any number of ranks are averaged.",
    worlds=(3,),
    needs=("NaiveDDP",),
)
def test_naive_trainable(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        sessions = [*frozen_later(make), *layouts(make), *dtypes(make), *several_backwards(make)]
        follow(check, size, "NaiveDDP", sessions)


@check(
    "data_parallel",
    points=1,
    statement=f"{MISSING.format('FlatDDP')}.",
    worlds=(3,),
    needs=("FlatDDP",),
)
def test_flat_missing_gradients(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "FlatDDP", [*missing(make), *frozen_later(make), *layouts(make)])


@check(
    "data_parallel",
    points=1,
    statement=f"{NO_SYNC.format('FlatDDP')}, in any group of ranks.",
    worlds=(5,),
    needs=("FlatDDP",),
    core=False,
)
def test_flat_no_sync(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "FlatDDP", in_group(accumulation(make), GROUP))


@check(
    "data_parallel",
    points=1,
    statement=f"{MISSING.format('OverlappedDDP')}, in any group of ranks; {AGAIN}.",
    worlds=(5,),
    needs=("OverlappedDDP",),
    core=False,
)
def test_overlapped_missing_gradients(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        sessions = [*frozen_later(make), *layouts(make), *missing(make)]
        follow(check, size, "OverlappedDDP", [*sessions, *in_group(sessions, GROUP), *wrapped_again(make)])


@check(
    "data_parallel",
    points=1,
    statement=f"{NO_SYNC.format('OverlappedDDP')}; {SECOND}.",
    worlds=(3,),
    needs=("OverlappedDDP",),
    core=False,
)
def test_overlapped_accumulation(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "OverlappedDDP", [*accumulation(make), *second_backwards(make)])


@check(
    "data_parallel",
    points=1,
    statement=f"{MISSING.format('BucketedDDP')}, in buckets of any size and in any group of ranks; {AGAIN}.",
    worlds=(5,),
    needs=("BucketedDDP",),
    core=False,
)
def test_bucketed_missing_gradients(check: Check) -> None:
    for size in check.worlds:
        some, one = (Builder(check, size, {"bucket_bytes": bucket_bytes}) for bucket_bytes in (48, 10**6))
        sessions = [*frozen_later(some), *layouts(some), *missing(some)]
        sessions += [*missing(one), *in_group(sessions, GROUP), *wrapped_again(some)]
        follow(check, size, "BucketedDDP", sessions)


@check(
    "data_parallel",
    points=1,
    statement=f"{NO_SYNC.format('BucketedDDP')}; {SECOND}.",
    worlds=(3,),
    needs=("BucketedDDP",),
    core=False,
)
def test_bucketed_accumulation(check: Check) -> None:
    for size in check.worlds:
        some, one = (Builder(check, size, {"bucket_bytes": bucket_bytes}) for bucket_bytes in (48, 10**6))
        sessions = [*accumulation(some), *accumulation(one), *second_backwards(some), *second_backwards(one)]
        follow(check, size, "BucketedDDP", sessions)


@check(
    "data_parallel",
    points=2,
    statement="BucketedDDP issues each bucket's all-reduce during backward, as soon as its gradients are ready and the "
    "buckets before it are issued, and waits for none before backward has computed its last gradient.",
    worlds=(2, 4),
    needs=("BucketedDDP",),
    core=False,
)
def test_bucketed_in_flight(check: Check) -> None:
    keep_in_flight(check, "BucketedDDP", {"bucket_bytes": BUCKET_BYTES})
