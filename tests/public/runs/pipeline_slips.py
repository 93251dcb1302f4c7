"""What classic mistakes in a pipeline leave in gradients, losses and outputs, for the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from grader.checking import Slip, expect
from tests.public.oracles import pipeline_parallel as oracle

if TYPE_CHECKING:
    from torch import Tensor

    from tests.public.runs.pipelines import Call, Pipeline

ADDS_UP = (
    "train_step adds to .grad what it finds there, and clears nothing: neither at its start nor between microbatches"
)
WEIGHTS = "microbatch k weighs rows_k / num_rows in the gradients, once"
BUFFERS = "backward still needs each activation that was received, so each microbatch needs a buffer of its own"
LEAVES = (
    "the .grad of one leaf adds up over the microbatches: give each microbatch a leaf of its own, or send what its "
    "own backward added, no more"
)
NO_GRADIENT = (
    "the activation that the next stage receives must be a leaf that requires a gradient before its layers run; its "
    ".grad after the backward is what goes back"
)
UNREACHED = "backward has not reached this parameter"
UNWEIGHTED = (
    "each loss that is returned is the mean over its own rows, without weights; weights belong in the gradients"
)
TOGETHER = "put the outputs of all microbatches together, in order, along dimension 0"
HINTS = {
    "'NoneType' object": f"where does the None come from? If from a .grad: {NO_GRADIENT}",
    "is not part of group": "isend and irecv want the peer's rank in the world: dist.get_process_group_ranks(group) "
    "has it for each stage",
    "does not require grad": f"backward has no way back from this tensor: {NO_GRADIENT}",
}


def hinting() -> AbstractContextManager[None]:
    """An error of a world gets a hint where it has a frequent cause that it does not tell."""
    return expect.hinting(HINTS)


class WrongGradients(NamedTuple):
    """What `.grad` holds after a step with a mistake. gave, help: as of a Slip."""

    gave: str
    help: str
    gradients: oracle.Gradients


def wrong_gradients(pipeline: Pipeline, call: Call, held: oracle.Gradients) -> Iterator[WrongGradients]:
    """What a train_step leaves that is wrong in one of the classic ways. held: what `.grad` held before it."""
    assert call.batch is not None, "a training step has a batch"
    assert call.target is not None, "a training step has a target"
    x, y, loss, m = call.batch, call.target, pipeline.loss, pipeline.num_microbatches
    given = pipeline.stages, x, y
    kept = any(gradient is not None for stage in held for gradient in stage)
    if kept:
        gave = "the gradient of this step alone: what .grad held before is gone"
        yield WrongGradients(gave, ADDS_UP, oracle.whole_gradients(*given, loss=loss))
    if m == 1:
        return
    for gave, help, weights in _weights([len(rows) for rows in oracle.microbatches(x, m)]):
        new = oracle.weighted_gradients(*given, loss=loss, weights=weights)
        yield WrongGradients(gave, help, added(held, new))
        if kept:
            yield WrongGradients(f"{gave}, and what .grad held before is gone", ADDS_UP, new)
    if len(x) % m == 0 and x.is_floating_point():
        gave = "what one receive buffer for all microbatches leaves: every backward saw the last one's activation"
        new = oracle.shared_gradients(*given, loss=loss, num_microbatches=m, share="buffer")
        yield WrongGradients(gave, BUFFERS, added(held, new))
    gave = "what comes when each gradient that is sent back holds those of the earlier microbatches too"
    new = oracle.shared_gradients(*given, loss=loss, num_microbatches=m, share="leaf")
    yield WrongGradients(gave, LEAVES, added(held, new))


def _weights(rows: Sequence[int]) -> Iterator[tuple[str, str, list[float]]]:
    """What to call wrong weights of the microbatches, one thing to try, and the weights."""
    m, total = len(rows), sum(rows)
    right = [count / total for count in rows]
    even = len(set(rows)) == 1
    yield f"the microbatches' gradients added without weights{_large(m) if even else ''}", WEIGHTS, [1.0] * m
    yield "the microbatches' gradients with 1 / num_microbatches each, not rows_k / num_rows", WEIGHTS, [1 / m] * m
    twice = f"the microbatches' gradients weighted and then divided by {m}, num_microbatches, too"
    yield twice, WEIGHTS, [weight / m for weight in right]
    yield "the last microbatch's part alone", ADDS_UP, [0.0] * (m - 1) + right[-1:]
    yield "the gradient of the last microbatch's loss alone", ADDS_UP, [0.0] * (m - 1) + [1.0]
    yield "the first microbatch's part alone", ADDS_UP, right[:1] + [0.0] * (m - 1)
    missing = "all microbatches' parts but the last one's: its backward is missing"
    yield missing, "every microbatch goes backward once", [*right[:-1], 0.0]


def _large(m: int) -> str:
    return f": the step's part is too large by {m}, num_microbatches"


def added(held: oracle.Gradients, new: oracle.Gradients) -> oracle.Gradients:
    """The sums, gradient by gradient; None stands for no gradient."""
    return [[_sum(*pair) for pair in zip(*stage, strict=True)] for stage in zip(held, new, strict=True)]


def _sum(held: Tensor | None, new: Tensor | None) -> Tensor | None:
    return new if held is None else held if new is None else held + new


def picked(wrong: Iterator[WrongGradients], stage: int, place: int) -> Iterator[Slip]:
    """The slips of one parameter."""
    for gave, help, gradients in wrong:
        gradient = gradients[stage][place]
        if gradient is not None:
            yield Slip(gave, help, gradient)


def losses(right: Tensor, rows: Sequence[int]) -> Iterator[Slip]:
    """Wrong losses of the microbatches."""
    import torch

    m = len(rows)
    weights = torch.tensor(rows, dtype=right.dtype) / sum(rows)
    yield Slip("the losses times their weights, rows_k / num_rows", UNWEIGHTED, right * weights)
    yield Slip(f"the losses divided by {m}, num_microbatches", UNWEIGHTED, right / m)
    one = f"return one tensor of {m} losses, in the order of the microbatches"
    yield Slip("one number, the mean of the microbatches' losses", one, right.mean())
    yield Slip("one number, the loss of the whole batch", one, (right * weights).sum())
    yield Slip("one number, the sum of the microbatches' losses", one, right.sum())
    yield Slip("the last microbatch's loss alone", one, right[-1])
    yield Slip("the last microbatch's loss for every microbatch", one, right[-1].expand(m))
    yield Slip("the losses from the last microbatch to the first", one, right.flip(0))


def outputs(pieces: Sequence[Tensor]) -> Iterator[Slip]:
    """Outputs of another shape than that of the whole batch, out of the microbatches' right ones."""
    import torch

    for k, piece in enumerate(pieces):
        yield Slip(f"the output of microbatch {k} alone, of {len(pieces)}", TOGETHER, piece)
    if len({piece.shape for piece in pieces}) == 1:
        yield Slip("the microbatches' outputs stacked in a new first dimension", TOGETHER, torch.stack(list(pieces)))


def pieces(pieces: Sequence[Tensor], k: int) -> Iterator[Slip]:
    """What may stand where the output of microbatch k should, out of the right ones of all."""
    import torch

    for j, piece in enumerate(pieces):
        yield Slip(f"the output of microbatch {j}", TOGETHER, piece)
    m = len(pieces)
    order = "a microbatch is rows that follow each other, and its output stands in their place"
    yield Slip(f"the output of one row in {m}, from row {k} on", order, torch.cat(list(pieces))[k::m])
