"""Running pipelines in one world, and comparing what came back with the whole network in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs import pipeline_slips
from tests.public.runs.pipeline_messages import (
    compare_groups,
    compare_messages,
    compare_order,
    explain_so_far,
    explaining,
)
from tests.public.runs.pipeline_overlap import compare_overlap
from tests.public.runs.pipeline_trace import Account
from tests.public.runs.pipelines import Call, Pipeline

if TYPE_CHECKING:
    from torch import Tensor

Aspect = Literal["results", "gradients", "inputs", "microbatches", "group", "messages", "order"]
EVERYTHING: tuple[Aspect, ...] = ("results", "gradients", "inputs", "microbatches")

STRAY = "an exchange of messages after the last call: did a stage send one that nobody received?"


def run(check: Check, size: int, pipelines: Sequence[Pipeline], *, of: Sequence[Aspect] = EVERYTHING) -> None:
    """Runs the pipelines in one world and compares these aspects of every call on every rank.

    results:      what the calls return. gradients: what `.grad` holds afterwards, on the last stage first.
    inputs:       batch and target are what they were. microbatches: how many rows the layers, and the loss
                  function, were called with.
    messages:     how many, of which sizes, in which order. group: all of them are in the group that was given.
    order:        messages and computations (of marked pipelines): when each is posted, computed and waited for.
    """
    calls = [(pipeline, number) for pipeline in pipelines for number in range(len(pipeline.calls))]
    also = [_compare_steps] if "order" in of else []

    def explain() -> None:
        compare_messages(check, pipelines, *also, finished=False)
        explain_so_far(check, pipelines)

    with explaining(check, explain), pipeline_slips.hinting():
        values = check.run(
            size,
            "pipeline_parallel.run",
            cases=[pipeline.named(pipeline.calls[number]) for pipeline, number in calls] + [STRAY],
            pipelines=PerRank([[pipeline.for_rank(rank) for pipeline in pipelines] for rank in range(size)]),
        )
    for place, (pipeline, number) in enumerate(calls):
        came = {rank: values[rank][place] for rank in range(size)}
        _compare(pipeline, number, came, of=of)
    if "messages" in of:
        compare_messages(check, pipelines, *also)
    if "group" in of:
        compare_groups(check, pipelines)
    for rank in range(size):
        what = "an exchange of messages after the calls, which no message of a stage may meet,"
        expect.same(values[rank][-1], list(range(size)), what=what, rank=rank)


def _compare_steps(account: Account) -> None:
    compare = compare_overlap if account.pipeline.overlap else compare_order
    compare(account)


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
                options: dict[str, Any] = {} if sent[name] is None else {"contiguous": False, "outside_autograd": False}
                expect.same(value[name], sent[name], what=after, rank=rank, **options)
        if "microbatches" in of:
            sizes = [len(rows) for rows in oracle.microbatches(call.rows_of_batch(), pipeline.num_microbatches)]
            _compare_sizes(value["sizes"], sizes, of=f"the layers of stage {stage}", what=what, rank=rank)
            wanted = sizes if stage == last and call.function == "train_step" else []
            _compare_sizes(value["losses"], wanted, of=f"loss_fn on stage {stage}", what=what, rank=rank)


def _target(call: Call) -> Tensor:
    assert call.target is not None, "only calls that are refused have no target"
    return call.target


def _compare_result(pipeline: Pipeline, call: Call, value: Mapping[str, Any], *, what: str, rank: int) -> None:
    """On the last stage: the output, microbatch by microbatch, or the losses."""
    m, rtol = pipeline.num_microbatches, pipeline.rtol
    sizes = [len(rows) for rows in oracle.microbatches(call.rows_of_batch(), m)]
    if call.function == "train_step":
        right = oracle.losses(
            pipeline.stages, call.rows_of_batch(), _target(call), loss=pipeline.loss, num_microbatches=m
        )
        slips, of = pipeline_slips.losses(right, sizes), f"the losses of {what}"
        with expect.by_rank({rank: value["result"]}, {rank: right}):
            expect.close(value["result"], right, slips=slips, what=of, rank=rank, rtol=rtol)
        return
    output = oracle.WholeNetwork(pipeline.stages)(call.rows_of_batch()).detach()
    came = expect.tensor(value["result"], what=what, rank=rank)
    expect.true(
        value["new"] is True,
        f"rank {rank}: the result of {what} shares memory with the batch",
        expected="a tensor of its own",
        help="the layers may return their input: copy the batch before, or the output after",
    )
    pieces = oracle.microbatches(output, m)
    if came.shape != output.shape or came.dtype != output.dtype:
        expect.close(value["result"], output, slips=pipeline_slips.outputs(pieces), what=what, rank=rank)
    for k, piece in enumerate(pieces):
        start = sum(sizes[:k])
        rows = replace(value["result"], tensor=came[start : start + len(piece)])
        of = f"{what}, microbatch {k} (rows {start} to {start + len(piece) - 1}),"
        with expect.by_rank({rank: rows}, {rank: piece}):
            expect.close(rows, piece, slips=pipeline_slips.pieces(pieces, k), what=of, rank=rank, rtol=rtol)


def _expected_gradients(pipeline: Pipeline, number: int) -> list[list[Tensor | None]]:
    """What `.grad` holds after call `number`: what it held before the first, and each train_step's since then."""
    held = _before(pipeline)
    for call in pipeline.calls[: number + 1]:
        if call.function == "train_step":
            new = oracle.whole_gradients(pipeline.stages, call.rows_of_batch(), _target(call), loss=pipeline.loss)
            held = pipeline_slips.added(held, new)
    return held


