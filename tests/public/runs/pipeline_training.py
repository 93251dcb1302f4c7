"""Training through a pipeline, next to the same training in one process."""

from __future__ import annotations

from typing import Any

from grader.checking import Check, PerRank, expect
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs.pipelines import Pipeline

# A large eps: with a small one, AdamW's steps would not depend on the size of the gradients.
OPTIMIZER: dict[str, Any] = {"lr": 0.05, "eps": 0.1, "weight_decay": 0.1}


def train(check: Check, pipeline: Pipeline) -> None:
    """An AdamW step after each call of the pipeline, on every stage, equals the serial step on the whole batch."""
    import torch

    size = len(pipeline.stages)
    values = check.run(
        size,
        "pipeline_parallel.train",
        cases=[f"AdamW step {step}" for step in range(len(pipeline.calls))],
        pipeline=PerRank([pipeline.for_rank(rank) for rank in range(size)]),
        optimizer=OPTIMIZER,
    )
    network = oracle.WholeNetwork(pipeline.stages)
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
            for value, parameter, name in zip(came, expected, names, strict=True):
                what = f"layers.{name} of stage {stage} after AdamW step {step} with {pipeline.title}"
                expect.close(value, parameter.detach(), what=what, rank=stage, contiguous=False)
