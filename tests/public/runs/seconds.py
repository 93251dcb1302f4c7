"""Which statistic of the ranks' times a wrong number of seconds is, and which size a wrong number of bytes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tests.public.oracles import benchmark as oracle
from tests.public.runs.told import Told, number_told

WHOLE = "S is the input of reduce-scatter, the output of all-gather, one rank's send buffer of all-to-all"
LONGEST_SHOWN = 5  # iterations


def seconds_told(value: Any, seconds: Sequence[Sequence[float]], members: Sequence[int], rank: int) -> Told:
    """seconds: by rank in the group and by iteration. members: the group's ranks."""
    slowest = [max(together) for together in zip(*seconds, strict=True)]
    means = [statistics.mean(together) for together in zip(*seconds, strict=True)]
    fastest = [min(together) for together in zip(*seconds, strict=True)]
    medians = [statistics.median(own) for own in seconds]
    own = medians[members.index(rank)]
    everything = [each for own_times in seconds for each in own_times]
    own_is_largest = ", which is the largest of the ranks' medians" if own == max(medians) else ""
    guesses = [
        (own, f"this rank's own median{own_is_largest}"),
        (max(medians), "the largest of the ranks' medians"),
        (statistics.median_low(slowest), "the lower of the two times in the middle, as torch.median has it"),
        (statistics.median_high(slowest), "the upper of the two times in the middle"),
        (statistics.mean(slowest), "the mean over iterations of the slowest rank's times"),
        (statistics.median(means), "the median over iterations of the mean over ranks"),
        (statistics.mean(means), "the mean over iterations and ranks"),
        (statistics.median(everything), "the median over all ranks and iterations"),
        (statistics.median(fastest), "the median over iterations of the fastest rank's times"),
        (min(slowest), "the smallest of the slowest rank's times"),
        (max(slowest), "the largest time of all"),
        (sum(slowest), "the sum over iterations of the slowest rank's times"),
        *((median, f"the median of rank {member}'s times") for median, member in zip(medians, members, strict=True)),
    ]
    told = number_told(value, [(number, Told(f"gave as seconds {name}")) for number, name in guesses])
    steps = "in each iteration take the maximum over the ranks, then statistics.median over the iterations"
    if len(slowest) <= LONGEST_SHOWN:
        table = "; ".join(f"rank {member} {_times(own)}" for member, own in zip(members, seconds, strict=True))
        steps += f". The times were: {table}; so the slowest are {_times(slowest)}"
    return Told(told.did if told else "gave other seconds than the median of the slowest rank's times", steps)


def bytes_told(value: Any, operation: str, num_elements: int, dtype: str, world_size: int) -> Told | None:
    """What a wrong num_bytes is."""
    item, whole = oracle.ITEM_BYTES[dtype], oracle.whole_elements(num_elements, world_size)
    right, below = whole * item, num_elements - num_elements % world_size
    count = "count dtype.itemsize bytes for each element of the whole array"
    up = f"the whole array has a multiple of W={world_size} elements, at least as many as asked for: {whole}"
    size = f"{world_size}, the world size"
    wrong = [
        (4 * whole, f"counts 4 bytes for each element, where {dtype} has {item}", count),
        (whole, "gave as num_bytes the number of elements", count),
        (right / 1024, "gave num_bytes in units of 1024 bytes", count),
        (right / 1000, "gave num_bytes in units of 1000 bytes", count),
        (
            num_elements * item,
            f"counts the bytes of {num_elements} elements, not rounded up to a multiple of {size}",
            up,
        ),
        (below * item, f"counts the bytes of {below} elements, rounded down to a multiple of {size}", up),
        (right / world_size, f"counts the bytes of one piece of {operation}: too small by {size}", WHOLE),
        (right * world_size, f"counts too many bytes by {size}", WHOLE),
    ]
    return number_told(value, [(number, Told(did, help)) for number, did, help in wrong])


def own_seconds_told(value: Any, readings: Sequence[float], iteration: int) -> Told:
    """readings: of the clock that was passed, two for each iteration."""
    starts, ends = readings[::2], readings[1::2]
    own = [end - start for start, end in zip(starts, ends, strict=True)]
    guesses = [
        (ends[iteration] - starts[0], "counts from the first reading of the clock, not from its own"),
        (ends[iteration] - ends[iteration - 1], "counts from the end of the iteration before, with all between them"),
        (sum(own[: iteration + 1]), "is the sum of the iterations so far"),
        (sum(own) / len(own), "is the mean over the iterations"),
        (ends[iteration], "is a reading of the clock, not the difference of two"),
    ]
    told = number_told(value, [(number, Told(did)) for number, did in guesses])
    help = "subtract the reading before run() from the reading after it, both of the clock that was passed"
    return Told(told.did if told else "is not the difference of its two readings of the clock that was passed", help)


def _times(seconds: Sequence[float]) -> str:
    return f"[{', '.join(f'{each:.4g}' for each in seconds)}]"
