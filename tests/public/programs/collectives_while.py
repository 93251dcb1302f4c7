"""Programs that call all_reduce_while of collectives.py: calls and arguments only."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import torch
import torch.distributed as dist

from grader.world.program import attempt, shares_memory


class Fault(Exception):  # noqa: N818  a fault that is meant
    """What a `compute` that fails raises."""


def all_reduce_while(here, *, calls, tensors, groups):
    """Yields what became of each call: {"value" or "raised", "input", "new", "events"}.

    calls:  {"op": name or None, "fails": whether compute raises, "group": "default", "own" or "other"}.
    groups: as in programs/collectives.py.
    events: "start", "compute" and "end": in the order in which they happened.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not written holds NaN
    made = [dist.new_group(ranks) for ranks in groups]
    own = next((group for ranks, group in zip(groups, made, strict=True) if here.rank in ranks), None)
    other = next((group for ranks, group in zip(groups, made, strict=True) if here.rank not in ranks), None)
    for call, tensor in zip(calls, tensors, strict=True):
        events = []

        def compute(call=call, tensor=tensor, events=events):
            events.append("compute")
            if call["fails"]:
                raise Fault("compute has failed")
            return {"tensor": tensor.clone()}

        op = [getattr(dist.ReduceOp, call["op"])] if call["op"] else []
        keywords = {"own": {"group": own}, "other": {"group": other}, "default": {}}[call["group"]]
        with late_all_reduce(events):
            outcome = attempt(here.submission.all_reduce_while, tensor, compute, *op, **keywords)
        total = outcome["value"][0] if isinstance(outcome.get("value"), tuple) else None
        new = not (isinstance(total, torch.Tensor) and shares_memory(total, tensor))
        yield {**outcome, "input": tensor, "new": new, "events": events}
    ranks = torch.ones(1, dtype=torch.int64)
    dist.all_reduce(ranks)
    yield int(ranks)


class LateWork(dist.Work):
    """An all-reduce that takes place when it is waited for; until then the tensors hold no usable number."""

    def __init__(self, tensors, reduce, events):
        super().__init__()
        self._tensors = tensors
        self._originals = [tensor.clone() for tensor in tensors]
        self._reduce = reduce
        self._events = events
        self._done = False
        for tensor in tensors:
            floats = tensor.is_floating_point() or tensor.is_complex()
            tensor.fill_(float("nan") if floats else torch.iinfo(tensor.dtype).min)

    def wait(self, timeout=None):  # noqa: ARG002  the signature of torch's own
        if not self._done:
            self._done = True
            for tensor, original in zip(self._tensors, self._originals, strict=True):
                tensor.copy_(original)
            self._reduce(self._tensors).wait()
            self._events.append("end")
        return True

    def is_completed(self):
        return self.wait()

    def get_future(self):
        self.wait()
        future = torch.futures.Future()
        future.set_result(self._tensors)
        return future


@contextmanager
def late_all_reduce(events):
    """All-reduces meanwhile are `LateWork`, and tell `events` of their start and end."""
    kind = type(dist.group.WORLD)
    real = kind.allreduce

    def allreduce(group, tensors, *options, **keywords):
        events.append("start")
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        return LateWork(tensors, lambda ready: real(group, ready, *options, **keywords), events)

    with patch.object(kind, "allreduce", allreduce):
        yield
