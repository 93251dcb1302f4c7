"""Running pipelines in one world, and comparing what came back with the whole network in one process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs.pipelines import Call, Pipeline

if TYPE_CHECKING:
    from torch import Tensor

Aspect = Literal["results", "gradients", "inputs", "microbatches"]
EVERYTHING: tuple[Aspect, ...] = ("results", "gradients", "inputs", "microbatches")
Stories = Iterable[tuple[str, "Tensor | None"]]  # what a mistake is called, and the values that it gives

STRAY = "an exchange of messages after the last call: did a stage send one that nobody received?"
NO_GRADIENT = (
    "no gradient came back to this stage: the activation that the next stage receives must be a leaf that requires "
    "a gradient before its layers run"
)
ADDS_UP = (
    "train_step adds to .grad what it finds there, and clears nothing: neither at its start nor between microbatches"
)
WEIGHTS = "microbatch k weighs rows_k / num_rows in the gradients"
BUFFERS = (
    "every backward saw the input of the last microbatch: one receive buffer was used for all of them, but backward "
    "still needs each activation, so each microbatch needs a buffer of its own"
)


def run(check: Check, size: int, pipelines: Sequence[Pipeline], *, of: Sequence[Aspect] = EVERYTHING) -> None:
    """Runs the pipelines in one world and compares these aspects of every call on every rank.

    results:      what the calls return. gradients: what `.grad` holds afterwards, on the last stage first.
    inputs:       batch and target are what they were. microbatches: how many rows the layers, and the loss
                  function, were called with.
    """
    calls = [(pipeline, number) for pipeline in pipelines for number in range(len(pipeline.calls))]
    values = check.run(
        size,
        "pipeline_parallel.run",
        cases=[pipeline.named(pipeline.calls[number]) for pipeline, number in calls] + [STRAY],
        pipelines=PerRank([[pipeline.for_rank(rank) for pipeline in pipelines] for rank in range(size)]),
    )
    for place, (pipeline, number) in enumerate(calls):
        came = {rank: values[rank][place] for rank in range(size)}
        _compare(pipeline, number, came, of=of)
    for rank in range(size):
        what = "an exchange of messages after the calls, which no message of a stage may meet,"
        expect.same(values[rank][-1], list(range(size)), what=what, rank=rank)


def _compare(pipeline: Pipeline, number: int, came: Mapping[int, Any], *, of: Sequence[Aspect]) -> None:
    call = pipeline.calls[number]
    what = pipeline.named(call)
    by_stage: dict[int, tuple[int, dict[str, Any]]] = {}  # stage: rank, what came
    for rank, value in came.items():
        stage = pipeline.stage_of(rank)
        if stage is None:
            where = f"making a stage with {pipeline.title} on a rank outside the group"
            expect.raised(value, "ValueError", what=where, rank=rank)
            continue
        keys = ("result", "new", "gradients", "batch", "target", "sizes", "losses", "kept")
        by_stage[stage] = rank, expect.mapping(value, *keys, what=what, rank=rank)
        expect.true(
            by_stage[stage][1]["kept"] is True,
            f"rank {rank}: `layers` of the stage is not the nn.Sequential that was passed",
            help="self.layers = layers",
        )
    last = len(pipeline.stages) - 1
    if "results" in of:
        for stage, (rank, value) in by_stage.items():
            if stage < last:
                expect.same(value["result"], None, what=f"{what}, on stage {stage}, which is not the last,", rank=rank)
        rank, value = by_stage[last]
        _compare_result(pipeline, call, value, what=what, rank=rank)
    if "gradients" in of:
        expected = _expected_gradients(pipeline, number)
        for stage in reversed(range(len(pipeline.stages))):
            rank, value = by_stage[stage]
            _compare_gradients(pipeline, number, stage, value["gradients"], expected[stage], rank=rank)
    for stage, (rank, value) in by_stage.items():
        if "inputs" in of:
            sent = call.for_stage(stage, len(pipeline.stages))
            for name in ("batch", "target"):
                after = f"the {name} after {what}"
                options = {} if sent[name] is None else {"contiguous": False, "outside_autograd": False}
                expect.same(value[name], sent[name], what=after, rank=rank, **options)
        if "microbatches" in of:
            sizes = [len(rows) for rows in oracle.microbatches(_rows(call), pipeline.num_microbatches)]
            _compare_sizes(value["sizes"], sizes, of=f"the layers of stage {stage}", what=what, rank=rank)
            wanted = sizes if stage == last and call.function == "train_step" else []
            _compare_sizes(value["losses"], wanted, of=f"loss_fn on stage {stage}", what=what, rank=rank)


def _rows(call: Call) -> Tensor:
    assert call.batch is not None, "only calls that are refused have no batch"
    return call.batch


def _target(call: Call) -> Tensor:
    assert call.target is not None, "only calls that are refused have no target"
    return call.target


def _compare_result(pipeline: Pipeline, call: Call, value: Mapping[str, Any], *, what: str, rank: int) -> None:
    """On the last stage: the output, microbatch by microbatch, or the losses."""
    import torch

    if call.function == "train_step":
        m = pipeline.num_microbatches
        expected = oracle.losses(pipeline.stages, _rows(call), _target(call), loss=pipeline.loss, num_microbatches=m)
        sizes = [len(rows) for rows in oracle.microbatches(_rows(call), m)]
        weights = torch.tensor(sizes, dtype=expected.dtype) / sum(sizes)
        stories: list[tuple[str, Tensor | None]] = [
            ("the losses that are returned are each the mean over its own rows, without weights", expected * weights),
            ("the losses that are returned are each the mean over its own rows, without weights", expected / m),
        ]
        _close(value["result"], expected, stories, what=f"the losses of {what}", rank=rank, rtol=pipeline.rtol)
        return
    output = oracle.WholeNetwork(pipeline.stages)(_rows(call)).detach()
    came = expect.tensor(value["result"], what=what, rank=rank)
    expect.true(
        value["new"] is True,
        f"rank {rank}: the result of {what} shares memory with the batch",
        expected="a tensor of its own",
        help="the layers may return their input: copy the batch before, or the output after",
    )
    if came.shape != output.shape or came.dtype != output.dtype:
        expect.close(value["result"], output, what=what, rank=rank)
    pieces = oracle.microbatches(output, pipeline.num_microbatches)
    start = 0
    for k, piece in enumerate(pieces):
        rows = slice(start, start + len(piece))
        start += len(piece)
        others = [(f"these are the rows of microbatch {j}", other) for j, other in enumerate(pieces) if j != k]
        of_rows = f"{what}, microbatch {k} (rows {rows.start} to {rows.stop - 1}),"
        _close(replace(value["result"], tensor=came[rows]), piece, others, what=of_rows, rank=rank, rtol=pipeline.rtol)


def _close(
    value: Any, expected: Tensor, stories: Stories, *, what: str, rank: int, rtol: float, **options: Any
) -> None:
    """As `expect.close`, but a failure says which mistake gives these values, where one of the stories does."""
    try:
        expect.close(value, expected, what=what, rank=rank, rtol=rtol, **options)
    except CheckFailed as failed:
        if _fits(value, expected, rtol):  # the numbers are right, what else is wrong has been said
            raise
        said = failed.explanation
        for story, values in stories:
            if values is not None and _fits(value, values, rtol):
                raise CheckFailed(said.rationale, expected=said.expected, actual=said.actual, help=story) from None
        raise


def _fits(value: Any, values: Tensor, rtol: float) -> bool:
    try:
        expect.close(value, values, what="", rank=0, rtol=rtol, contiguous=False, outside_autograd=False)
    except CheckFailed:
        return False
    return True


def _expected_gradients(pipeline: Pipeline, number: int) -> list[list[Tensor | None]]:
    """What `.grad` holds after call `number`: what it held before the first, and each train_step's since then."""
    held = _before(pipeline)
    for call in pipeline.calls[: number + 1]:
        if call.function == "train_step":
            new = oracle.whole_gradients(pipeline.stages, _rows(call), _target(call), loss=pipeline.loss)
            held = [[_sum(*pair) for pair in zip(*stage, strict=True)] for stage in zip(held, new, strict=True)]
    return held


