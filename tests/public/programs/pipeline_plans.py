"""Programs that call the pure functions of pipeline_parallel.py."""

from torch import Tensor

from grader.given import Action, Kind
from grader.world.program import attempt, shares_memory


def split_layers(here, *, calls):
    """Yields for each (num_layers, num_stages) the list, with [start, stop, step] in place of each range."""
    for call in calls:
        outcome = attempt(here.submission.split_layers, *call)
        yield {**outcome, "value": plain_list(outcome.get("value"), plain_range)}


def plain_list(value, plain):
    """A list entry by entry; anything else as it is."""
    return [plain(entry) for entry in value] if type(value) is list else value


def plain_range(value):
    """{"range": [start, stop, step]} of a range; anything else as it is."""
    return {"range": [value.start, value.stop, value.step]} if type(value) is range else value


def split_microbatches(here, *, batches, calls):
    """Yields for each call the pieces, which of them are views, and the batch afterwards."""
    for batch, call in zip(batches, calls, strict=True):
        argument = batch.transpose(0, -1).contiguous().transpose(0, -1) if call["transposed"] else batch
        outcome = attempt(here.submission.split_microbatches, argument, call["num_microbatches"])
        pieces = outcome["value"] if isinstance(outcome.get("value"), list) else []
        views = [isinstance(piece, Tensor) and shares_memory(piece, argument) for piece in pieces]
        yield {"outcome": outcome, "views": views, "batch": argument}


def gpipe_schedule(here, *, calls):
    """Yields for each (stage, num_stages, num_microbatches) the actions in their short form, "ra0" or "F1"."""
    for call in calls:
        outcome = attempt(here.submission.gpipe_schedule, *call)
        yield {**outcome, "value": plain_list(outcome.get("value"), plain_action)}


def plain_action(value):
    """The short form of an Action of a Kind and a number; anything else as it is, one level deep."""
    if type(value) is Action and type(value.kind) is Kind and type(value.microbatch) is int:
        return f"{value.kind.value}{value.microbatch}"
    return {"no action": [value.kind, value.microbatch] if type(value) is Action else value}
