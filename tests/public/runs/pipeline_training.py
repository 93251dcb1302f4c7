"""Training through a pipeline, next to the same training in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, Slip, expect
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs import pipeline_slips
from tests.public.runs.pipeline_messages import explain_so_far, explaining
from tests.public.runs.pipelines import Pipeline

if TYPE_CHECKING:
    from torch import Tensor

# A large eps: with a small one, AdamW's steps would not depend on the size of the gradients.
OPTIMIZER: dict[str, Any] = {"lr": 0.05, "eps": 0.1, "weight_decay": 0.1}


def train(check: Check, pipeline: Pipeline) -> None:
    """An AdamW step after each call of the pipeline, on every stage, equals the serial step on the whole batch."""
    import torch

    size = len(pipeline.stages)
    with explaining(check, lambda: explain_so_far(check, [pipeline])), pipeline_slips.hinting():
        values = check.run(
            size,
            "pipeline_parallel.train",
            cases=[f"AdamW step {step}" for step in range(len(pipeline.calls))],
            pipeline=PerRank([pipeline.for_rank(rank) for rank in range(size)]),
            optimizer=OPTIMIZER,
        )
    network = oracle.WholeNetwork(pipeline.stages)
    start = [[parameter.detach().clone() for parameter in stage] for stage in network.parameters()]
    adam = torch.optim.AdamW([parameter for stage in network.parameters() for parameter in stage], **OPTIMIZER)
    for step, call in enumerate(pipeline.calls):
        assert call.batch is not None, "a training step has a batch"
        assert call.target is not None, "a training step has a target"
        adam.zero_grad()
        oracle.loss_of(pipeline.loss, network(call.batch), call.target).backward()
        adam.step()
        for stage in reversed(range(size)):
            expected, names = network.parameters()[stage], network.names()[stage]
            of_step = f"the parameters of stage {stage} after AdamW step {step} with {pipeline.title}"
            came = expect.sequence(values[stage][step], len(expected), what=of_step, rank=stage)
            for place, (value, parameter, name) in enumerate(zip(came, expected, names, strict=True)):
                what = f"layers.{name} of stage {stage} after AdamW step {step} with {pipeline.title}"
                slips = _after_mistake(pipeline, start, stage, place) if step == 0 else ()
                right = parameter.detach()
                with expect.by_rank({stage: value}, {stage: right}):
                    expect.close(value, right, slips=slips, what=what, rank=stage, contiguous=False)


def _after_mistake(pipeline: Pipeline, start: list[list[Tensor]], stage: int, place: int) -> Iterator[Slip]:
    """A parameter after the first step, if its gradient is wrong. start: all parameters before it."""
    import torch

    before = start[stage][place]
    none: oracle.Gradients = [[None for _ in own] for own in start]
    wrong = pipeline_slips.picked(pipeline_slips.wrong_gradients(pipeline, pipeline.calls[0], none), stage, place)
    last = stage == len(start) - 1
    why = pipeline_slips.UNREACHED if last else pipeline_slips.NO_GRADIENT
    zeros = Slip("all zeros", why, torch.zeros_like(before))
    for gave, help, gradient in (zeros, *wrong):
        parameter = before.clone()
        parameter.grad = gradient
        torch.optim.AdamW([parameter], **OPTIMIZER).step()
        yield Slip(f"what a step gives if the gradient is {gave}", help, parameter)
    layers = "does the stage train the very layers that it was passed, and does a gradient reach them?"
    yield Slip("what it was before the step", layers, before)
