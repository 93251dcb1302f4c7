"""New layers: the parameters that each rank holds, and whether they are slices of one master that rank 0 drew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, expect
from grader.checking.show import value_text
from tests.public.runs import column_traffic

if TYPE_CHECKING:
    from torch import Tensor

ONE_MASTER = "draw the whole weight on rank 0 of the group, send it to all ranks, and let each keep its own columns"


@dataclass(frozen=True)
class Construction:
    """A layer that is made on every rank.

    sizes:   in, out. options: keywords of the constructor, apart from group.
    numbers: what messages say of the random numbers that it is made from.
    seeds:   by rank of the world, from which torch's random numbers start anew; None: they go on.
    group:   the ranks of the group; None for the default group.
    """

    sizes: tuple[int, int]
    numbers: str
    seeds: Sequence[int] | None
    options: Mapping[str, Any]
    group: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        parts = [str(size) for size in self.sizes] + [f"{name}={value}" for name, value in self.options.items()]
        parts += [f"group of the ranks {list(self.group)}"] if self.group else []
        return f"ColumnParallelLinear({', '.join(parts)})"

    def members(self, size: int) -> list[int]:
        """The ranks of the world that make the layer, in the order of the group."""
        return list(range(size)) if self.group is None else list(self.group)

    def for_rank(self, rank: int) -> dict[str, Any]:
        """What this rank of the world is sent."""
        return {
            "sizes": list(self.sizes),
            "options": dict(self.options),
            "seed": None if self.seeds is None else self.seeds[rank],
            "group": None if self.group is None else list(self.group),
        }


Made = Mapping[int, Mapping[str, "Tensor"]]  # by rank of the world: its parameters, by name


def run_constructions(
    check: Check, size: int, layers: Sequence[tuple[tuple[int, int], dict[str, Any], tuple[int, ...] | None]]
) -> None:
    """Makes each (sizes, options, group) from the same and from other random numbers, in one world; compares."""
    planned = [
        construction
        for number, (sizes, options, group) in enumerate(layers)
        for construction in _four(check, size, number, sizes, options, group)
    ]
    sent = [[construction.for_rank(rank) for construction in planned] for rank in range(size)]
    titles = [f"{construction.name}, {construction.numbers}" for construction in planned]
    plans = [
        column_traffic.Plan(one.name, tuple(one.members(size)), [column_traffic.Phase("anything")]) for one in planned
    ]
    with column_traffic.compared(check, plans):
        values = check.run(size, "tensor_parallel.construct", cases=titles, layers=PerRank(sent))
        made = [
            _parameters(construction, [values[rank][number] for rank in range(size)])
            for number, construction in enumerate(planned)
        ]
        for start in range(0, len(planned), 4):
            _compare(planned[start], made[start : start + 4])


def _four(
    check: Check,
    size: int,
    number: int,
    sizes: tuple[int, int],
    options: dict[str, Any],
    group: tuple[int, ...] | None,
) -> list[Construction]:
    """Four layers; they differ in where the random numbers start."""
    import torch

    root = group[0] if group else 0
    drawn = torch.randint(1, 2**31, (2 * size,), generator=check.generator(size, number)).tolist()
    others_new = [drawn[rank] if rank == root else drawn[size + rank] for rank in range(size)]
    return [
        Construction(sizes, "random numbers alike on every rank", [drawn[root]] * size, options, group),
        Construction(sizes, "each rank with random numbers of its own", drawn[:size], options, group),
        Construction(sizes, f"rank {root}'s random numbers as before, the others' new", others_new, options, group),
        Construction(sizes, "made right after the one before", None, options, group),
    ]


def _parameters(construction: Construction, values: Sequence[Any]) -> Made:
    """The parameters of each member of the group, once their form is right; the other ranks were refused."""
    members = construction.members(len(values))
    found = {}
    for rank, value in enumerate(values):
        if rank not in members:
            what = f"{construction.name}, made outside the group,"
            expect.raised(value, "ValueError", what=what, rank=rank)
            continue
        owned = len(range(construction.sizes[1])[members.index(rank) :: len(members)])  # as many as by the rule
        shapes = {"weight": (construction.sizes[0], owned), "bias": (owned,)}
        if not construction.options.get("bias", True):
            del shapes["bias"]
        found[rank] = _of_form(value, shapes, what=construction.name, rank=rank)
    return found


def _of_form(value: Any, shapes: Mapping[str, tuple[int, ...]], *, what: str, rank: int) -> dict[str, Tensor]:
    """The parameters that a layer has, by name: exactly these, trainable, float32, of these shapes, finite."""
    import torch

    came = expect.mapping(value, "names", "weight", "bias", "is a module", what=what, rank=rank)
    expect.same(came["is a module"], True, what=f"isinstance({what}, nn.Module)", rank=rank)
    expect.same(came["names"], sorted(shapes), what=f"the names of the parameters of {what}", rank=rank)
    if "bias" not in shapes:
        expect.same(came["bias"], None, what=f"the bias of {what}", rank=rank)
    found = {}
    for name, shape in shapes.items():
        of = f"the {name} of {what}"
        parameter = expect.tensor(came[name], what=of, rank=rank, outside_autograd=False)
        expect.true(came[name].requires_grad, f"rank {rank}: {of} is not trainable: requires_grad is False")
        expect.true(
            tuple(parameter.shape) == shape and parameter.dtype is torch.float32,
            f"rank {rank}: {of} has the wrong form",
            expected=f"float32 {shape}, the columns that this rank owns",
            actual=value_text(came[name]),
            help="weights are (in, out), not (out, in) as in nn.Linear; rank r owns n // W + (r < n % W) of n columns",
        )
        expect.true(bool(torch.isfinite(parameter).all()), f"rank {rank}: {of} holds numbers that are not finite")
        found[name] = parameter
    return found


def _compare(first: Construction, made: Sequence[Made]) -> None:
    """The shards of all four layers are slices of masters that only rank 0's random numbers make."""
    import torch

    for layer in made:
        _all_columns_differ(first, layer)
    _, its_own, others_new, after = made
    for rank, before in its_own.items():
        for name, parameter in before.items():
            again = others_new[rank][name]
            expect.true(
                torch.equal(again, parameter),
                f"rank {rank}: the {name} of {first.name} changes with the random numbers of other ranks",
                expected=f"{value_text(parameter)}, as long as rank 0 of the group has the same random numbers",
                actual=value_text(again),
                help=ONE_MASTER,
            )
        two = (others_new[rank]["weight"], after[rank]["weight"])
        expect.true(
            two[0].numel() == 0 or not bool((two[0] == two[1]).all()),
            f"rank {rank}: two layers made one after the other have the same weight",
            expected="a new draw for each layer",
            actual=value_text(two[1]),
            help="draw from torch's own random numbers, and do not start them anew in the constructor",
        )


