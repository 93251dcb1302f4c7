"""Training with a wrapper equals training in one process; where it does not, which classic mistake trains like that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from grader.checking import Check, PerRank, Slip, expect
from tests.public.oracles.data_parallel import Replica
from tests.public.runs.mistakes import Mistake, by_reach
from tests.public.runs.wrapper_errors import explaining_errors
from tests.public.runs.wrong_means import CONSTANTS, DIVIDE, LATE, RESET, SEND_GRAD

if TYPE_CHECKING:
    from torch import Tensor

WIDTHS, STEPS = (4, 6, 5, 2), 5
# A large eps: with a small one, AdamW's steps would not depend on the size of the gradients.
OPTIMIZER = {"lr": 0.05, "eps": 0.1, "weight_decay": 0.1}
BROADCAST = "the wrapper broadcasts the module's parameters and buffers from rank 0 when it is made"

Batch = tuple["Tensor", "Tensor"]
Gradients = Sequence["Tensor"]


def train(check: Check, size: int, wrapper: str, *, rows: Sequence[int], options: Mapping[str, Any] = {}) -> None:
    """Five AdamW steps with rows[r] rows on rank r equal those of one process with all rows, from rank 0's weights."""
    inputs = _Inputs.random(check, rows)
    shards = [inputs.shards(step) for step in range(STEPS)]
    with explaining_errors(wrapper):
        values = check.run(
            size,
            "data_parallel.train",
            cases=[f"{wrapper}, AdamW step {step}" for step in range(STEPS)],
            wrapper=wrapper,
            options=dict(options),
            initial=PerRank(inputs.initial),
            shards=PerRank([[by_rank[rank] for by_rank in shards] for rank in range(size)]),
            scale=inputs.scale,
            optimizer=OPTIMIZER,
        )
    right = Replica(inputs.initial[0], OPTIMIZER)
    gradients: Gradients = []
    for step, (x, y) in enumerate(inputs.batches):
        before, earlier = deepcopy(right), gradients
        gradients = right.gradients(x, y, 1 / len(x))
        expected = right.step(gradients)
        came: dict[tuple[int, int], Any] = {}
        for rank in range(size):
            what = f"{wrapper} after AdamW step {step}"
            parameters = expect.sequence(values[rank][step], len(expected), what=what, rank=rank)
            came |= {(rank, number): parameter for number, parameter in enumerate(parameters)}
        for (rank, number), parameter in came.items():
            what = f"parameter {number} of {wrapper} after AdamW step {step}"
            wrong = _Slips(inputs, step, before, earlier, came, (rank, number))
            by_rank = {one: came[one, number] for one in range(size)}
            with expect.by_rank(by_rank, dict.fromkeys(by_rank, expected[number])):
                expect.close(parameter, expected[number], what=what, rank=rank, contiguous=False, slips=wrong)


@dataclass(frozen=True)
class _Inputs:
    """initial: weights and buffers by rank; batches: of all ranks' rows, by step; rows: how many each rank has."""

    initial: Sequence[dict[str, Any]]
    batches: Sequence[Batch]
    rows: Sequence[int]

    @staticmethod
    def random(check: Check, rows: Sequence[int]) -> _Inputs:
        import torch

        def random(*shape: int, path: object) -> Tensor:
            return torch.randn(*shape, dtype=torch.float64, generator=check.generator(len(rows), path))

        initial = [
            {
                "weights": [random(o, i, path=(rank, "weight", i)) for i, o in itertools.pairwise(WIDTHS)],
                "biases": [random(o, path=(rank, "bias", o)) for o in WIDTHS[1:]],
                "output_scale": 1 + random(WIDTHS[-1], path=(rank, "scale")).abs(),
            }
            for rank in range(len(rows))
        ]
        count = sum(rows)
        batches = [
            (random(count, WIDTHS[0], path=("x", step)), random(count, WIDTHS[-1], path=("y", step)))
            for step in range(STEPS)
        ]
        return _Inputs(initial, batches, rows)

    @property
    def scale(self) -> float:
        """What a rank multiplies the sum of its losses by."""
        return len(self.rows) / sum(self.rows)

    def shards(self, step: int) -> list[Batch]:
        """By rank: the rows that the rank is given."""
        x, y = self.batches[step]
        return list(zip(x.split(list(self.rows)), y.split(list(self.rows)), strict=True))


