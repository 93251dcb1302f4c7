"""Public check of what PipelineStage refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.checking import Check, CheckFailed, PerRank, check, expect
from grader.world.mismatch import describe
from grader.world.operation import Operation
from tests.public.runs.pipeline_messages import explaining
from tests.public.runs.pipeline_trace import place_text
from tests.public.runs.pipelines import Call, Function, Pipeline, network


@dataclass(frozen=True)
class Refused:
    """A stage that cannot be made, or a call that must raise a ValueError on the ranks that make it.

    story: what is wrong. pipeline: without a call, its making is refused. ranks: those that make the call.
    """

    story: str
    pipeline: Pipeline
    ranks: Sequence[int]

    @property
    def case(self) -> str:
        """The call, for messages."""
        calls = [self.pipeline.named(call) for call in self.pipeline.calls]
        return f"{calls[0] if calls else 'PipelineStage with ' + self.pipeline.title}, where {self.story}"

    def for_rank(self, rank: int) -> dict[str, Any]:
        """What one rank is sent."""
        sent = self.pipeline.for_rank(rank)
        calls = sent["calls"] if rank in self.ranks else []
        return {**sent, "calls": calls, "making": not self.pipeline.calls}


def refused(check: Check, size: int) -> list[Refused]:
    """What all ranks see, what the first stage alone sees, and what the last alone sees."""
    everyone, first, last = range(size), [0], [size - 1]
    made = [Refused("num_microbatches is below 1", network(check, [1] * size, m), everyone) for m in (0, -2)]
    both: tuple[Function, Function] = ("forward_only", "train_step")
    for function in both:
        right = network(check, [1] * size, 4, (function, 8))

        def where(story: str, ranks: Sequence[int], right: Pipeline = right, **fields: Any) -> Refused:
            return Refused(story, replace(right, calls=[replace(right.calls[0], **fields)]), ranks)

        call = right.calls[0]
        few = network(check, [1] * size, 4, (function, 3))
        made.append(Refused("there are fewer rows than microbatches", few, everyone))
        made.append(where("the batch is missing", first, batch=None, num_rows=8))
        made.append(where("the batch has 8 rows", first, num_rows=9))
        made.append(where("the batch has 8 rows", first, num_rows=4))
        if function == "train_step":
            short, longer = rows_of(call, 7), rows_of(network(check, [1] * size, 4, (function, 12)).calls[0], 9)
            made.append(where("the target is missing", last, target=None))
            made.append(where("the target has 7 rows", last, target=short))
            made.append(where("the target has 9 rows", last, target=longer))
    return made


def rows_of(call: Call, count: int) -> Any:
    """The first rows of the call's target."""
    assert call.target is not None, "a training step has a target"
    return call.target[:count].clone()


@check(
    "pipeline_parallel",
    points=1,
    statement="Fewer than 1 microbatch, fewer rows than microbatches, and a batch or target that is missing where it "
    "is read, or has other than num_rows rows, is a ValueError before anything is sent.",
    worlds=(1, 2, 4),
    needs=("PipelineStage",),
)
def test_refused(check: Check) -> None:
    for size in check.worlds:
        each = refused(check, size)
        with explaining(check, lambda each=each: _nothing_is_sent(check, each)):
            values = check.run(
                size,
                "pipeline_parallel.refuse",
                cases=[one.case for one in each],
                pipelines=PerRank([[one.for_rank(rank) for one in each] for rank in range(size)]),
            )
        _nothing_is_sent(check, each)
        for number, one in enumerate(each):
            what = f"{one.case},"
            after = f"an exchange of messages after {what} which no message of a stage may meet,"
            for rank in range(size):
                came = expect.mapping(values[rank][number], "outcome", "heard", what=what, rank=rank)
                if rank in one.ranks:
                    expect.raised(came["outcome"], "ValueError", what=what, rank=rank)
                expect.same(came["heard"], list(range(size)), what=after, rank=rank)


def _nothing_is_sent(check: Check, each: Sequence[Refused]) -> None:
    """No rank has sent or received anything in any of these calls, or waited for it."""
    for rank in range(check.ran[-1].world_size):
        for number, one in enumerate(each):
            for operation in check.trace.of(rank, number).issued():
                raise CheckFailed(
                    f"rank {rank} {_verb(operation)} in {one.case}",
                    expected="a ValueError before anything is sent",
                    actual=describe(operation),
                    where=f"rank {rank}: {place_text(operation.place)}",
                    help="check all arguments first, on every rank that can tell, and then send",
                )


def _verb(operation: Operation) -> str:
    """ "sends a message to rank 1"."""
    match operation.name:
        case "send":
            return f"sends a message to rank {operation.peer_rank}"
        case "recv":
            return "waits for a message"
        case name:
            return f"calls {name}"
