"""Hidden checks of tensor_parallel.py: the layer and the network of any shape, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

from grader.checking import Check, check
from tests.hidden.runs.refusals import Refusal, run_refusals
from tests.public.runs import cases
from tests.public.runs.column_network import run_network
from tests.public.runs.column_parallel import Layers, run_linear
from tests.public.runs.loads import Loads, Master, master, run_loads
from tests.public.runs.masters import run_constructions


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelLinear raises a ValueError for features below 1, an input of the wrong width, and a "
    "master of the wrong shape, with a bias too few or too many: nothing is sent or changed.",
    worlds=(3,),
    needs=("ColumnParallelLinear",),
)
def test_linear_refuses_wrong_shapes(check: Check) -> None:
    (size,) = check.worlds
    whole = master(check, (13, 21))
    assert whole.bias is not None
    shape = cases.tensor(check, 2, (21, 13)), cases.tensor(check, 2, (13, 7)), cases.tensor(check, 2, (7,))
    refused = [
        Master("weight (21, 13), bias (21,)", shape[0], whole.bias, refused=True, naming=["21", "13"]),
        Master("weight (13, 7), bias (21,)", shape[1], whole.bias, refused=True, naming=["7", "21"]),
        Master("weight (13, 21), bias (7,)", -whole.weight, shape[2], refused=True, naming=["7", "21"]),
        Master("weight (13, 21), no bias", -whole.weight, None, refused=True),
    ]
    unwanted = Master("weight (13, 21), bias (21,), for bias=False", -whole.weight, whole.bias, refused=True)
    run_loads(
        check,
        size,
        [Loads((13, 21), [whole, *refused]), Loads((13, 21), [replace(whole, bias=None), unwanted], bias=False)],
    )
    run_refusals(
        check,
        size,
        [
            Refusal("ColumnParallelLinear", (0, 6), naming=["0"]),
            Refusal("ColumnParallelLinear", (6, -3), naming=["-3"]),
            Refusal("ColumnParallelLinear", (13, 21), cases.tensor(check, 0, (2, 14)), naming=["14", "13"]),
            Refusal("ColumnParallelLinear", (1, 6), cases.tensor(check, 0, (2, 3)), naming=["3"]),
        ],
    )


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelLinear is the unsplit layer for any number of columns, any leading dimensions and layout "
    "of its input, in float64, and in a group, whose rank 0 draws the master.",
    worlds=(3, 5),
    needs=("ColumnParallelLinear",),
    core=False,
)
def test_linear_of_any_shape(check: Check) -> None:
    for size in check.worlds:
        group = (1, size - 1)
        own = {"gather_output": False}
        layers = [
            Layers((4, 2 * size + 1), leading=(2, 1, 3), dtype="float32"),
            Layers((4, 2 * size + 1), leading=(), options=own),
            Layers((5, size - 1), leading=(2, 3), layout="strided"),
            Layers((5, 2), leading=(4,), layout="transposed", options={**own, "bias": False}),
            Layers((3, 7), leading=(0,)),
            Layers((4, 7), leading=(3,), group=group),
            Layers((4, 7), leading=(3,), options=own, group=group),
        ]
        run_linear(check, size, layers)
    run_constructions(check, size, [((3, size + 2), {}, None), ((3, 2), {}, None), ((4, 5), {}, group)])
    uneven = (4, size + 2)
    run_loads(check, size, [Loads(uneven, [master(check, uneven)]), Loads((4, 2), [master(check, (4, 2))])])


@check(
    "tensor_parallel",
    points=1,
    statement="ColumnParallelMLP is the unsplit network for any activation, which sees the own columns, any leading "
    "dimensions and dtype, without bias too; wrong sizes are a ValueError.",
    worlds=(3, 5),
    needs=("ColumnParallelMLP", "ColumnParallelLinear"),
)
def test_mlp_of_any_shape(check: Check) -> None:
    for size in check.worlds:
        layers = [
            Layers((4, 2 * size, size, 3 * size, size), leading=(2, 1, 3), activation="silu"),
            Layers((3, size, 2 * size), leading=(), options={"bias": False}, activation="softplus"),
            Layers((3, size, 2 * size), leading=(2, 3), layout="strided", activation="elu"),
            Layers((4, 2 * size, 3 * size), leading=(5,), layout="transposed", dtype="float32"),
            Layers((4, size, size), leading=(0,)),
        ]
        run_network(check, size, layers)
    refused = [([13],), ([],), ([13, 0, 21],), ([-13, 21],)]
    run_refusals(check, size, [Refusal("ColumnParallelMLP", arguments) for arguments in refused])
