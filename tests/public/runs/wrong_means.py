"""What classic mistakes make of the gradients of a step, on every rank: sums, single shares, and what stood before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from grader.checking import Slip
from tests.public.oracles.session_replay import Averaged, ByRank
from tests.public.runs.mistakes import Mistake

if TYPE_CHECKING:
    from torch import Tensor

Share = Callable[[int, str], "Tensor | None"]

CONSTANTS = (2, 4, 8)
MAX_MEETINGS = 1000
DIVIDE = "divide the sum by the world size of the group, dist.get_world_size(group), and once (ReduceOp.AVG divides)"
SEND_GRAD = (
    "all-reduce parameter.grad (not the parameter, and not a copy that is then dropped) and leave the result in "
    "parameter.grad, for every trainable parameter, in every step"
)
ACCUMULATE = "what is averaged is all of .grad as it stands after the last backward of the step"
RESET = "after a step nothing of it may count any more: flags, counters, buffers and handles begin anew"
LATE = "send a gradient when backward has accumulated it into .grad, and a bucket when all of its gradients are there"
FROZEN = "neither read nor write the gradients of parameters that did not require one when the wrapper was made"
ORDER = "all ranks issue their all-reduces in one order, whatever the order in which their gradients are ready"
INSIDE = "inside no_sync() backward only accumulates: the hooks must ask whether it is on"


def after(step: Averaged, of: Mapping[str, Tensor], num_ranks_of_world: int) -> list[Mistake]:
    """What the gradients of the trainable parameters `of` would be after the step."""
    size = len(step.held)
    held = _shares(step.held)
    total = _added(step.held)
    mistakes: list[tuple[str, str, Share]] = []
    if size > 1:
        text = f"the sum over the ranks, too large by {size}, the world size: it was not divided"
        mistakes.append((text, DIVIDE, total))
        text = f"the mean over the ranks divided by the world size once more, too small by {size}"
        mistakes.append((text, DIVIDE, _over(total, size * size)))
    for divisor in CONSTANTS:
        if divisor not in (size, size * size):
            text = f"the sum over the ranks divided by {divisor}, where the world size is {size}"
            mistakes.append((text, DIVIDE, _over(total, divisor)))
    if num_ranks_of_world != size:
        text = (
            f"the sum over the {size} ranks of the group divided by {num_ranks_of_world}, the size of the whole world"
        )
        mistakes.append((text, DIVIDE, _over(total, num_ranks_of_world)))
    if size > 1:
        text = f"the mean over the ranks that have a gradient, not over all {size}"
        mistakes.append(
            (text, "a missing gradient counts as zeros: divide by the world size", _mean_of_some(step.held))
        )
        text = "this rank's own gradient, as backward left it: it was not averaged" + (
            " in this step" if step.before else ""
        )
        mistakes.append((text, SEND_GRAD, held))
        text = f"this rank's own gradient divided by {size}, the world size: the other ranks' were not added"
        mistakes.append((text, SEND_GRAD, _over(held, size)))
        first = next(iter(step.held))
        text = f"the gradient of rank {first} on every rank, not the mean over the ranks"
        mistakes.append((text, SEND_GRAD, lambda _, name: step.held[first][name]))
    mistakes += _of_other_times(step, size)
    return [_mistake(*mistake, of, step.held) for mistake in mistakes]


def _of_other_times(step: Averaged, size: int) -> Iterator[tuple[str, str, Share]]:
    def last(rank: int, name: str) -> Tensor | None:
        held, earlier = step.held[rank][name], step.earlier[rank][name]
        return held if held is None or earlier is None else held - earlier

    yield "zeros, though a rank has a gradient", ACCUMULATE, _zeros(step.held)
    if step.before:
        yield "the gradient of the step before, once more", RESET, _shares(step.before)
        if size > 1:
            text = "the gradient of the step before, divided by the world size once more"
            yield text, RESET, _over(_shares(step.before), size)
    lasts = {rank: {name: last(rank, name) for name in step.held[rank]} for rank in step.held}
    text = "the mean of what the last backward added: what .grad held before is not in it"
    yield text, ACCUMULATE, _over(_added(lasts), size)
    text = "the mean of .grad as the first backward left it: what came after is not in it"
    yield text, ACCUMULATE, _over(_added(step.first), size)
    text = "the mean of .grad as it stood before the last backward (None counts as zeros)"
    yield text, LATE, _over(_added(step.earlier), size)


def frozen(step: Averaged, of: Mapping[str, Tensor]) -> list[Mistake]:
    """What frozen parameters' gradients would be after the step, if it took them for trainable ones."""
    size = len(step.held)
    total = _added(step.held)
    mistakes = [
        ("the mean over the ranks: it was averaged like that of a trainable parameter", FROZEN, _over(total, size)),
        ("the sum over the ranks: it was sent like that of a trainable parameter", FROZEN, total),
        ("what it was, divided by the world size", FROZEN, _over(_shares(step.held), size)),
    ]
    return [_mistake(*mistake, of, step.held) for mistake in mistakes]