def _before(pipeline: Pipeline) -> list[list[Tensor | None]]:
    if pipeline.gradients:
        return [list(stage) for stage in pipeline.gradients]
    return [[None for _ in stage] for stage in oracle.WholeNetwork(pipeline.stages).parameters()]


def _sum(held: Tensor | None, new: Tensor | None) -> Tensor | None:
    return new if held is None else held if new is None else held + new


def _compare_gradients(
    pipeline: Pipeline, number: int, stage: int, value: Any, expected: Sequence[Tensor | None], *, rank: int
) -> None:
    call = pipeline.calls[number]
    names = oracle.WholeNetwork(pipeline.stages).names()[stage]
    came = expect.sequence(value, len(names), what=f"the gradients after {pipeline.named(call)}", rank=rank)
    for place, (name, wanted) in enumerate(zip(names, expected, strict=True)):
        what = f"the gradient of layers.{name} on stage {stage}, after {pipeline.named(call)},"
        if wanted is None:
            if came[place] is not None:
                raise CheckFailed(
                    f"rank {rank}: {what} is there",
                    expected="None, as it was",
                    actual=value_text(came[place]),
                    help="only train_step writes gradients, and only those of parameters that require one",
                )
            continue
        stories = _stories(pipeline, number, stage, place)
        if came[place] is None or (_is_zero(came[place]) and bool(wanted.any())):
            actual = "None" if came[place] is None else "zeros"
            help = NO_GRADIENT if stage < len(pipeline.stages) - 1 else "backward has not reached this parameter"
            raise CheckFailed(f"rank {rank}: {what} is missing", expected="a tensor", actual=actual, help=help)
        _close(came[place], wanted, stories, what=what, rank=rank, rtol=pipeline.rtol, contiguous=False)


