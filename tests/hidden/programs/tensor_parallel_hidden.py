"""Programs that call tensor_parallel.py with arguments that it must refuse."""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist

from grader.world.program import attempt


def refuse(here, *, calls):
    """Yields what making a layer, or its forward where x is given, raised, and an all-reduce after it."""
    for call in calls:
        make = partial(getattr(here.submission, call["name"]), *call["arguments"])
        outcome = attempt(make) if call["x"] is None else attempt(make(), call["x"])
        yield {**outcome, "sum": sum_over_ranks(here)}


def sum_over_ranks(here):
    """An all-reduce after calls that must send nothing: a stray message would show."""
    ranks = torch.tensor(here.rank + 1)
    dist.all_reduce(ranks)
    return int(ranks)