def inside_no_sync(held: ByRank, of: Mapping[str, Tensor]) -> list[Mistake]:
    """What gradients would be inside no_sync(), if backward did not only accumulate."""
    size = len(held)
    total = _added(held)
    mistakes = [
        ("the mean over the ranks, not this rank's own gradient", INSIDE, _over(total, size)),
        ("the sum over the ranks, not this rank's own gradient", INSIDE, total),
        ("this rank's own gradient divided by the world size", INSIDE, _over(_shares(held), size)),
        ("zeros, though backward has left a gradient", INSIDE, _zeros(held)),
    ]
    return [_mistake(*mistake, of, held) for mistake in mistakes]


def met(held: ByRank, of: Mapping[str, Tensor], rank: int, name: str) -> Iterator[Slip]:
    """The mean of different parameters' gradients of one shape, which met in one all-reduce; this rank's is `name`."""
    alike = [other for other in of if (of[other].shape, of[other].dtype) == (of[name].shape, of[name].dtype)]
    others = [other for other in held if other != rank]
    if len(alike) ** len(others) > MAX_MEETINGS:
        return
    for chosen in itertools.product(alike, repeat=len(others)):
        names = dict(sorted([(rank, name), *zip(others, chosen, strict=True)]))
        shares = {one: {name: held[one][theirs]} for one, theirs in names.items()}
        mean = _over(_added(shares), len(held))(rank, name)
        if mean is not None and len(set(chosen) | {name}) > 1:
            text = ", ".join(f"'{theirs}' of rank {one}" for one, theirs in names.items())
            yield Slip(
                f"the mean of {text}: different parameters met in one all-reduce", ORDER, mean.to(of[name].dtype)
            )


def _mistake(gave: str, help: str, share: Share, of: Mapping[str, Tensor], ranks: ByRank) -> Mistake:
    shares = {(rank, name): share(rank, name) for rank in ranks for name in of}
    return Mistake(
        gave,
        help,
        {(rank, name): value.to(of[name].dtype) for (rank, name), value in shares.items() if value is not None},
    )


def _shares(gradients: ByRank) -> Share:
    return lambda rank, name: gradients[rank][name]


def _present(gradients: ByRank, name: str) -> list[Tensor]:
    return [own for by_name in gradients.values() if (own := by_name[name]) is not None]


def _added(gradients: ByRank) -> Share:
    """The sum over ranks; None where no rank has a gradient."""

    def total(_: int, name: str) -> Tensor | None:
        present = _present(gradients, name)
        return sum(present[1:], present[0]) if present else None

    return total


def _mean_of_some(gradients: ByRank) -> Share:
    total = _added(gradients)

    def mean(rank: int, name: str) -> Tensor | None:
        added = total(rank, name)
        return None if added is None else added / len(_present(gradients, name))

    return mean


def _zeros(gradients: ByRank) -> Share:
    return _over(_added(gradients), float("inf"))


def _over(share: Share, divisor: float) -> Share:
    def divided(rank: int, name: str) -> Tensor | None:
        value = share(rank, name)
        return None if value is None else value / divisor

    return divided
