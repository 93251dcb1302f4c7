"""Calls of shard_columns, and what each must return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from grader.checking import Check, Slip, expect
from tests.public.oracles.tensor_parallel import columns
from tests.public.runs import cases
from tests.public.runs.conjugate_slips import OWN
from tests.public.runs.conjugates import unchanged

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Shard:
    """One call, by one process.

    layout:  how the weight lies in memory.
    refused: a ValueError whose message holds each of `naming`.
    """

    weight: Tensor
    rank: int
    world_size: int
    layout: Literal["plain", "strided", "transposed"] = "plain"
    refused: bool = False
    naming: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The arguments."""
        layout = "" if self.layout == "plain" else f", {self.layout} in memory"
        kind = str(self.weight.dtype).removeprefix("torch.")
        return f"{kind} {tuple(self.weight.shape)}{layout}, rank={self.rank}, world_size={self.world_size}"


def shards(check: Check, shape: tuple[int, ...], world_size: int, dtype: str = "float32") -> list[Shard]:
    """The calls of every rank of a world."""
    weight = cases.tensor(check, 0, shape, dtype, world_size)
    return [Shard(weight, rank, world_size) for rank in range(world_size)]


def in_other_layouts(calls: Sequence[Shard]) -> list[Shard]:
    """The same calls with weights that are not contiguous."""
    layouts: tuple[Literal["strided", "transposed"], ...] = ("strided", "transposed")
    return [replace(call, layout=layout) for call in calls for layout in layouts]


def run_shards(check: Check, calls: Sequence[Shard]) -> None:
    """Makes the calls in one process that has no process group, and compares results and arguments afterwards."""
    sent = [
        {"weight": call.weight, "rank": call.rank, "world_size": call.world_size, "layout": call.layout}
        for call in calls
    ]
    refused = [call.refused for call in calls]
    titles = [call.title for call in calls]
    (values,) = check.run(1, "tensor_parallel.shard", cases=titles, joined=False, calls=sent, refused=refused)
    for call, value in zip(calls, values, strict=True):
        what = f"shard_columns({call.title})"
        if call.refused:
            expect.raised(value, "ValueError", what=what, rank=0, naming=call.naming)
            continue
        came = expect.mapping(value, "value", "input", "new", what=what, rank=0)
        own = columns(call.weight, call.rank, call.world_size)
        expect.same(came["value"], own, slips=_slips(call), what=what, rank=0, outside_autograd=False)
        unchanged(came["input"], call.weight, what=f"the weight of {what}, after the call,", rank=0)
        expect.true(
            came["new"] is True,
            f"the result of {what} shares memory with the weight",
            expected="a copy: a view of the columns keeps the whole weight alive",
        )


def _slips(call: Shard) -> Iterator[Slip]:
    """Other parts of the weight."""
    weight, rank, world_size = call.weight, call.rank, call.world_size
    width, rest = divmod(weight.shape[-1], world_size)
    short = weight[..., rank * width : (rank + 1) * width]
    left = f"n // W = {width} columns, so that the last {rest} of {weight.shape[-1]} belong to no rank"
    yield Slip(left, f"the first n % W = {rest} ranks own one column more", short)
    rows = weight.tensor_split(world_size, dim=0)[rank]
    yield Slip("rows, not columns", "weights are (in, out), so the columns are the last dimension", rows)
    dealt = weight[..., rank::world_size]
    yield Slip(f"one column in {world_size}, from column {rank} on", "a rank's columns lie side by side", dealt)
    chunks = weight.chunk(world_size, dim=-1)
    if rank < len(chunks):
        yield Slip("what torch.chunk gives, which rounds up", "use piece_range of grader.given", chunks[rank])
    for other in range(world_size):
        gave = f"rank {other}'s columns, not rank {rank}'s"
        yield Slip(gave, OWN, columns(weight, other, world_size))
