"""Programs that time collectives with the functions of benchmark.py: calls and arguments only.

What is called, and when, is in the trace: what the programs pass marks its name there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from grader.given import Measurement
from grader.world.program import attempt


def time_collective(here, *, calls):
    """Yields what became of each call: {"value" or "raised"}. It marks "run", "synchronize", "barrier" and "clock".

    calls: {"counts": the keyword arguments warmup and iterations, or some of them, "readings": of the clock,
           "refused": whether it is to raise}.
    """
    for each in calls:
        yield outcome_of(
            each["refused"],
            here.submission.time_collective,
            marking(here, "run"),
            **each["counts"],
            synchronize=marking(here, "synchronize"),
            barrier=marking(here, "barrier"),
            clock=marking_clock(here, each["readings"]),
        )


def benchmark_collective(here, *, calls, readings, groups):
    """Yields what became of each call: {"value", "other" or "raised", "buffers", "own"}.

    It marks "clock", and "synchronize" and "barrier" where they are passed; the CPU's own synchronize too.

    calls:    {"operation", "num_elements", "dtype", "counts": keyword arguments, "injected": whether synchronize
              and barrier are passed, "group": "default", "own" or "other", "refused": whether it is to raise}.
    readings: by call, of this rank's clock.
    groups:   lists of ranks; every rank is in one, its own.
    value:    the fields of a Measurement; other: what was returned instead of one.
    buffers:  see `Buffers.told`. own: what the submission's bandwidth functions say of the measurement.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    made = [dist.new_group(ranks) for ranks in groups]
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    for each, its_readings in zip(calls, readings, strict=True):
        keywords = {"dtype": getattr(torch, each["dtype"]), **each["counts"]}
        keywords |= {"own": {"group": own}, "other": {"group": other}, "default": {}}[each["group"]]
        if each["injected"]:
            keywords["synchronize"] = marking(here, "synchronize")
            keywords["barrier"] = marking_barrier(here, keywords.get("group"))
        with Buffers().watching(here) as buffers:
            outcome = outcome_of(
                each["refused"],
                here.submission.benchmark_collective,
                each["operation"],
                each["num_elements"],
                **keywords,
                clock=marking_clock(here, its_readings),
            )
        if "value" in outcome:
            result = outcome.pop("value")
            outcome = {"value": tuple(result)} if isinstance(result, Measurement) else {"other": result}
        yield {**outcome, "buffers": buffers.told(), "own": own_bandwidths(here.submission, outcome.get("value"))}


def outcome_of(refused, function, *arguments, **keywords):
    """{"value": ...}, or what `attempt` says of a call that must be refused. Other errors go on, with their lines."""
    if refused:
        return attempt(function, *arguments, **keywords)
    return {"value": function(*arguments, **keywords)}


def marking(here, name: str) -> Callable[[], None]:
    """A function that does nothing but mark its name."""
    return lambda: here.mark(name)


def marking_clock(here, readings) -> Callable[[], float]:
    """A clock that shows these readings."""
    left = iter(readings)

    def clock() -> float:
        here.mark("clock")
        return next(left, 0.0)

    return clock


def marking_barrier(here, group) -> Callable[[], None]:
    """A barrier of the group that marks its name when it is passed."""

    def barrier() -> None:
        dist.barrier(group=group)
        here.mark("barrier")

    return barrier


def own_bandwidths(submission, measurement):
    """What the submission's two functions make of the bytes and seconds of its measurement."""
    if type(measurement) is not tuple or len(measurement) != len(Measurement._fields):
        return []
    operation, num_bytes, world_size, seconds, *_ = measurement
    return [
        attempt(submission.algorithm_bandwidth, num_bytes, seconds),
        attempt(submission.bus_bandwidth, operation, num_bytes, seconds, world_size),
    ]


class Buffers:
    """The tensors that this rank's operations are given, in order; kept, so that no two have one address by chance.

    The trace has their shapes, and neither their memory nor their values.
    """

    def __init__(self) -> None:
        self._given: list[list[Tensor]] = []

    @contextmanager
    def watching(self, here) -> Iterator[Buffers]:
        """Meanwhile what the harness hears of is noted, and the CPU's own synchronize marks its name.

        A mock, for it stands in no file of ours: the trace still finds whose line asks.
        """
        with (
            patch.object(here.tracer, "issue", wraps=here.tracer.issue) as issue,
            patch.object(torch.cpu, "synchronize", lambda *_: here.mark("synchronize")),
        ):
            yield self
        self._given = [[*call.kwargs["reads"], *call.kwargs["writes"]] for call in issue.call_args_list]

    def told(self) -> list[list[int]]:
        """For each operation [memory, finite]: a number, the same for the same memory; 1 if all in it is finite now."""
        places: dict[tuple[int, ...], int] = {}
        told = []
        for tensors in self._given:
            place = tuple(tensor.data_ptr() for tensor in tensors)
            finite = all(bool(torch.isfinite(tensor).all()) for tensor in tensors)
            told.append([places.setdefault(place, len(places)), int(finite)])
        return told
