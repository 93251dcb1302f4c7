"""What a stage holds: during forward_only the activations that it has received, afterwards nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.differences import RTOL
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs.pipeline_trace import Account, accounts
from tests.public.runs.pipelines import Pipeline

if TYPE_CHECKING:
    from torch import Tensor

LET_GO = "drop an activation once its microbatch is computed, and post the receive of the next one only, not of all"


def compare_memory(check: Check, size: int, pipelines: Sequence[Pipeline]) -> None:
    """Runs the pipelines in one world, and looks at what each stage holds at each forward, and after each call."""
    calls = [(pipeline, call) for pipeline in pipelines for call in pipeline.calls]
    values = check.run(
        size,
        "pipeline_parallel.hold",
        cases=[pipeline.named(call) for pipeline, call in calls],
        pipelines=PerRank([[_watched(pipeline, rank) for pipeline in pipelines] for rank in range(size)]),
    )
    for number, each in enumerate(accounts(check, pipelines, strict=False)):
        for account in each:
            keys = ("built", "graphs", "shapes", "received")
            came = expect.mapping(values[account.rank][number], *keys, what=account.what, rank=account.rank)
            if account.call.function == "forward_only":
                _compare_graphs(account, came)
                _compare_received(account, came["received"])
            _compare_left(account, came)


def _watched(pipeline: Pipeline, rank: int) -> dict[str, Any]:
    """What one rank is sent, with the shapes of rows that enter and leave its stage."""
    sent = pipeline.for_rank(rank)
    shapes = [tuple(pipeline.row(stage).shape) for stage in (rank, rank + 1)]
    asked = [call.function == "forward_only" and rank > 0 for call in pipeline.calls]
    return {
        **sent,
        "calls": [
            {**each, "row_shapes": shapes, "entering_row": shapes[0] if asks else None}
            for each, asks in zip(sent["calls"], asked, strict=True)
        ],
    }


def _compare_graphs(account: Account, came: Mapping[str, Any]) -> None:
    expect.true(
        came["built"] == 0,
        f"rank {account.rank}: the layers build graphs in {account.what}",
        expected="no graph: nothing goes backward",
        actual=f"graphs: {value_text(came['built'])}",
        help="run the layers under torch.no_grad(): a graph keeps every layer's activations",
    )


def _compare_received(account: Account, looks: Any) -> None:
    """At most 1 received activation is alive when a forward begins, that of its microbatch; with overlap the next too.

    A receive that is posted and not waited for counts as one. An activation counts once, however many tensors hold
    its numbers. What a stage has computed is not counted: it lives until its send is waited for.
    """
    if account.stage == 0:
        return
    m, most = account.pipeline.num_microbatches, 2 if account.pipeline.overlap else 1
    looks = expect.sequence(looks, m, what=f"the forwards of {account.what}", rank=account.rank)
    entering = oracle.WholeNetwork(account.pipeline.stages).entering(account.call.rows_of_batch())[account.stage]
    activations = oracle.microbatches(entering, m)
    for k, (look, posted) in enumerate(zip(looks, _posted(account), strict=False)):
        held = [j for j, activation in enumerate(activations) if _is_among(activation, look)]
        # The harness has a private buffer for each posted receive, and any numbers may stand in its memory.
        count = max(len(held), 1 + posted)
        if count > most:
            others = f"those of microbatches {', '.join(map(str, held))}"
            ahead = f"its own, and {posted} posted receive{'s' * (posted > 1)} that it has not waited for"
            raise account.failed(
                f"holds {count} received activations when it begins the forward of microbatch {k}",
                expected=f"at most {most}: that of the microbatch{' and the next one' if most == 2 else ''}",
                actual=others if len(held) == count else ahead,
                help=LET_GO,
            )


def _posted(account: Account) -> Iterator[int]:
    """At the beginning of each forward, how many receives are posted that have not been waited for."""
    open_now = 0
    for step in account.steps:
        if step.action.kind == "ra":
            open_now += {"post": 1, "wait": -1}.get(step.doing, 0)
        if step.doing == "begin" and step.action.kind == "F":
            yield open_now


def _is_among(activation: Tensor, look: Any) -> bool:
    tensors = [each.tensor for each in look if isinstance(each, ReturnedTensor)] if isinstance(look, list) else []
    atol = 10 * RTOL["float32"] * float(activation.abs().max())
    same = [each for each in tensors if each.shape == activation.shape and each.dtype == activation.dtype]
    return any(bool(((each - activation).abs() <= atol).all()) for each in same)


def _compare_left(account: Account, came: Mapping[str, Any]) -> None:
    rank, what = account.rank, account.what
    if came["graphs"] != 0:
        raise CheckFailed(
            f"rank {rank}: the graphs of microbatches are still alive after {what}",
            expected="no graph",
            actual=f"{value_text(came['graphs'])} graphs",
            help="drop the outputs of a microbatch after its backward, and return and keep detached tensors",
        )
    if came["shapes"] != []:
        raise CheckFailed(
            f"rank {rank}: the stage holds activations, messages or gradients of them after {what}",
            expected="no tensor of the shape of rows that enter or leave the stage",
            actual=f"tensors of shape {value_text(came['shapes'])}",
            help="keep what a call needs in variables of the call, not in the stage",
        )
