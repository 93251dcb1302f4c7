"""The process group that a rank gets in place of gloo's: each operation is told to the judge before it goes to gloo."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as _c10d
from torch.distributed.distributed_c10d import Store

from grader.world.traced.futures import collect_all, wait_all
from grader.world.traced.operations import Operations
from grader.world.traced.tracer import Tracer

GLOO: Any = dist.ProcessGroupGloo
GLOO_TIMEOUT = timedelta(hours=1)  # all agree before gloo is asked: what waits longer ends with the world's deadline
GLOO_THREADS = 2


# Any, since torch's stubs give each method several signatures, of which torch.distributed calls one.
_ProcessGroup: Any = dist.ProcessGroup


class TracedGroup(Operations, _ProcessGroup):  # type: ignore[misc]
    """One group on one rank. Made as torch makes gloo's: by `store, rank, size, timeout`, then its options are set."""

    def __init__(self, tracer: Tracer, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self.options = SimpleNamespace(_timeout=timeout, group_name="", global_ranks_in_group=[])
        self._tracer = tracer
        self._store = store
        self._gloo: dist.ProcessGroupGloo | None = None
        self._identity: tuple[int, tuple[int, ...]] = (-1, ())

    def _set_sequence_number_for_group(self) -> None:
        """torch calls it when the options are set: forms the group. Returns when all its members have come here."""
        ranks = tuple(self.options.global_ranks_in_group) or tuple(range(self.size()))
        self._identity = self._tracer.form(str(self.options.group_name), ranks), ranks
        options = GLOO._Options()
        options._devices = [GLOO.create_device(interface="lo")]
        options._timeout = GLOO_TIMEOUT
        options._threads = GLOO_THREADS
        self._gloo = GLOO(self._store, self.rank(), self.size(), options)
        self._gloo._set_sequence_number_for_group()

    @property
    def group_name(self) -> str:
        """torch's name of the group."""
        return str(self.options.group_name)

    def getGroupName(self) -> str:  # noqa: N802  torch's name
        """torch's name of the group."""
        return self.group_name

    def getBackendName(self) -> str:  # noqa: N802  torch's name
        """Not "gloo": torch's DDP would look for gloo's own options then."""
        return "traced"

    def __repr__(self) -> str:
        return f"<the process group of ranks {list(self._identity[1])}>"

    def shutdown(self) -> None:
        """Ends the connections."""
        self._gloo = None

    abort = shutdown

    def _issue(
        self,
        name: str,
        call: Any,
        reads: Sequence[Tensor],
        writes: Sequence[Tensor],
        opts: Any,
        reduce_op: str = "",
        **fields: Any,
    ) -> dist.Work:
        gloo = self._gloo
        if gloo is None:
            raise RuntimeError("the process group has been destroyed")

        def start(own: Any, source: int | None) -> dist.Work | None:
            from_any = name == "recv" and fields.get("peer") is None
            work: dist.Work | None = call(gloo, own, source) if from_any else call(gloo, own)
            return work

        is_async = opts.asyncOp
        return self._tracer.issue(
            name, self._identity, start, reads=reads, writes=writes, is_async=is_async, reduce_op=reduce_op, **fields
        )


def install(tracer: Tracer) -> None:
    """From here on whoever asks torch for a gloo group on this rank gets a traced one."""
    held = weakref.ref(tracer)  # the class lives as long as torch does

    class Traced(TracedGroup):
        """In the place of torch's ProcessGroupGloo."""

        def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
            living = held()
            assert living is not None
            super().__init__(living, store, rank, size, timeout)

    _c10d.ProcessGroupGloo = Traced  # type: ignore[misc]
    torch.futures.collect_all, torch.futures.wait_all = collect_all, wait_all
