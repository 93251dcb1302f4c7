"""What classic mistakes give for the mean and the variance over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Slip
from tests.public.oracles import collectives_bonus as oracle
from tests.public.runs.told import Told, tensor_of

if TYPE_CHECKING:
    from torch import Tensor

CANCELS = (
    "far from zero a difference of large sums cancels: put count, mean and M2, the sum of squared deviations from "
    "the own mean, into the table, all in float64"
)
WEIGHTS = "a rank with more elements weighs more: multiply each mean by its count, and divide by the count of all"
BETWEEN = "M2 of all is the sum of the ranks' M2, and of count · (mean of the rank − mean of all)² for each"
ALL = "add up the ranks' counts, means times counts and M2 first, then divide"


def slips(everyone: Sequence[Tensor], members: Sequence[int], place: int) -> tuple[list[Slip], list[Slip]]:
    """Those of the mean and those of the variance, on the rank at `place` among the members.

    everyone: what each rank of the world passed; some element is there among the members.
    """
    import torch

    wide = [tensor.detach().reshape(-1).to(torch.float64) for tensor in everyone]
    own = [wide[member] for member in members]
    held = [one for one in own if one.numel()]
    nan = torch.tensor(float("nan"), dtype=torch.float64)
    means = torch.stack([one.mean() if one.numel() else nan for one in own])
    there = torch.stack([one.mean() for one in held])
    count, m2 = sum(one.numel() for one in own), torch.stack([one.var(correction=0) * one.numel() for one in held])
    mean = [
        Slip("the mean of the ranks' means, whatever they hold", WEIGHTS, there.mean()),
        Slip("the mean of the ranks' means, with 0 for a rank that holds nothing", WEIGHTS, there.sum() / len(own)),
        Slip("this rank's own mean", ALL, means[place]),
        Slip("the sum of the ranks' means", WEIGHTS, there.sum()),
        Slip("the sum of all elements", "divide by the count of all ranks' elements", torch.cat(own).sum()),
    ]
    single = torch.cat(own).to(torch.float32).to(torch.float64)
    variance = [
        Slip("the variance inside the ranks alone: that between their means is missing", BETWEEN, m2.sum() / count),
        Slip("this rank's own variance", ALL, own[place].var(correction=0) if own[place].numel() else nan),
        Slip("M2, the sum of the squared deviations", "divide by the count", torch.cat(own).var(correction=0) * count),
        Slip("the variance of the numbers rounded to float32", CANCELS, single.var(correction=0)),
    ]
    if count > 1:
        sample = torch.cat(own).var(correction=1)
        help = "divide by the count of all elements, not by one less"
        variance.insert(0, Slip("the sample variance, not the population variance", help, sample))
    if len(members) != len(everyone):
        world = oracle.mean_and_variance(wide)
        for kind, name, value in ((mean, "mean", world[0]), (variance, "variance", world[1])):
            kind.append(Slip(f"the {name} over all ranks of the world", "reduce over the group that was passed", value))
    return mean, variance


def not_a_number(value: Any, tensors: Sequence[Tensor]) -> Told | None:
    """A NaN where some rank holds nothing, and its own mean is one."""
    came = tensor_of(value)
    if came is None or came.numel() != 1 or bool(came == came) or all(one.numel() for one in tensors):
        return None
    return Told("gave NaN where a rank holds nothing", "the mean of no elements is NaN: leave that rank's row at zero")
