"""What every module of the assignment may import: shared types, the uneven rule, and the exchange of sizes.

Given, complete and never graded; its messages are not counted. Every function that takes `group` is called by
every rank of the group; None is the default group; roots and peers are ranks in the group, and a rank outside
it gets a ValueError. Nothing here is changed by a call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

Group: TypeAlias = dist.ProcessGroup | None
RedOp: TypeAlias = dist.ReduceOp.RedOpType
"""One of dist.ReduceOp.SUM, AVG, MAX, MIN and PRODUCT."""
Operation: TypeAlias = Literal["broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "all_to_all"]

# torch 2.13 renamed the tensor forms of two collectives. By these names they are there in every version:
#   all_gather_single(output, input, group=None, async_op=False)
#   reduce_scatter_single(output, input, op=dist.ReduceOp.SUM, group=None, async_op=False)
# Output and input of all ranks are as in torch: flat in dimension 0, the same size on every rank.
_Collective: TypeAlias = Callable[..., dist.Work | None]
all_gather_single: _Collective = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
reduce_scatter_single: _Collective = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


class TensorSpec(NamedTuple):
    """What a rank must know to allocate a tensor that another rank holds; `device` is this rank's own."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class Measurement(NamedTuple):
    """What one timed collective took.

    num_bytes:           bytes of the whole array (the input of reduce-scatter, the output of all-gather, one
                         rank's send buffer of all-to-all).
    seconds:             of one call: the median over iterations of the maximum over ranks.
    algorithm_bandwidth: bytes per second: num_bytes / seconds.
    bus_bandwidth:       bytes per second that each link carries; it compares operations and world sizes.
    """

    operation: Operation
    num_bytes: int
    world_size: int
    seconds: float
    algorithm_bandwidth: float
    bus_bandwidth: float


class Kind(Enum):
    """What a pipeline stage can do with one microbatch. The value is the short form that an Action prints."""

    RECEIVE_ACTIVATION = "ra"
    FORWARD = "F"
    SEND_ACTIVATION = "sa"
    RECEIVE_GRADIENT = "rg"
    BACKWARD = "B"
    SEND_GRADIENT = "sg"


class Action(NamedTuple):
    """One step of a pipeline stage. Prints as F0, B3, ra0 (receive activation), sg2 (send gradient)."""

    kind: Kind
    microbatch: int

    def __repr__(self) -> str:
        return f"{self.kind.value}{self.microbatch}"


def piece_sizes(n: int, world_size: int) -> list[int]:
    """The uneven rule: how many of n items each rank owns, by rank. The first n % world_size own one more.

    piece_sizes(10, 4) == [3, 3, 2, 2];  piece_sizes(1, 3) == [1, 0, 0].
    Raises ValueError for n < 0 or world_size < 1.
    """
    if n < 0:
        raise ValueError(f"cannot split {n} items; expected 0 or more")
    if world_size < 1:
        raise ValueError(f"a world has 1 rank or more, not {world_size}")
    whole, rest = divmod(n, world_size)
    return [whole + 1 if rank < rest else whole for rank in range(world_size)]


def piece_range(n: int, rank: int, world_size: int) -> range:
    """The indices that `rank` owns of n items, by the uneven rule: piece_range(10, 1, 4) == range(3, 6).

    Raises ValueError for a rank outside 0 ... world_size - 1, and as `piece_sizes` does.
    """
    sizes = piece_sizes(n, world_size)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is outside a world of {world_size}: 0 to {world_size - 1}")
    start = sum(sizes[:rank])
    return range(start, start + sizes[rank])


def broadcast_spec(tensor: Tensor | None, src: int, *, group: Group = None) -> TensorSpec:
    """Tells every rank the shape and dtype of the tensor that rank `src` passes; other ranks' are ignored.

    Raises ValueError on every rank if src passes None or is no rank of the group.
    """
    rank, world_size = _place(group)
    if not 0 <= src < world_size:
        raise ValueError(f"src is {src}; expected a rank in the group: 0 to {world_size - 1}")
    told: list[tuple[tuple[int, ...], torch.dtype] | None] = [None]
    if rank == src and tensor is not None:
        told[0] = (tuple(tensor.shape), tensor.dtype)
    dist.broadcast_object_list(told, group=group, group_src=src)
    if told[0] is None:
        raise ValueError(f"rank {src} is the source and passed None; expected a tensor there")
    shape, dtype = told[0]
    return TensorSpec(shape, dtype, _device(group))


def exchange_sizes(size: int, *, group: Group = None) -> list[int]:
    """Every rank passes one whole number and gets those of all ranks, by rank.

    Rank 0 passes 5, rank 1 passes 0, rank 2 passes 7: all three get [5, 0, 7].
    """
    _, world_size = _place(group)
    mine = torch.tensor([size], dtype=torch.int64, device=_device(group))
    sizes = mine.new_empty(world_size)
    all_gather_single(sizes, mine, group=group)
    return [int(each) for each in sizes.tolist()]


def exchange_counts(counts: Sequence[int], *, group: Group = None) -> list[int]:
    """Every rank passes a whole number for each rank: counts[r] goes to rank r, and entry i came from rank i.

    Rank 0 passes [1, 2], rank 1 passes [3, 4]: rank 0 gets [1, 3], rank 1 gets [2, 4].
    Raises ValueError, before it sends, if counts has not one number for each rank.
    """
    _, world_size = _place(group)
    if len(counts) != world_size:
        raise ValueError(f"{len(counts)} counts came; expected one for each of the {world_size} ranks")
    mine = torch.tensor(list(counts), dtype=torch.int64, device=_device(group))
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine, group=group)
    return [int(count) for count in theirs.tolist()]


def synchronize(device: torch.device | str) -> None:
    """Waits until `device` has done all that was asked of it. A CPU is always done: it does nothing there."""
    device = torch.device(device)
    # torch.cpu has a `synchronize` too; where the harness times a virtual accelerator, that is its place.
    torch.get_device_module(device).synchronize(device)


def sweep(operation: Operation, sizes: Sequence[int], **options: Any) -> list[Measurement]:
    """Measures one operation at each size (a number of elements), in the order given; every rank calls.

    It calls `benchmark_collective(operation, size, **options)` of the module `benchmark` that can be imported
    where you run it: your own, from a script in the assignment's folder.
    """
    benchmark_collective = importlib.import_module("benchmark").benchmark_collective
    return [benchmark_collective(operation, size, **options) for size in sizes]


def as_table(measurements: Iterable[Measurement]) -> str:
    """The measurements as lines of text, a heading with the units first. 1 GB is 10⁹ bytes."""
    rows = [("operation", "ranks", "size (bytes)", "time (µs)", "algorithm (GB/s)", "bus (GB/s)")]
    for each in measurements:
        rows.append(
            (
                each.operation,
                f"{each.world_size}",
                f"{each.num_bytes}",
                f"{each.seconds * 1e6:.1f}",
                f"{each.algorithm_bandwidth / 1e9:.3f}",
                f"{each.bus_bandwidth / 1e9:.3f}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return "\n".join("  ".join(line) for line in lines)


def _place(group: Group) -> tuple[int, int]:
    """This process's rank in the group, and the group's world size. Outside the group: ValueError."""
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this rank is not in the group; only the group's members may call")
    return rank, dist.get_world_size(group)


def _device(group: Group) -> torch.device:
    """Where this rank's tensors for the group live: its own GPU with NCCL, else the CPU."""
    if "nccl" in dist.get_backend(group):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
