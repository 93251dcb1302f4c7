"""Public checks of tensor_parallel.py: the shards, and the three functions that are conjugates, of even columns."""

from __future__ import annotations

from grader.checking import Check, check
from tests.public.runs.conjugates import copy_use, gather_use, large, run_uses
from tests.public.runs.shards import run_shards, shards

LEADING_AND_DTYPES = (((3,), "float32"), ((2, 3), "float64"), ((), "float32"))


@check(
    "tensor_parallel",
    points=1,
    statement="shard_columns gives a rank its own contiguous copy of W equal parts of the last dimension, of a weight "
    "and of a bias; nothing is sent.",
    needs=("shard_columns",),
)
def test_shard_columns(check: Check) -> None:
    run_shards(
        check,
        [
            *shards(check, (3, 8), 1),
            *shards(check, (3, 8), 2),
            *shards(check, (2, 8), 4),
            *shards(check, (8,), 4),
            *shards(check, (5, 4), 2, "float64"),
        ],
    )


@check(
    "tensor_parallel",
    points=1,
    statement="copy_to_shards returns x on every rank, and sends nothing; backward, x gets the sum over ranks of their "
    "gradients, for what one all-reduce sends.",
    worlds=(1, 2, 4),
    needs=("copy_to_shards",),
)
def test_copy_to_shards(check: Check) -> None:
    for size in check.worlds:
        shapes = (((3, 4), "float32"), ((2, 3, 4), "float64"), ((5,), "float32"))
        uses = [copy_use(check, size, shape, dtype) for shape, dtype in shapes]
        uses += [large(check, size, "copy_to_shards")] if size == 4 else []
        run_uses(check, size, "copy_to_shards", uses)


@check(
    "tensor_parallel",
    points=1,
    statement="gather_for_sharded returns all columns on every rank; backward, each rank's columns get the sum over "
    "ranks of their gradients; it sends no more than one gather and one sum need.",
    worlds=(1, 2, 4),
    needs=("gather_for_sharded",),
)
def test_gather_for_sharded(check: Check) -> None:
    for size in check.worlds:
        uses = [
            gather_use(check, size, "gather_for_sharded", leading, 2 * size, dtype)
            for leading, dtype in LEADING_AND_DTYPES
        ]
        uses += [large(check, size, "gather_for_sharded")] if size == 4 else []
        run_uses(check, size, "gather_for_sharded", uses)


@check(
    "tensor_parallel",
    points=1,
    statement="gather_for_replicated returns all columns on every rank, for what one gather sends; backward, each "
    "rank's columns get their slice of the gradient, once, and nothing is sent.",
    worlds=(1, 2, 4),
    needs=("gather_for_replicated",),
)
def test_gather_for_replicated(check: Check) -> None:
    for size in check.worlds:
        uses = [
            gather_use(check, size, "gather_for_replicated", leading, 2 * size, dtype)
            for leading, dtype in LEADING_AND_DTYPES
        ]
        uses += [large(check, size, "gather_for_replicated")] if size == 4 else []
        run_uses(check, size, "gather_for_replicated", uses)
