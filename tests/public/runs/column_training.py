"""Training a column-parallel network, compared with training the unsplit one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from grader.checking import Check, PerRank, Slip, expect
from tests.public.oracles import tensor_parallel as oracle
from tests.public.runs.by_rank import of_each
from tests.public.runs.column_parallel import Layers, Numbers, largest, numbers, owned
from tests.public.runs.column_slips import wrong_schemes
from tests.public.runs.conjugates import CUT

if TYPE_CHECKING:
    from torch import Tensor

STEPS = 5
# A large eps: with a small one, AdamW's steps would not depend on the size of the gradients.
OPTIMIZER = {"lr": 0.05, "eps": 0.1, "weight_decay": 0.1}


def run_training(check: Check, size: int, sizes: tuple[int, ...]) -> None:
    """Five steps of AdamW on a network of these sizes, in one world: losses and parameters after each step."""
    start, *turns = (numbers(check, Layers(sizes), (size, turn)) for turn in range(STEPS + 1))
    batches = [(turn.x, turn.upstream) for turn in turns]
    weights, biases = (
        PerRank([[oracle.columns(whole, rank, size) for whole in kind] for rank in range(size)])
        for kind in (start.weights, start.biases)
    )
    values = check.run(
        size,
        "tensor_parallel.train",
        cases=[f"step {step}" for step in range(1, STEPS + 1)],
        sizes=list(sizes),
        weights=weights,
        biases=biases,
        batches=batches,
        optimizer=OPTIMIZER,
    )
    for number, after in enumerate(oracle.trained(start.weights, start.biases, batches, OPTIMIZER, "gelu")):
        step = f"step {number + 1} of training ColumnParallelMLP({list(sizes)})"
        of_step = {rank: values[rank][number] for rank in range(size)}
        for rank in range(size):
            came = expect.mapping(values[rank][number], "loss", "weight", "bias", what=step, rank=rank)
            expect.close(came["loss"], after.loss, what=f"the loss of {step}", rank=rank, outside_autograd=False)
            expect.true(
                came["loss"].requires_grad,
                f"rank {rank}: no gradient can arrive, since autograd knows of no way back from the loss of {step}",
                help=CUT,
            )
            for kind, wholes in (("weight", after.weights), ("bias", after.biases)):
                found = expect.sequence(came[kind], len(wholes), what=f"each {kind} after {step}", rank=rank)
                for layer, (parameter, whole) in enumerate(zip(found, wholes, strict=True)):
                    own, what = owned(whole, range(size)), f"layers[{layer}].{kind} after {step}"
                    slips = _after_wrong_backward(start, batches[0], kind, layer, rank, size) if number == 0 else ()
                    with expect.by_rank(of_each(of_step, kind, layer), own):
                        expect.close(parameter, own[rank], slips=slips, what=what, rank=rank, scale=largest(whole))


def _after_wrong_backward(
    start: Numbers, batch: tuple[Tensor, Tensor], kind: str, layer: int, rank: int, size: int
) -> Iterator[Slip]:
    """This rank's columns of a parameter after the first step, if the backward is wrong."""
    for wrong in wrong_schemes(size):
        after = oracle.after_first_step(start.weights, start.biases, batch, OPTIMIZER, "gelu", size, wrong.scheme)
        whole = (after.weights if kind == "weight" else after.biases)[layer]
        gave = f"what a step gives if the gradients are {wrong.gave}"
        yield Slip(gave, wrong.help, oracle.columns(whole, rank, size))
