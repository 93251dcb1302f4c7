"""Hidden checks of tensor_parallel.py: shards and conjugates of any number of columns, layout and group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grader.checking import Check, check
from tests.public.runs import cases
from tests.public.runs.conjugates import Use, copy_use, gather_use, refused_gather, run_uses
from tests.public.runs.shards import Shard, in_other_layouts, run_shards, shards


@check(
    "tensor_parallel",
    points=1,
    statement="shard_columns splits any number of columns of any tensor by the uneven rule, and raises a ValueError "
    "for a rank that is out of range or a tensor without dimensions.",
    needs=("shard_columns",),
    core=False,
)
def test_shard_columns_of_any_number(check: Check) -> None:
    weight, number = cases.tensor(check, 0, (3, 7)), cases.tensor(check, 0, ())
    run_shards(
        check,
        [
            *shards(check, (3, 7), 3),
            *shards(check, (2, 3), 5, "int64"),
            *shards(check, (11,), 4, "float16"),
            *shards(check, (2, 2, 7), 5, "float64"),
            *shards(check, (0, 5), 2),
            *shards(check, (3, 0), 2),
            *in_other_layouts(shards(check, (3, 7), 3)),
            Shard(weight, -1, 3, refused=True, naming=["-1"]),
            Shard(weight, 3, 3, refused=True, naming=["3"]),
            Shard(number, 0, 2, refused=True),
        ],
    )


@check(
    "tensor_parallel",
    points=1,
    statement="copy_to_shards sums gradients of any layout, in any group, and leaves the gradient that it is given as "
    "it is: others get the same one.",
    worlds=(3, 5),
    needs=("copy_to_shards",),
    core=False,
)
def test_copy_to_shards_of_any_layout(check: Check) -> None:
    for size in check.worlds:
        uses = [
            replace(copy_use(check, size, (3, 4)), beside=True),
            *copy_use(check, size, (4, 3, 2), "float64").in_other_layouts(),
            copy_use(check, size, (0, 3)),
            *in_groups(size, lambda group: copy_use(check, len(group), (3, 4), group=group)),
        ]
        run_uses(check, size, "copy_to_shards", uses)


@check(
    "tensor_parallel",
    points=1,
    statement="gather_for_sharded takes any number of columns, any layout and any group, and raises a ValueError "
    "before it sends if a rank passes other columns than its own of full_size.",
    worlds=(3, 5),
    needs=("gather_for_sharded",),
    core=False,
)
def test_gather_for_sharded_of_any_columns(check: Check) -> None:
    for size in check.worlds:
        run_uses(check, size, "gather_for_sharded", uneven_uses(check, size, "gather_for_sharded"))


@check(
    "tensor_parallel",
    points=1,
    statement="gather_for_replicated takes any number of columns, any layout and any group, and raises a ValueError "
    "before it sends if a rank passes other columns than its own of full_size.",
    worlds=(3, 5),
    needs=("gather_for_replicated",),
    core=False,
)
def test_gather_for_replicated_of_any_columns(check: Check) -> None:
    for size in check.worlds:
        run_uses(check, size, "gather_for_replicated", uneven_uses(check, size, "gather_for_replicated"))


def in_groups(size: int, use_of: Callable[[tuple[int, ...]], Use]) -> list[Use]:
    """The use in a group of two ranks that leaves out rank 0, and in one of a single rank."""
    return [use_of((1, size - 1)), use_of((size - 1,))]


def uneven_uses(check: Check, size: int, function: str) -> list[Use]:
    """Uses of a gather that end with two that it refuses."""
    return [
        gather_use(check, size, function, (3,), 2 * size + 1),
        gather_use(check, size, function, (2, 3), 2 * size - 1, "float64"),
        gather_use(check, size, function, (3,), size - 1),
        gather_use(check, size, function, (), 1),
        gather_use(check, size, function, (0,), 7),
        *gather_use(check, size, function, (3, 2), 2 * size + 2).in_other_layouts(),
        *in_groups(size, lambda group: gather_use(check, len(group), function, (3,), 5, group=group)),
        refused_gather(check, size, owned=7, expected=9),
        refused_gather(check, size, owned=9, expected=7),
    ]
