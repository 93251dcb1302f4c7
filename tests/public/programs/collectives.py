"""Programs that call the collectives of collectives.py: calls and arguments only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from grader.world.program import attempt, shares_memory

# What a process group of torch is asked for, by whatever function of torch.distributed.
OPERATIONS = (
    *("send", "recv", "recv_anysource", "barrier", "monitored_barrier", "broadcast", "scatter", "gather", "reduce"),
    *("allreduce", "allreduce_coalesced", "allgather", "allgather_coalesced", "_allgather_base", "all_gather_single"),
    *("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single", "alltoall", "alltoall_base"),
    "all_to_all_single",
)


def call(here, *, function, calls, inputs, groups):
    """Yields what became of each call of the submission's `function`, then what `roll_call` returns.

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
            with operations() as seen:
                outcome = attempt(collective, argument, *arguments, **keywords)
            yield {**outcome, "operations": seen}
            continue
        with operations() as seen:
            result = collective(argument, *arguments, **keywords)
        new = not any(
            shares_memory(ours, theirs) for ours in tensors_of(result) for theirs in tensors_of(argument, kept)
        )
        kept.append(result)
        yield {"result": result, "input": argument, "new": new, "operations": seen}
    if made:
        dist.new_group(list(range(here.world_size)))  # all ranks have made the same groups so far
    yield roll_call(here)


def roll_call(here):
    """The ranks that this rank hears of when each sends its number to each; -1 where something else came.

    The messages are long: a stray one that comes instead is shorter and leaves its place visibly unfilled.
    """
    heard = [torch.full((4096,), here.rank if rank == here.rank else -1) for rank in range(here.world_size)]
    others = [rank for rank in range(here.world_size) if rank != here.rank]
    works = [dist.isend(heard[here.rank], rank) for rank in others] + [dist.irecv(heard[rank], rank) for rank in others]
    for work in works:
        work.wait()
    return [int(numbers[0]) if numbers.unique().numel() == 1 else -1 for numbers in heard]


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


@contextmanager
def operations() -> Iterator[list[list[object]]]:
    """Lists what the process groups are asked for meanwhile, as [operation, peer], the peer for send and recv.

    What grader.given asks for is left out.
    """
    seen: list[list[object]] = []
    kind = type(dist.group.WORLD)

    def noting(name, method):
        def operation(group, *arguments, **keywords):
            if not asked_by_given():
                seen.append([name, arguments[1] if name in ("send", "recv") else None])
            return method(group, *arguments, **keywords)

        return operation

    with ExitStack() as stack:
        for name in OPERATIONS:
            if hasattr(kind, name):
                stack.enter_context(patch.object(kind, name, noting(name, getattr(kind, name))))
        yield seen


def asked_by_given() -> bool:
    """Whether a function of grader.given is under way in this thread."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "grader.given":
        frame = frame.f_back
    return frame is not None
