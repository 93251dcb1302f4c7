"""Which reduction gave these numbers: another operator, another divisor, or ranks that count twice or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

from tests.public.oracles import collectives as oracle
from tests.public.runs.told import UNWRITTEN, Told, agree, near, tolerance

if TYPE_CHECKING:
    from torch import Tensor

OPERATORS = ("SUM", "AVG", "MAX", "MIN", "PRODUCT")
LARGEST_GROUP = 5  # ranks whose shares are looked for: 3 to the power of it combinations


def reduced_wrongly(
    came: Tensor, tensors: Sequence[Tensor], op: str, *, rank: int, members: Sequence[int], world_size: int
) -> Told | None:
    """What these numbers are, where they are not the tensors of `members` reduced by `op`; None if that is unclear.

    tensors: what each of the members brings, of the shape of the result. world_size: of the world, not of the group.
    """
    expected = oracle.reduced(tensors, op)
    if came.shape != expected.shape or came.dtype != expected.dtype or not came.numel():
        return None
    kind = came.is_floating_point() or came.is_complex()
    if kind and bool((came != came).any()):
        count = int((came != came).sum())
        return Told(f"gave NaN in {count} of its {came.numel()} numbers", UNWRITTEN)
    return (
        _shares(came, tensors, op, rank=rank, members=members)
        or _another_operator(came, tensors, op)
        or (_another_divisor(came, tensors, world_size) if op == "AVG" else None)
    )


def _another_operator(came: Tensor, tensors: Sequence[Tensor], op: str) -> Told | None:
    size, dtype = len(tensors), tensors[0].dtype
    exact = not (dtype.is_floating_point or dtype.is_complex)
    others = [
        other
        for other in OPERATORS
        if other != op and not (other == "AVG" and exact) and not (other in ("MAX", "MIN") and dtype.is_complex)
    ]
    fits = [other for other in others if near(came, oracle.reduced(tensors, other))]
    if len(fits) != 1:
        return None
    if op == "AVG" and fits == ["SUM"]:
        return Told(
            f"gave the sum over the ranks, not their mean: too large by {size}, the world size",
            "AVG is the sum divided by the world size of the group, once, when every rank's part is in",
        )
    if op == "SUM" and fits == ["AVG"]:
        return Told(
            f"gave the mean over the ranks, not their sum: too small by {size}, the world size",
            "divide for AVG alone",
        )
    return Told(f"gave the {fits[0]} of the ranks' tensors, not their {op}", "look at the operator that is passed")


def _another_divisor(came: Tensor, tensors: Sequence[Tensor], world_size: int) -> Told | None:
    """For AVG: a sum that is divided by another number than the world size of the group."""
    size = len(tensors)
    total = oracle.reduced(tensors, "SUM")
    once = "divide by the world size of the group that was passed, once"
    divisors = {
        size * size: f"twice by {size}, the world size",
        world_size: f"by {world_size}, the size of the world, where the group has {_ranks(size)}",
        2: f"by 2, where the group has {_ranks(size)}",
    }
    for divisor, words in divisors.items():
        if divisor != size and near(came, total / divisor):
            return Told(f"gave the sum divided {words}", once)
    return None


def _shares(came: Tensor, tensors: Sequence[Tensor], op: str, *, rank: int, members: Sequence[int]) -> Told | None:
    """Each rank's share in the wrong numbers, if one combination of them explains all: first all, then by chunk."""
    import torch

    expected = oracle.reduced(tensors, op)
    wrong = ~agree(came, expected, tolerance(expected)).reshape(-1)
    chunks = torch.tensor_split(torch.arange(came.numel()), len(tensors))
    first = next((chunk for chunk in chunks if bool(wrong[chunk].any())), None)
    for places in [wrong.nonzero().reshape(-1)] + ([first[wrong[first]]] if first is not None else []):
        own = [tensor.reshape(-1)[places] for tensor in tensors]
        counts = _counts(came.reshape(-1)[places], own, op)
        if counts is None:
            continue
        told = _told(counts, rank=rank, members=members)
        if len(places) == came.numel():
            return told
        every = "every element is in a chunk, for any n: piece_sizes(n, W) has the lengths"
        where = f", in {_places(places.tolist(), came.numel())}"
        return Told(told.did + where, every if sum(counts) == 1 else told.help)
    return None


def _counts(came: Tensor, tensors: Sequence[Tensor], op: str) -> tuple[int, ...] | None:
    """How often each rank's tensor is in a sum: 0, 1 or 2; for other operators, the one that was left as it was.

    None where no combination, or more than one, gives these numbers.
    """
    import torch

    size = len(tensors)
    if size < 2 or size > LARGEST_GROUP or not len(came):
        return None
    alone = [tuple(int(place == one) for place in range(size)) for one in range(size)]
    if op not in ("SUM", "AVG"):
        fits = [counts for counts, tensor in zip(alone, tensors, strict=True) if near(came, tensor)]
        return fits[0] if len(fits) == 1 else None
    kind = torch.complex128 if came.is_complex() else torch.float64
    parts = torch.stack([tensor.to(kind) for tensor in tensors])
    combinations = torch.tensor(list(product(range(3), repeat=size)), dtype=kind)
    sums = combinations @ parts
    unreduced = [(sums if op == "SUM" else sums / size, combinations)]
    if op == "AVG":  # a tensor that was left as it was is not divided either
        unreduced.append((parts, torch.eye(size, dtype=kind)))
    fits = []
    for values, counts in unreduced:
        # What is exact in the dtype of the result is compared exactly.
        values = values.to(came.dtype)
        allowed = torch.tensor([tolerance(one) for one in values]).unsqueeze(1)
        close = ((came - values).abs() <= allowed) if bool(allowed.any()) else came == values
        fits += [tuple(int(one.real) for one in counts[place]) for place in close.all(1).nonzero().reshape(-1)]
    # A multiple of the right sum is a matter of the divisor.
    return fits[0] if len(set(fits)) == 1 and (len(set(fits[0])) > 1 or set(fits[0]) == {0}) else None


def _told(counts: Sequence[int], *, rank: int, members: Sequence[int]) -> Told:
    by_count = [[member for member, count in zip(members, counts, strict=True) if count == each] for each in range(3)]
    missing, once, twice = by_count
    if not once and not twice:
        return Told("gave zeros")
    if len(once) == 1 and not twice:
        if once == [rank]:
            return Told("gave this rank's own numbers, reduced with nobody's", "return what was reduced, all of it")
        return Told(f"gave the numbers of rank {once[0]} alone", "combine what came with what this rank holds")
    if not twice:
        return Told(
            f"gave a sum without {_listed(missing)}",
            "every rank's part must be taken in once: count the steps, and what each of them brings",
        )
    without = f" and {_listed(missing)} not at all" if missing else ""
    return Told(
        f"gave a sum that counts {_listed(twice)} twice{without}",
        "take a part in once, on its way through each rank: what is sent on is then the partial sum, and nothing more",
    )


def _ranks(size: int) -> str:
    return "1 rank" if size == 1 else f"{size} ranks"


def _listed(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {' and '.join(map(str, ranks))}"


def _places(places: Sequence[int], count: int) -> str:
    together = list(places) == list(range(places[0], places[-1] + 1))
    at = f"{places[0]} to {places[-1]}" if together and len(places) > 1 else f"{places[0]}"
    more = "" if together else " and others"
    return f"{len(places)} of {count} elements (number{'s' if len(places) > 1 else ''} {at}{more})"