def _before(pipeline: Pipeline) -> list[list[Tensor | None]]:
    if pipeline.gradients:
        return [list(stage) for stage in pipeline.gradients]
    return [[None for _ in stage] for stage in oracle.WholeNetwork(pipeline.stages).parameters()]


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
        if came[place] is None or (_is_zero(came[place]) and bool(wanted.any())):
            raise _missing(pipeline, stage, came, place, what=what, rank=rank)
        held = _before(pipeline) if number == 0 else _expected_gradients(pipeline, number - 1)
        wrong = pipeline_slips.wrong_gradients(pipeline, call, held) if call.function == "train_step" else iter(())
        slips = pipeline_slips.picked(wrong, stage, place)
        with expect.by_rank({rank: came[place]}, {rank: wanted}):
            expect.close(came[place], wanted, slips=slips, what=what, rank=rank, rtol=pipeline.rtol, contiguous=False)


def _missing(pipeline: Pipeline, stage: int, came: Sequence[Any], place: int, *, what: str, rank: int) -> CheckFailed:
    """A gradient of None or zeros; that no gradient came back is said where no parameter of the stage got one."""
    actual = "None" if came[place] is None else "zeros"
    last = stage == len(pipeline.stages) - 1
    nothing = not last and all(value is None or _is_zero(value) for value in came)
    why = f": no gradient came back from stage {stage + 1}" if nothing else ""
    return CheckFailed(
        f"rank {rank}: {what} is {'missing' if came[place] is None else 'all zeros'}{why}",
        expected="a gradient that is not zero",
        actual=actual,
        help=pipeline_slips.UNREACHED if last else pipeline_slips.NO_GRADIENT,
    )


def _is_zero(value: Any) -> bool:
    return isinstance(value, ReturnedTensor) and not bool(value.tensor.any())


def _compare_sizes(value: Any, sizes: Sequence[int], *, of: str, what: str, rank: int) -> None:
    expect.true(
        value == sizes,
        f"rank {rank}: {of} did not see the microbatches of {what}",
        expected=f"calls with {', '.join(map(str, sizes)) or 'no'} rows",
        actual=f"calls with {', '.join(map(str, value)) or 'no'} rows" if isinstance(value, list) else "",
        help="each microbatch goes through once, in order, and only the last stage computes losses",
    )
