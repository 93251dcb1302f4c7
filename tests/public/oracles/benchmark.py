"""What a benchmark of collectives must say, from the sizes and from the seconds of all ranks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

OPERATIONS = ("broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "all_to_all")
FIELDS = ("operation", "num_bytes", "world_size", "seconds", "algorithm_bandwidth", "bus_bandwidth")
ITEM_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "uint8": 1}


def bus_bandwidth(operation: str, num_bytes: int, seconds: float, world_size: int) -> float:
    """Bytes per second on each link, with the factors of nccl-tests' PERFORMANCE.md."""
    if world_size == 1:
        return 0.0
    moved = {"all_reduce": 2 * (world_size - 1), "broadcast": world_size, "reduce": world_size}
    return num_bytes * moved.get(operation, world_size - 1) / (world_size * seconds)


def whole_elements(num_elements: int, world_size: int) -> int:
    """Elements of the whole array: the next multiple of the world size."""
    return num_elements + (-num_elements) % world_size


def buffer_elements(operation: str, whole: int, world_size: int) -> list[int]:
    """Elements of the tensors that a collective on `whole` elements is given on one rank, the smallest first."""
    match operation:
        case "all_gather" | "reduce_scatter":
            return [whole // world_size, whole]
        case "all_to_all":
            return [whole, whole]
        case _:
            return [whole]


def slowest_median(seconds: Sequence[Sequence[float]]) -> float:
    """The median over iterations of the maximum over ranks; seconds[rank][iteration]."""
    slowest = [max(together) for together in zip(*seconds, strict=True)]
    return float(statistics.median(slowest))


def readings(seconds: Sequence[float], start: float) -> list[float]:
    """What a clock shows, twice for each of these durations: some time passes between two iterations as well."""
    shown = []
    for number, each in enumerate(seconds):
        start += 1 + number
        shown += [start, start + each]
        start += each
    return shown
