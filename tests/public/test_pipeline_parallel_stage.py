"""Public checks of PipelineStage: outputs, losses, gradients and training, with and without overlap."""

from __future__ import annotations

from grader.checking import Check, check
from tests.public.runs.pipeline_overlap import watched
from tests.public.runs.pipeline_runs import run
from tests.public.runs.pipeline_training import train
from tests.public.runs.pipelines import Function, Pipeline, network, with_gradients

BOTH: tuple[Function, ...] = ("forward_only", "train_step")


def even(check: Check, size: int, function: Function, **options: bool) -> list[Pipeline]:
    """Two layers on each stage and 8 rows, in 1, 2, 4 and 8 microbatches; one stage is called twice."""
    calls = {1: [8], 2: [8, 8], 4: [8, 12], 8: [8]}
    return [
        network(check, [2] * size, m, *[(function, n) for n in rows], **options)  # type: ignore[arg-type]
        for m, rows in calls.items()
    ]


@check(
    "pipeline_parallel",
    points=1,
    statement="forward_only computes microbatch by microbatch and returns the whole network's output for all rows on "
    "the last stage, None on the others; the batch stays as it is.",
    worlds=(1, 2, 4),
    needs=("PipelineStage",),
)
def test_forward_only(check: Check) -> None:
    for size in check.worlds:
        run(check, size, even(check, size, "forward_only"))


@check(
    "pipeline_parallel",
    points=2,
    statement="After train_step, which computes microbatch by microbatch, every parameter on every stage has the "
    "gradient of the whole network's mean loss on the whole batch.",
    worlds=(1, 2, 4),
    needs=("PipelineStage",),
)
def test_train_step(check: Check) -> None:
    for size in check.worlds:
        run(check, size, even(check, size, "train_step"), of=("gradients", "inputs", "microbatches"))


@check(
    "pipeline_parallel",
    points=1,
    statement="train_step returns the loss of each microbatch, without weights and detached, as one tensor on the last "
    "stage, and None on the others.",
    worlds=(1, 2),
    needs=("PipelineStage",),
)
def test_losses(check: Check) -> None:
    for size in check.worlds:
        run(check, size, even(check, size, "train_step"), of=("results",))


@check(
    "pipeline_parallel",
    points=1,
    statement="train_step adds to the gradients that are there and clears nothing: after two steps .grad holds what it "
    "held before and both, and forward_only between them leaves it alone.",
    worlds=(2,),
    needs=("PipelineStage",),
)
def test_accumulation(check: Check) -> None:
    for size in check.worlds:
        steps: tuple[tuple[Function, int], ...] = (("train_step", 8), ("forward_only", 4), ("train_step", 12))
        pipelines = [network(check, [2] * size, m, *steps) for m in (1, 4)]
        pipelines.append(with_gradients(check, network(check, [1] * size, 2, *steps)))
        run(check, size, pipelines, of=("gradients",))


@check(
    "pipeline_parallel",
    points=1,
    statement="Where the number of microbatches does not divide the rows, outputs, losses and gradients are those of "
    "the whole batch: microbatch k weighs rows_k / num_rows.",
    worlds=(1, 2, 4),
    needs=("PipelineStage",),
    core=False,
)
def test_uneven_rows(check: Check) -> None:
    for size in check.worlds:
        pipelines = []
        for m, rows in ((2, 5), (4, 5), (3, 10), (6, 11)):
            both: list[tuple[Function, int]] = [("forward_only", rows), ("train_step", rows)]
            more: list[tuple[Function, int]] = [("train_step", rows + m + 1), ("forward_only", rows + 1)]
            pipelines.append(network(check, [1] * size, m, *both, *more))
        run(check, size, pipelines)


@check(
    "pipeline_parallel",
    points=1,
    statement="Each stage sends one message for each microbatch and direction, of the microbatch's rows, to its "
    "neighbours only and in the schedule's order; without overlap each is complete before the next action begins.",
    worlds=(1, 2, 4),
    needs=("PipelineStage",),
)
def test_messages(check: Check) -> None:
    both: tuple[tuple[Function, int], ...] = (("forward_only", 6), ("train_step", 6))
    for size in check.worlds:
        pipelines = [network(check, [1] * size, m, *both, marked=True) for m in (1, 2, 4)]
        run(check, size, pipelines, of=("messages", "order"))


@check(
    "pipeline_parallel",
    points=1,
    statement="With overlap=True forward_only and train_step return the same outputs and losses and leave the same "
    "gradients, for any number of microbatches and rows.",
    worlds=(2, 4),
    needs=("PipelineStage",),
    core=False,
)
def test_overlap_results(check: Check) -> None:
    for size in check.worlds:
        calls: dict[int, list[int]] = {1: [8], 2: [8, 12], 4: [5, 7, 6], 8: [8]}
        pipelines = [
            network(check, [1 + (m < 4)] * size, m, *[(function, n) for n in rows for function in BOTH], overlap=True)
            for m, rows in calls.items()
        ]
        run(check, size, pipelines)


@check(
    "pipeline_parallel",
    points=1,
    statement="With overlap=True the messages are the same, the next receive is posted before this microbatch is "
    "computed, and no receive or send is waited for before a microbatch has been computed, where there is one.",
    worlds=(2, 4),
    needs=("PipelineStage",),
    core=False,
)
def test_overlap(check: Check) -> None:
    for size in check.worlds:
        run(check, size, watched(check, size), of=("messages", "order"))


@check(
    "pipeline_parallel",
    points=1,
    statement="Five AdamW steps through a pipeline, with an optimizer on each stage, equal those of the whole network "
    "in one process.",
    worlds=(2, 4),
    needs=("PipelineStage",),
)
def test_training(check: Check) -> None:
    for size in check.worlds:
        steps: list[tuple[Function, int]] = [("train_step", 8)] * 5
        train(check, network(check, [4 // size] * size, 4, *steps, dtype="float64"))
