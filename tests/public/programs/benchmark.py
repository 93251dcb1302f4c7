"""Programs that time collectives with the functions of benchmark.py: calls and arguments only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor

from grader.given import Measurement
from grader.world.program import attempt

# What a process group of torch is asked for, by the name of the collective.
OPERATIONS = {
    "broadcast": ("broadcast",),
    "reduce": ("reduce",),
    "all_reduce": ("allreduce",),
    "all_gather": ("allgather", "_allgather_base", "all_gather_single"),
    "reduce_scatter": ("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single"),
    "all_to_all": ("alltoall", "alltoall_base", "all_to_all_single"),
    "barrier": ("barrier", "monitored_barrier"),
}


def time_collective(here, *, calls):
    """Yields what became of each call: {"value" or "raised", "events": the names of what it called, in order}.

    calls: {"counts": the keyword arguments warmup and iterations, or some of them, "readings": of the clock,
           "refused": whether it is to raise}.
    """
    for each in calls:
        events: list[str] = []
        readings = iter(each["readings"])

        def clock(events=events, readings=readings):
            events.append("clock")
            return next(readings, 0.0)

        outcome = outcome_of(
            each["refused"],
            here.submission.time_collective,
            noting(events, "run"),
            **each["counts"],
            synchronize=noting(events, "synchronize"),
            barrier=noting(events, "barrier"),
            clock=clock,
        )
        yield {**outcome, "events": events}


def outcome_of(refused, function, *arguments, **keywords):
    """{"value": ...}, or what `attempt` says of a call that must be refused. Other errors go on, with their lines."""
    if refused:
        return attempt(function, *arguments, **keywords)
    return {"value": function(*arguments, **keywords)}


def noting(events: list[str], name: str) -> Callable[[], None]:
    """A function that does nothing but add its name to the events."""
    return lambda: events.append(name)


def benchmark_collective(here, *, calls, readings, groups):
    """Yields what became of each call: {"value", "other" or "raised", "finite", "events", "own"}; see `Watch`.

    calls:    {"operation", "num_elements", "dtype", "counts": keyword arguments, "injected": whether synchronize
              and barrier are passed, "group": "default", "own" or "other", "refused": whether it is to raise}.
    readings: by call, of this rank's clock.
    groups:   lists of ranks; every rank is in one, its own.
    value:    the fields of a Measurement; other: what was returned instead of one.
    own:      what the submission's bandwidth functions say of the measurement.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    made = [dist.new_group(ranks) for ranks in groups]
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    for each, its_readings in zip(calls, readings, strict=True):
        keywords = {"dtype": getattr(torch, each["dtype"]), **each["counts"]}
        keywords |= {"own": {"group": own}, "other": {"group": other}, "default": {}}[each["group"]]
        with watched(its_readings) as (watch, clock):
            if each["injected"]:
                keywords["synchronize"] = lambda watch=watch: watch.events.append({"event": "synchronize"})
                keywords["barrier"] = injected_barrier(watch, keywords.get("group"))
            arguments = (each["operation"], each["num_elements"])
            function = here.submission.benchmark_collective
            outcome = outcome_of(each["refused"], function, *arguments, **keywords, clock=clock)
        if "value" in outcome:
            result = outcome.pop("value")
            outcome = {"value": tuple(result)} if isinstance(result, Measurement) else {"other": result}
        bandwidths = own_bandwidths(here.submission, outcome.get("value"))
        yield {**outcome, "finite": watch.finite(each["operation"]), "events": watch.events, "own": bandwidths}
    ranks = torch.ones(1, dtype=torch.int64)
    dist.all_reduce(ranks)
    yield int(ranks)


def injected_barrier(watch, group):
    """A barrier of the group that is noted as the one passed."""

    def barrier():
        with watch.unseen():
            dist.barrier(group=group)
        watch.events.append({"event": "barrier"})

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


class Watch:
    """What was called so far, in order, and the tensors that the collectives were given.

    events: {"event": name}; for a collective with "ranks" (of its group), "dtype", "elements" (by argument) and
            "buffers" (a number: the same for the same memory). It is noted when it is done: one that is never
            waited for is not there.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, object]] = []
        self._given: dict[str, list[Tensor]] = {}  # kept alive, so that no two have the same address by chance
        self._places: dict[tuple[int, ...], int] = {}
        self._seen = True

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Nothing is noted meanwhile."""
        self._seen = False
        try:
            yield
        finally:
            self._seen = True

    def finite(self, operation: str) -> bool:
        """Whether everything is finite that this operation was given, as it is now."""
        return all(bool(torch.isfinite(tensor).all()) for tensor in self._given.get(operation, []))

    def operation(self, name, method):
        """The method of a process group, made to note what it does."""

        def noted(group, *arguments, **keywords):
            if not self._seen:
                return method(group, *arguments, **keywords)
            by_argument = [tensors_of(one) for one in (*arguments, *keywords.values())]
            tensors = [tensor for each in by_argument for tensor in each]
            self._given.setdefault(name, []).extend(tensors)
            place = tuple(tensor.data_ptr() for tensor in tensors)
            event = {
                "event": name,
                "ranks": group.size(),
                "dtype": str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
                "elements": [sum(tensor.numel() for tensor in each) for each in by_argument if each],
                "buffers": self._places.setdefault(place, len(self._places)),
            }
            work = method(group, *arguments, **keywords)
            if work is None:
                self.events.append(event)
                return None
            return NotedWork(work, lambda: self.events.append(event))

        return noted


class NotedWork:
    """A handle of torch that tells once that it was waited for."""

    def __init__(self, work: dist.Work, tell: Callable[[], None]) -> None:
        self._work = work
        self._tell: Callable[[], None] | None = tell

    def wait(self, *arguments, **keywords):
        result = self._work.wait(*arguments, **keywords)
        if self._tell:
            self._tell()
            self._tell = None
        return result

    def __getattr__(self, name):
        return getattr(self._work, name)


def tensors_of(value) -> list[Tensor]:
    """The tensors in an argument: one, or lists of them."""
    if isinstance(value, Tensor):
        return [value]
    return [tensor for entry in value for tensor in tensors_of(entry)] if isinstance(value, list) else []


@contextmanager
def watched(readings) -> Iterator[tuple[Watch, Callable[[], float]]]:
    """A watch over the process groups and the CPU's own `synchronize`, and a clock that shows these readings."""
    watch = Watch()
    left = iter(readings)

    def clock() -> float:
        watch.events.append({"event": "clock"})
        return next(left, 0.0)

    def synchronize(*_) -> None:
        watch.events.append({"event": "synchronize"})

    kind = type(dist.group.WORLD)
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.cpu, "synchronize", synchronize))
        for name, methods in OPERATIONS.items():
            for method in methods:
                if hasattr(kind, method):
                    stack.enter_context(patch.object(kind, method, watch.operation(name, getattr(kind, method))))
        yield watch, clock
