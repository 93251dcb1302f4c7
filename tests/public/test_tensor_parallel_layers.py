"""Public checks of tensor_parallel.py: the layer and the network."""

from __future__ import annotations

from grader.checking import Check, check
from tests.public.runs.column_network import run_network
from tests.public.runs.column_parallel import Layers, run_linear
from tests.public.runs.column_training import run_training
from tests.public.runs.loads import Loads, master, run_loads
from tests.public.runs.masters import run_constructions


@check(
    "tensor_parallel",
    points=1,
    statement="A new ColumnParallelLinear holds its own columns of one weight and one bias that rank 0 drew, (in, own "
    "columns) and (own columns,); bias=False leaves the bias None.",
    worlds=(1, 4),
    needs=("ColumnParallelLinear",),
)
def test_linear_starts_from_one_master(check: Check) -> None:
    for size in check.worlds:
        run_constructions(check, size, [((3, 2 * size), {}, None), ((5, size), {"bias": False}, None)])


@check(
    "tensor_parallel",
    points=1,
    statement="load_master copies this rank's columns of a whole weight and bias into the parameters, which stay the "
    "same objects and share no memory with the master; nothing is sent.",
    worlds=(1, 4),
    needs=("ColumnParallelLinear",),
)
def test_linear_loads_a_master(check: Check) -> None:
    for size in check.worlds:
        sizes = (3, 2 * size)
        both = [master(check, sizes, path=turn) for turn in ("first", "second")]
        run_loads(
            check,
            size,
            [
                Loads(sizes, both),
                Loads(sizes, both, layout="transposed"),
                Loads(sizes, [master(check, sizes, bias=False)], bias=False),
                Loads(sizes, [master(check, sizes, dtype="float64")]),
            ],
        )


@check(
    "tensor_parallel",
    points=1,
    statement="With gather_output=False and copy_input=False ColumnParallelLinear returns its columns of x @ weight "
    "+ bias, and x gets the part of its gradient that comes from these; nothing is sent.",
    worlds=(1, 4),
    needs=("ColumnParallelLinear",),
)
def test_linear_computes_its_own_columns(check: Check) -> None:
    alone = {"gather_output": False, "copy_input": False}
    for size in check.worlds:
        layers = [
            Layers((5, 2 * size), options=alone),
            Layers((5, 8), dtype="float32", options=alone),
            Layers((3, size), leading=(2, 3), options={**alone, "bias": False}),
        ]
        run_linear(check, size, layers)


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelLinear returns the whole x @ weight + bias on every rank and has the gradients of the "
    "unsplit layer, that of x too, unless copy_input=False; it sends one gather, and backward one sum.",
    worlds=(1, 2, 4),
    needs=("ColumnParallelLinear",),
)
def test_linear_gathers_its_output(check: Check) -> None:
    for size in check.worlds:
        layers = [
            Layers((5, 8), dtype="float32"),
            Layers((3, size), leading=(2, 3), options={"bias": False}),
            Layers((5, 2 * size), options={"gather_output": False}),
            Layers((5, 2 * size), options={"copy_input": False}),
        ]
        layers += [Layers((48, 64), leading=(64,))] if size == 4 else []
        run_linear(check, size, layers)


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelMLP is the unsplit network on every rank: its output, and the gradients of x, weights and "
    "biases; one gather follows each activation, and only the last is without a sum in backward, with another for x.",
    worlds=(1, 2, 4),
    needs=("ColumnParallelMLP", "ColumnParallelLinear"),
)
def test_mlp_is_the_unsplit_network(check: Check) -> None:
    for size in check.worlds:
        layers = [Layers((3, 2 * size, 3 * size, size)), Layers((4, 8, 12, 8), dtype="float32")]
        if size == 4:
            layers.append(Layers((32, 48, 64, 32), leading=(128,), activation="gelu"))
        run_network(check, size, layers)


@check(
    "tensor_parallel",
    points=1,
    statement="Five steps of AdamW on a ColumnParallelMLP give the losses and parameters of the unsplit network.",
    worlds=(2, 4),
    needs=("ColumnParallelMLP",),
)
def test_mlp_trains_as_the_unsplit_network(check: Check) -> None:
    for size in check.worlds:
        run_training(check, size, (3, 2 * size, size, 2 * size))


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelMLP is the unsplit network when columns do not divide by the ranks, when some ranks own "
    "none, and in a group of some ranks.",
    worlds=(2, 4),
    needs=("ColumnParallelMLP", "ColumnParallelLinear"),
    core=False,
)
def test_mlp_of_uneven_columns(check: Check) -> None:
    for size in check.worlds:
        layers = [
            Layers((5, 7, size - 1, 6, 3)),
            Layers((3, 5, 7), leading=(2, 3), options={"bias": False}),
            Layers((3, 1, 5), leading=(4,), group=(0, size - 1)),
            Layers((3, 5, 3), leading=(4,), group=(size - 1,)),
        ]
        run_network(check, size, layers)
