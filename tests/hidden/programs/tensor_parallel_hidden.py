"""Programs that call tensor_parallel.py with arguments that it must refuse."""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist

from grader.world.program import attempt


def refuse(here, *, calls):
    """Yields what making a layer, or its forward where x is given, raised, and an all-reduce after it.

    Marks the end of the constructor, where it is not refused, and of what is refused.
    """
    for call in calls:
        refused = partial(getattr(here.submission, call["name"]), *call["arguments"])
        if call["x"] is not None:
            refused = partial(refused(), call["x"])
            here.mark("made a layer")
        outcome = attempt(refused)
        here.mark("raised")
        yield {**outcome, "sum": sum_over_ranks(here)}


def sum_over_ranks(here):
    """An all-reduce after calls that must send nothing: a stray message would show."""
    ranks = torch.tensor(here.rank + 1)
    dist.all_reduce(ranks)
    return int(ranks)
