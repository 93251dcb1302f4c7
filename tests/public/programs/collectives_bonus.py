"""Programs that call the bonus functions of collectives.py: calls and arguments only."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from grader.world.program import attempt, shares_memory


def global_mean_and_variance(here, *, calls, tensors, groups):
    """Yields what became of each call: {"value" or "raised", "input"}.

    calls:  {"layout": of the tensor in memory, "group": "default", "own" or "other", "refused": whether it is to
            raise}.
    groups: lists of ranks; every rank is in one, its own.
    """
    own, other = groups_of(here, groups)
    for each, given in zip(calls, tensors, strict=True):
        tensor = laid_out(given, each["layout"])
        function = here.submission.global_mean_and_variance
        outcome = outcome_of(each["refused"], function, tensor, **group_of(each, own, other))
        yield {**outcome, "input": tensor}


def dispatch_rows(here, *, calls, rows, destinations, groups):
    """Yields what became of each call: {"value" or "raised", "received", "rows", "destination", "new"}.

    calls: as above. received: the first of the pair; the plans are not looked at.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    own, other = groups_of(here, groups)
    for each, own_rows, destination in zip(calls, rows, destinations, strict=True):
        given = laid_out(own_rows, each["layout"])
        function = here.submission.dispatch_rows
        outcome = outcome_of(each["refused"], function, given, destination, **group_of(each, own, other))
        received, _ = pair_of(outcome.get("value"))
        new = not (isinstance(received, Tensor) and shares_memory(received, given))
        after = {"rows": given, "destination": destination}
        yield {**outcome, **after, "received": received, "new": new}


def combine_rows(here, *, rows, destination, group, processes, groups):
    """Dispatches the rows and yields what arrived; then, for each process, what came of sending it back.

    processes: what is done with the received rows before, see `processed`; all use one plan. With "rows_too_many"
               (that number of rows more), or with the "other" group, the call is to raise.
    Yields {"value" or "raised", "processed", "new"}.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    own, other = groups_of(here, groups)
    keywords = group_of({"group": group}, own, other)
    received, plan = pair_of(here.submission.dispatch_rows(rows, destination, **keywords))
    yield received
    earlier = []
    for process in processes:
        given = processed(received, process)
        if process.get("rows_too_many"):
            given = torch.cat([given, given.new_zeros((process["rows_too_many"], *given.shape[1:]))])
        its_keywords = {"group": other} if process.get("group") == "other" else keywords
        refused = process.get("rows_too_many") or process.get("group")
        outcome = outcome_of(refused, here.submission.combine_rows, given, plan, **its_keywords)
        result = outcome.get("value")
        new = not (isinstance(result, Tensor) and any(shares_memory(result, one) for one in (given, *earlier)))
        earlier.append(result) if isinstance(result, Tensor) else None
        yield {**outcome, "processed": given, "new": new}


def outcome_of(refused, function, *arguments, **keywords):
    """{"value": ...}, or what `attempt` says of a call that must be refused. Other errors go on, with their lines."""
    if refused:
        return attempt(function, *arguments, **keywords)
    return {"value": function(*arguments, **keywords)}


def processed(received: Tensor, process) -> Tensor:
    """Rows made from the received ones, each from one: {"width": columns or None for none, "dtype", "layout"}."""
    if not isinstance(received, Tensor) or received.dim() != 2:
        raise TypeError("dispatch_rows did not return a pair of the received rows (a matrix here) and a plan")
    width = process["width"]
    columns = [column % received.shape[1] for column in range(width or 1)]
    picked = received[:, columns] if width is not None else received[:, 0]
    dtype = getattr(torch, process["dtype"])
    numbers = picked.to(torch.int64) % 2 if dtype == torch.bool else -picked
    return laid_out(numbers.to(dtype), process["layout"])


def pair_of(value):
    """The received rows and the plan that dispatch_rows returned, or None for both."""
    return value if isinstance(value, tuple) and len(value) == 2 else (None, None)


def groups_of(here, groups):
    """The group that holds this rank and one that does not; None where there is none."""
    made = [dist.new_group(ranks) for ranks in groups]
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    return own, other


def group_of(each, own, other):
    """The keyword argument of a call in this group."""
    return {"own": {"group": own}, "other": {"group": other}, "default": {}}[each["group"]]


def laid_out(value: Tensor, layout: str) -> Tensor:
    """The same numbers, in memory as `layout` says: "plain", "strided", or "leaf" for one with a gradient."""
    if layout == "leaf":
        return value.clone().requires_grad_()
    if layout == "strided":
        return value.new_zeros((*value.shape, 2))[..., 1].copy_(value)
    return value
