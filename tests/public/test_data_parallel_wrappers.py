"""Public checks of the four wrappers of data_parallel.py: each has its own."""

from __future__ import annotations

from typing import Any

from grader.checking import Check, PerRank, Slip, check, expect
from grader.checking.show import value_text
from tests.public.runs.wrapper_overlap import keep_in_flight
from tests.public.runs.wrapper_sessions import Builder, accumulation, dtypes, missing, several_backwards, steps
from tests.public.runs.wrapper_training import train
from tests.public.runs.wrappers import follow, parameters

REFUSE_FIRST = "look at bucket_bytes before the module is broadcast, on every rank alike"
MEAN = (
    "After synchronize_gradients() of {} each gradient is the mean over ranks of .grad, the same bits on every rank, "
    "by one all-reduce for each"
)
TRAINED_TOO = "AdamW steps on shards of different sizes, one of them empty, equal those of one process and all rows"
TRAINED = (
    "Five AdamW steps with {}, from different weights on each rank, equal those of one process with rank 0's weights"
)


@check(
    "data_parallel",
    points=2,
    statement=f"{MEAN.format('NaiveDDP')} trainable parameter, in every step and after several backwards.",
    worlds=(1, 2, 4),
    needs=("NaiveDDP",),
)
def test_naive_gradients(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "NaiveDDP", [*steps(make), *several_backwards(make)], counted=True)


@check(
    "data_parallel",
    points=1,
    statement=f"{TRAINED.format('NaiveDDP')} and all rows.",
    worlds=(4,),
    needs=("NaiveDDP",),
)
def test_naive_training(check: Check) -> None:
    for size in check.worlds:
        train(check, size, "NaiveDDP", rows=[3] * size)


@check(
    "data_parallel",
    points=1,
    statement="With NaiveDDP a missing gradient counts as zeros, also where only some ranks lack it; gradients of "
    "frozen parameters stay as they are, and tied ones count once.",
    worlds=(2, 4),
    needs=("NaiveDDP",),
)
def test_naive_missing_gradients(check: Check) -> None:
    for size in check.worlds:
        follow(check, size, "NaiveDDP", missing(Builder(check, size)))


@check(
    "data_parallel",
    points=1,
    statement="Inside no_sync() of NaiveDDP gradients only accumulate, nothing is sent and synchronize_gradients() is "
    "a RuntimeError; the next one outside sends all; no_sync() may be nested, and ends with an exception too.",
    worlds=(2,),
    needs=("NaiveDDP",),
    core=False,
)
def test_naive_no_sync(check: Check) -> None:
    for size in check.worlds:
        follow(check, size, "NaiveDDP", accumulation(Builder(check, size)))


@check(
    "data_parallel",
    points=2,
    statement=f"{MEAN.format('FlatDDP')} dtype, in every step, after several backwards and for mixed dtypes.",
    worlds=(1, 4),
    needs=("FlatDDP",),
)
def test_flat_gradients(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "FlatDDP", [*steps(make), *several_backwards(make), *dtypes(make)], counted=True)


@check(
    "data_parallel",
    points=1,
    statement=f"{TRAINED.format('FlatDDP')} and all rows.",
    worlds=(4,),
    needs=("FlatDDP",),
)
def test_flat_training(check: Check) -> None:
    for size in check.worlds:
        train(check, size, "FlatDDP", rows=[3] * size)


@check(
    "data_parallel",
    points=1,
    statement=f"{MEAN.format('OverlappedDDP')} trainable parameter, in reverse order in whatever order ranks use them; "
    f"{TRAINED_TOO}.",
    worlds=(2, 4),
    needs=("OverlappedDDP",),
    core=False,
)
def test_overlapped_gradients(check: Check) -> None:
    for size in check.worlds:
        make = Builder(check, size)
        follow(check, size, "OverlappedDDP", [*steps(make), *dtypes(make)], counted=True)
    train(check, max(check.worlds), "OverlappedDDP", rows=[4, 1, 0, 2])


