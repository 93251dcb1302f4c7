"""Programs that call all_reduce_while of collectives.py: calls and arguments only."""

from __future__ import annotations

import torch
import torch.distributed as dist

from grader.world.program import attempt, shares_memory


class Fault(Exception):  # noqa: N818  a fault that is meant
    """What a `compute` that fails raises."""


def all_reduce_while(here, *, calls, tensors, groups):
    """Yields what became of each call: {"value" or "raised", "input", "new"}.

    calls:  {"op": name or None, "fails": whether compute raises, "group": "default", "own" or "other", "refused":
            whether it is to raise before it sends}.
    groups: as in programs/collectives.py.
    compute marks its beginning and its end. The first rank of each group goes ahead: the others are held before the
    call until its compute has ended, so it is stuck if it waits for them before.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    made = [dist.new_group(ranks) for ranks in groups]
    own_ranks = next((ranks for ranks in groups if here.rank in ranks), [])
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    for number, (call, tensor) in enumerate(zip(calls, tensors, strict=True)):
        finished = f"finished compute() of call {number}"
        first = own_ranks[0] if call["group"] == "own" else 0

        def compute(call=call, tensor=tensor, number=number, finished=finished):
            here.mark(f"begun compute() of call {number}")
            copy = tensor.clone()
            here.mark(finished)
            if call["fails"]:
                raise Fault("compute has failed")
            return {"tensor": copy}

        op = [getattr(dist.ReduceOp, call["op"])] if call["op"] else []
        keywords = {"own": {"group": own}, "other": {"group": other}, "default": {}}[call["group"]]
        if here.rank != first and not call["refused"]:
            here.hold(until=finished, of=first)
        outcome = outcome_of(call["refused"] or call["fails"], here, tensor, compute, *op, **keywords)
        here.mark(finished)  # a compute that is never called holds nobody
        total = outcome["value"][0] if isinstance(outcome.get("value"), tuple) else None
        new = not (isinstance(total, torch.Tensor) and shares_memory(total, tensor))
        yield {**outcome, "input": tensor, "new": new}


def outcome_of(raises, here, *arguments, **keywords):
    """{"value": ...}, or what `attempt` says of a call that is to raise. Other errors go on, with their lines."""
    if raises:
        return attempt(here.submission.all_reduce_while, *arguments, **keywords)
    return {"value": here.submission.all_reduce_while(*arguments, **keywords)}