@dataclass(frozen=True)
class _Slips:
    """For one parameter of one rank after `step`: what mistakes give there, when all before was right.

    before: the one process before the step. earlier: the gradients of the step before; none in the first.
    came:   by rank and number of the parameter.
    """

    inputs: _Inputs
    step: int
    before: Replica
    earlier: Gradients
    came: Mapping[tuple[int, int], Any]
    place: tuple[int, int]

    def __call__(self) -> list[Slip]:
        starts = [] if self.step else self._wrong_starts()
        return by_reach([*self._wrong_means(), *starts], self.came, self.place)

    def _wrong_means(self) -> Iterator[Mistake]:
        size = len(self.inputs.rows)
        own = [self._gradients(self.before, rank) for rank in range(size)]
        total, of_all = _sum(own), "the gradients over the ranks"
        gave = f"a step with the sum of {of_all}, too large by {size}, the world size: it was not divided"
        yield self._of(gave, DIVIDE, [total] * size)
        gave = f"a step with the mean of {of_all} divided by the world size once more, too small by {size}"
        yield self._of(gave, DIVIDE, [_over(total, size * size)] * size)
        for divisor in CONSTANTS:
            if divisor not in (size, size * size):
                gave = f"a step with the sum of {of_all} divided by {divisor}, where the world size is {size}"
                yield self._of(gave, DIVIDE, [_over(total, divisor)] * size)
        when = " in this step" if self.step else ""
        yield self._of(f"a step with this rank's own gradient: it was not averaged{when}", SEND_GRAD, own)
        yield self._of("a step with zeros for its gradient, though there is one", LATE, [_over(total, inf)] * size)
        if self.earlier:
            yield self._of("a step with the gradient of the step before, once more", RESET, [self.earlier] * size)
            gave = "a step with the gradient of the step before, divided by the world size once more"
            yield self._of(gave, RESET, [_over(self.earlier, size)] * size)

    def _wrong_starts(self) -> Iterator[Mistake]:
        initial = self.inputs.initial
        buffers_kept = [initial[0] | {"output_scale": own["output_scale"]} for own in initial]
        weights_kept = [own | {"output_scale": initial[0]["output_scale"]} for own in initial]
        for gave, starts in [
            ("a step from each rank's own weights and buffers: nothing was broadcast", initial),
            ("a step with each rank's own buffers: they were not broadcast", buffers_kept),
            ("a step from each rank's own weights: they were not broadcast", weights_kept),
            (
                f"a step from the weights of rank {len(initial) - 1}, the last, not of rank 0",
                initial[-1:] * len(initial),
            ),
        ]:
            replicas = [Replica(start, OPTIMIZER) for start in starts]
            own = [self._gradients(replica, rank) for rank, replica in enumerate(replicas)]
            mean = _over(_sum(own), len(own))
            yield self._mistake(gave, BROADCAST, [replica.step(mean) for replica in replicas])

    def _gradients(self, replica: Replica, rank: int) -> Gradients:
        return replica.gradients(*self.inputs.shards(self.step)[rank], self.inputs.scale)

    def _of(self, gave: str, help: str, gradients: Sequence[Gradients]) -> Mistake:
        """The step with these gradients, by rank, from where the one process stood."""
        return self._mistake(gave, help, [deepcopy(self.before).step(own) for own in gradients])

    def _mistake(self, gave: str, help: str, parameters: Sequence[Sequence[Tensor]]) -> Mistake:
        by_rank = enumerate(parameters)
        return Mistake(gave, help, {(rank, number): p for rank, own in by_rank for number, p in enumerate(own)})


def _sum(gradients: Sequence[Gradients]) -> list[Tensor]:
    return [sum(parts[1:], parts[0]) for parts in zip(*gradients, strict=True)]


def _over(gradients: Gradients, divisor: float) -> list[Tensor]:
    return [gradient / divisor for gradient in gradients]