def _is_zero(value: Any) -> bool:
    return isinstance(value, ReturnedTensor) and not bool(value.tensor.any())


def _stories(pipeline: Pipeline, number: int, stage: int, place: int) -> Stories:
    """What classic mistakes leave in one parameter's gradient after this call; computed only where it is looked at."""

    def pick(gradients: oracle.Gradients) -> Tensor | None:
        return gradients[stage][place]

    call, m = pipeline.calls[number], pipeline.num_microbatches
    if call.function != "train_step":
        return
    x, y, loss, stages = _rows(call), _target(call), pipeline.loss, pipeline.stages
    held = pick(_before(pipeline) if number == 0 else _expected_gradients(pipeline, number - 1))
    right = [len(rows) / len(x) for rows in oracle.microbatches(x, m)]
    weighted = [
        (WEIGHTS + ": they were added without weights", [1.0] * m),
        (WEIGHTS + ": they were added with 1 / num_microbatches", [1 / m] * m),
        (ADDS_UP + "; this is the last microbatch's part alone", [0.0] * (m - 1) + right[-1:]),
        (ADDS_UP + "; this is the last microbatch's gradient alone", [0.0] * (m - 1) + [1.0]),
        ("this is the first microbatch's part alone", right[:1] + [0.0] * (m - 1)),
    ]
    if held is not None:
        yield ADDS_UP, pick(oracle.whole_gradients(stages, x, y, loss=loss))
    for story, weights in weighted:
        new = pick(oracle.weighted_gradients(stages, x, y, loss=loss, weights=weights))
        yield story, new
        yield story, _sum(held, new)
    if m > 1 and len(x) % m == 0 and x.is_floating_point():
        new = pick(oracle.overwritten_gradients(stages, x, y, loss=loss, num_microbatches=m))
        yield BUFFERS, _sum(held, new)


def _compare_sizes(value: Any, sizes: Sequence[int], *, of: str, what: str, rank: int) -> None:
    expect.true(
        value == sizes,
        f"rank {rank}: {of} did not see the microbatches of {what}",
        expected=f"calls with {', '.join(map(str, sizes)) or 'no'} rows",
        actual=f"calls with {', '.join(map(str, value)) or 'no'} rows" if isinstance(value, list) else "",
        help="each microbatch goes through once, in order, and only the last stage computes losses",
    )
