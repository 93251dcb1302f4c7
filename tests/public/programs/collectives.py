"""Programs that call the collectives of collectives.py: calls and arguments only."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor

from grader.world.program import attempt, shares_memory


def call(here, *, function, calls, inputs, groups):
    """Yields what became of each call of the submission's `function`: {"result", "input", "new"}, or its refusal.

    calls:  by call: {"arguments": [...], "layout": ..., "group": "default", "own" or "other", "refused": bool}.
    groups: lists of ranks; every rank is in one, its own. With none, the default group is used.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    made = [dist.new_group(ranks) for ranks in groups]
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    collective = getattr(here.submission, function)
    kept = []
    for each, given in zip(calls, inputs, strict=True):
        argument = laid_out(given, each["layout"])
        arguments = [getattr(dist.ReduceOp, one) if isinstance(one, str) else one for one in each["arguments"]]
        keywords = {"own": {"group": own}, "other": {"group": other}, "default": {}}[each["group"]]
        if each["refused"]:
            yield attempt(collective, argument, *arguments, **keywords)
            continue
        result = collective(argument, *arguments, **keywords)
        new = not any(
            shares_memory(ours, theirs) for ours in tensors_of(result) for theirs in tensors_of(argument, kept)
        )
        kept.append(result)
        yield {"result": result, "input": argument, "new": new}


def laid_out(value, layout):
    """The same numbers, in memory as `layout` says; lists entry by entry."""
    if isinstance(value, list):
        return [laid_out(entry, layout) for entry in value]
    if value is None or layout == "plain":
        return value
    if layout == "leaf":
        return value.requires_grad_()
    if layout == "strided":
        wide = value.new_zeros((*value.shape, 2))
        view = wide[..., 1]
    elif layout == "transposed":
        view = torch.empty(value.shape[::-1], dtype=value.dtype).permute(*reversed(range(value.dim())))
    return view.copy_(value)


def tensors_of(*values) -> Iterator[Tensor]:
    """The tensors in nested lists of values."""
    for value in values:
        if isinstance(value, list):
            yield from tensors_of(*value)
        elif isinstance(value, Tensor):
            yield value