@check(
    "data_parallel",
    points=2,
    statement="OverlappedDDP issues each gradient's all-reduce during backward, as soon as it is ready and those "
    "before it in reverse order are issued, and waits for none before backward has computed its last gradient.",
    worlds=(2, 4),
    needs=("OverlappedDDP",),
    core=False,
)
def test_overlapped_in_flight(check: Check) -> None:
    keep_in_flight(check, "OverlappedDDP")


@check(
    "data_parallel",
    points=1,
    statement=f"{MEAN.format('BucketedDDP')} of .buckets in their order, which are those of plan_buckets; {TRAINED_TOO}"
    "; a bucket_bytes below 1 is a ValueError before anything is sent.",
    worlds=(1, 4),
    needs=("BucketedDDP", "plan_buckets"),
    core=False,
)
def test_bucketed_gradients(check: Check) -> None:
    for size in check.worlds:
        sessions = []
        for bucket_bytes in (1, 48, 10**6):  # each parameter alone, some together, all together
            make = Builder(check, size, {"bucket_bytes": bucket_bytes})
            sessions += [*steps(make), *dtypes(make)]
        follow(check, size, "BucketedDDP", sessions, counted=True)
    _check_buckets(check)
    train(check, max(check.worlds), "BucketedDDP", rows=[2, 0, 1, 4], options={"bucket_bytes": 120})
    _check_refused_sizes(check, max(check.worlds))


def _check_buckets(check: Check) -> None:
    """`.buckets` against the submission's own plan, which another check judges."""
    of = parameters(check, {"a": (4,), "b": (2, 3), "c": (5,), "d": (), "e": (1,)})
    sizes = [1, 20, 40, 10**6]
    named = [f"BucketedDDP(module, {size})" for size in sizes]
    inputs: dict[str, Any] = {"parameters": of, "frozen": ["c"], "bucket_bytes": sizes}
    (values,) = check.run(1, "data_parallel.buckets", cases=named, **inputs)
    for value, what in zip(values, named, strict=True):
        came = expect.mapping(value, "buckets", "plan", what=what, rank=0)
        what = f"{what}.buckets, by the names of the parameters,"
        expect.true(
            value_text(came["buckets"]) == value_text(came["plan"]),
            f"{what} are not those of plan_buckets",
            expected=value_text(came["plan"]),
            actual=value_text(came["buckets"]),
            help="plan the trainable parameters with the bucket_bytes that was given, and keep the plan as it is",
        )
        buckets = came["buckets"] if isinstance(came["buckets"], list) else []
        in_order = [name for bucket in buckets if isinstance(bucket, list) for name in bucket]
        what = f"{what} one after the other: the trainable parameters in reverse,"
        expect.same(in_order, ["e", "d", "b", "a"], what=what, rank=0)


def _check_refused_sizes(check: Check, size: int) -> None:
    import torch

    weights = [parameters(check, {f"{rank}": (2, 3)})[f"{rank}"] for rank in range(size)]
    sizes = [0, -1]
    named = [f"BucketedDDP(module, {bucket_bytes})" for bucket_bytes in sizes]
    inputs: dict[str, Any] = {"weight": PerRank(weights), "bucket_bytes": sizes}
    values = check.run(size, "data_parallel.refuse_bucket_bytes", cases=named, **inputs)
    total = torch.tensor([size * (size + 1) / 2])
    for rank in range(size):
        for value, what in zip(values[rank], named, strict=True):
            came = expect.mapping(value, "raised", "weight", "sum", what=what, rank=rank)
            expect.raised(came, "ValueError", what=what, rank=rank)
            of_weight = f"the weight after {what}, which must send nothing,"
            sent = [Slip("the weight of rank 0: it was broadcast before the refusal", REFUSE_FIRST, weights[0])]
            expect.same(came["weight"], weights[rank], what=of_weight, rank=rank, outside_autograd=False, slips=sent)
            expect.same(came["sum"], total, what=f"an all-reduce after {what}", rank=rank)
