"""Hidden checks of PipelineStage: any layers, dtypes, shapes, groups and worlds, and what is left after a call."""

from __future__ import annotations

from grader.checking import Check, check
from tests.hidden.runs.pipeline_memory import compare_memory
from tests.public.runs import pipeline_layers as layers_of
from tests.public.runs.pipeline_runs import EVERYTHING, run
from tests.public.runs.pipeline_training import train
from tests.public.runs.pipelines import Function, network

BOTH: tuple[tuple[Function, int], ...] = (("train_step", 8), ("forward_only", 9), ("train_step", 7))


@check(
    "pipeline_parallel",
    points=1,
    statement="Layers may act in place on their input: outputs and gradients are right, and the batch stays as it is.",
    worlds=(1, 3),
    needs=("PipelineStage",),
)
def test_in_place_layers(check: Check) -> None:
    for size in check.worlds:
        run(check, size, layers_of.in_place(check, size))


@check(
    "pipeline_parallel",
    points=1,
    statement="Stages without trainable parameters, at either end or between, pass activations and gradients on; "
    "frozen parameters get no gradient.",
    worlds=(3,),
    needs=("PipelineStage",),
    core=False,
)
def test_stages_without_parameters(check: Check) -> None:
    for size in check.worlds:
        run(check, size, layers_of.without_parameters(check))


@check(
    "pipeline_parallel",
    points=1,
    statement="Activations may be of other dtypes than float32, and change from stage to stage; each gradient has the "
    "dtype of what it belongs to.",
    worlds=(2,),
    needs=("PipelineStage",),
    core=False,
)
def test_dtypes(check: Check) -> None:
    for size in check.worlds:
        run(check, size, layers_of.dtypes(check))


@check(
    "pipeline_parallel",
    points=1,
    statement="The rows that enter and leave a stage may have any number of dimensions, and a batch, activation or "
    "gradient that is not contiguous is right too.",
    worlds=(3,),
    needs=("PipelineStage",),
    core=False,
)
def test_shapes(check: Check) -> None:
    for size in check.worlds:
        run(check, size, layers_of.shapes(check))


@check(
    "pipeline_parallel",
    points=1,
    statement="The batch may be whole numbers that enter an embedding on the first stage, and so may the target.",
    worlds=(1, 2),
    needs=("PipelineStage",),
    core=False,
)
def test_integers(check: Check) -> None:
    for size in check.worlds:
        run(check, size, layers_of.integers(check, size))


@check(
    "pipeline_parallel",
    points=1,
    statement="forward_only builds no graph and holds at most 1 received activation when it begins a microbatch, 2 "
    "with overlap; when forward_only or train_step returns, the stage holds no activation, message or graph.",
    worlds=(1, 3),
    needs=("PipelineStage",),
)
def test_holds_nothing(check: Check) -> None:
    for size in check.worlds:
        pipelines = [
            network(check, [1] * size, 1, ("forward_only", 4), ("train_step", 4)),
            network(check, [1] * size, 4, ("train_step", 8), ("forward_only", 8), ("train_step", 8)),
            network(check, [1] * size, 4, ("train_step", 8), ("forward_only", 8), overlap=True),
        ]
        compare_memory(check, size, pipelines)


@check(
    "pipeline_parallel",
    points=1,
    statement="A pipeline of some of the ranks works by their ranks in the group, with messages in that group; a rank "
    "outside the group gets a ValueError.",
    worlds=(4,),
    needs=("PipelineStage",),
    core=False,
)
def test_sub_group(check: Check) -> None:
    for size in check.worlds:
        run(
            check,
            size,
            [
                network(check, [1, 1], 2, *BOTH, group=(1, 3)),
                network(check, [1, 2, 1], 3, *BOTH, group=(0, 2, 3), overlap=True),
                network(check, [2], 3, *BOTH, group=(2,)),
            ],
            of=(*EVERYTHING, "group"),
        )


@check(
    "pipeline_parallel",
    points=1,
    statement="On 3 and 5 stages with different numbers of layers, outputs, losses and gradients are those of the "
    "whole network, call after call.",
    worlds=(3, 5),
    needs=("PipelineStage",),
    core=False,
)
def test_odd_worlds(check: Check) -> None:
    for size in check.worlds:
        layers = [2, 1, 3, 1, 1][:size]
        run(check, size, [network(check, layers, m, *BOTH) for m in (1, 2, 7)])


@check(
    "pipeline_parallel",
    points=1,
    statement="overlap=True gives the same results for any layers: in place, without parameters, of other dtypes and "
    "shapes, in a pipeline longer than there are microbatches.",
    worlds=(2, 3, 5),
    needs=("PipelineStage",),
    core=False,
)
def test_overlap_any_layers(check: Check) -> None:
    for size in check.worlds:
        pipelines = {
            2: lambda: [*layers_of.dtypes(check, overlap=True), *layers_of.integers(check, 2, overlap=True)],
            3: lambda: [
                *layers_of.in_place(check, 3, overlap=True),
                *layers_of.without_parameters(check, overlap=True),
                *layers_of.shapes(check, overlap=True),
            ],
            5: lambda: [network(check, [1, 2, 1, 1, 2], m, *BOTH, overlap=True) for m in (1, 2, 7)],
        }
        run(check, size, pipelines[size]())


@check(
    "pipeline_parallel",
    points=1,
    statement="Five AdamW steps through 3 stages of different numbers of layers, with overlap and rows that the "
    "microbatches do not divide, equal those of one process.",
    worlds=(3,),
    needs=("PipelineStage",),
    core=False,
)
def test_uneven_training(check: Check) -> None:
    calls: list[tuple[Function, int]] = [("train_step", rows) for rows in (7, 11, 8, 13, 10)]
    train(check, network(check, [2, 1, 3], 4, *calls, overlap=True, dtype="float64"))
