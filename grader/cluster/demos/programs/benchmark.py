"""The submission times an all-reduce; rank 1 is late, so that the barrier has something to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import torch
import torch.distributed as dist

from grader.world import Here


def time_collective(here: Here, *, iterations: int) -> Iterator[list[float] | None]:
    """Case 0: nothing. Case 1: the seconds of each iteration, on a clock that counts its readings.

    It marks "clock" and "sync", and on rank 1 "work" for what the first synchronize waits for.
    """
    yield None
    tensor, readings = torch.ones(4), count()
    unfinished = ["work"] if here.rank == 1 else []

    def synchronize() -> None:
        while unfinished:
            here.mark(unfinished.pop())
        here.mark("sync")

    def clock() -> float:
        here.mark("clock")
        return float(next(readings))

    yield here.submission.time_collective(
        lambda: dist.all_reduce(tensor),
        warmup=0,
        iterations=iterations,
        synchronize=synchronize,
        barrier=dist.barrier,
        clock=clock,
    )