def _all_columns_differ(construction: Construction, layer: Made) -> None:
    import torch

    first = next(iter(layer.values()))["weight"]
    alike = [rank for rank in layer if torch.equal(layer[rank]["weight"], first)]
    expect.true(
        len(alike) == 1 or not first.numel(),
        f"ranks {', '.join(map(str, alike))} hold equal columns of the weight of {construction.name}: it is not split",
        expected="on each rank its own columns of one master",
        actual=f"on each of these ranks {value_text(first)}",
        help=f"ranks that draw alike, or keep the same piece, hold the same columns: {ONE_MASTER}",
    )
    whole = torch.cat([layer[rank]["weight"] for rank in layer], dim=-1)
    owner = [rank for rank in layer for _ in range(layer[rank]["weight"].shape[-1])]
    for later in range(1, whole.shape[-1]):
        for earlier in range(later):
            expect.true(
                not bool((whole[:, earlier] == whole[:, later]).all()),
                f"columns {earlier} (on rank {owner[earlier]}) and {later} (on rank {owner[later]}) of the weight of "
                f"{construction.name} are equal",
                expected=f"{whole.shape[-1]} columns that differ, all of one master",
                actual=value_text(whole[:, later]),
                help=f"ranks that draw alike hold equal columns: {ONE_MASTER}",
            )
