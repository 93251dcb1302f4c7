"""What classic mistakes in column-parallel layers give, for the messages: one layer, and a network's backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.checking import Slip
from grader.world.values import ReturnedTensor
from tests.public.oracles import tensor_parallel as oracle
from tests.public.oracles.tensor_parallel import Scheme, columns
from tests.public.runs import conjugate_slips

if TYPE_CHECKING:
    from torch import Tensor

CLOSE = 1e-3  # of the largest number: two schemes differ by more


class WrongScheme(NamedTuple):
    """A mistake in a network's backward. gave: completes "the gradients of the weights are …"."""

    gave: str
    help: str
    scheme: Scheme


def wrong_schemes(world_size: int) -> list[WrongScheme]:
    """The schemes that are not Scheme("sum", "slice")."""
    inner = "between layers each rank goes on with other columns, so it must get, for its own columns, the sum over "
    inner += (
        "ranks of what all have: a reduce-scatter in the backward of gather_for_sharded; only the last gather slices"
    )
    last = "after the last gather all ranks go on alike, so each has the whole gradient already, and a sum counts it "
    last += "once for each rank: gather_for_replicated there, which slices; gather_for_sharded between layers"
    too_large = f"too large by {world_size}, the world size"
    return [
        WrongScheme(
            "those of slicing in every gather's backward: right in the last layer only", inner, Scheme("slice", "slice")
        ),
        WrongScheme(f"those of a sum in every gather's backward: {too_large}", last, Scheme("sum", "sum")),
        WrongScheme(
            f"those of two sums over the ranks between layers: {too_large}, again for each layer on the way back",
            "the reduce-scatter in gather_for_sharded's backward is the sum over ranks, so the layer that follows it "
            "does not copy its input: copy_input=False",
            Scheme("sum", "slice", copies=True),
        ),
        WrongScheme(
            f"those of slicing between layers and a sum at the end: the last layer's are {too_large}",
            f"{inner}; at the end a sum counts the gradient once for each rank",
            Scheme("slice", "sum"),
        ),
    ]


def matching_scheme(
    found: Sequence[Sequence[Any]],
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    upstream: Tensor,
    activation: str,
) -> WrongScheme | None:
    """The mistake that gives just these gradients of the weights. found: by rank in the group, then layer by layer."""
    world_size = len(found)
    for wrong in wrong_schemes(world_size):
        back = oracle.backward_by_ranks(x, weights, biases, upstream, activation, world_size, wrong.scheme)
        if all(
            _alike(came, columns(whole, place, world_size))
            for place, values in enumerate(found)
            for came, whole in zip(values, back.weights, strict=True)
        ):
            return wrong
    return None


def _alike(came: Any, wanted: Tensor) -> bool:
    if not isinstance(came, ReturnedTensor) or came.tensor.shape != wanted.shape:
        return False
    difference = (came.tensor.double() - wanted.double()).abs()
    return not wanted.numel() or bool((difference <= CLOSE * wanted.double().abs().max()).all())


def outputs(y: Tensor, biases: Sequence[Tensor], place: int, world_size: int, *, gathered: bool) -> Iterator[Slip]:
    """Wrong outputs of one layer; y: the whole right one."""
    shares = [columns(y, rank, world_size) for rank in range(world_size)]
    if gathered:
        yield from conjugate_slips.gathered(shares, place)
    else:
        yield Slip("all columns, although gather_output=False", "return this rank's own columns", y)
        for rank in range(world_size):
            yield Slip("another rank's columns of the output", conjugate_slips.OWN, shares[rank])
    for bias in biases:
        for times, gave in ((0, "x @ weight without the bias"), (world_size, f"the bias {world_size} times")):
            whole = y + (times - 1) * bias
            help = "the output is x @ weight + bias, of the own columns, before they are gathered"
            yield Slip(gave, help, whole if gathered else columns(whole, place, world_size))


def inputs(x: Tensor, parts: Sequence[Tensor], place: int, members: Sequence[int], *, copied: bool) -> Iterator[Slip]:
    """Wrong gradients of a layer's input. x: the right whole one; parts: what comes from each rank's columns."""
    if copied:
        yield from conjugate_slips.summed(parts, place, members)
        return
    help = "with copy_input=False the caller sums: the gradient of x is what comes from this rank's columns"
    yield Slip("the sum over the ranks, although copy_input=False", help, x)
