"""The process group that a rank gets in place of gloo's: each operation is told to the judge before it goes to gloo.

The names of the methods are those that torch.distributed calls. Where torch has an old and a new name for one
operation, both are here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import AllgatherOptions as _AllgatherOptions
from torch.distributed import distributed_c10d as _c10d
from torch.distributed.distributed_c10d import Store

from grader.world.operation import Spec
from grader.world.traced.futures import collect_all, wait_all
from grader.world.traced.tracer import Tracer, spec_of

GLOO: Any = dist.ProcessGroupGloo
GLOO_TIMEOUT = timedelta(hours=1)  # all agree before gloo is asked: what waits longer ends with the world's deadline
GLOO_THREADS = 2


# Any, since torch's stubs give each method several signatures, of which torch.distributed calls one.
_ProcessGroup: Any = dist.ProcessGroup


class TracedGroup(_ProcessGroup):  # type: ignore[misc]
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

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """In place on every rank."""
        opts = opts or dist.AllreduceOptions()
        return self._issue(
            "all_reduce", lambda gloo, own: gloo.allreduce(own(tensors), opts), tensors, tensors, opts, _op(opts)
        )

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """As allreduce, of each tensor."""
        opts = opts or dist.AllreduceCoalescedOptions()
        return self._issue(
            "all_reduce_coalesced",
            lambda gloo, own: gloo.allreduce_coalesced(own(tensors), opts),
            tensors,
            tensors,
            opts,
            _op(opts),
        )

    def broadcast(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """In place; the root only reads."""
        is_root = opts.rootRank == self.rank()
        reads, writes = (tensors, []) if is_root else ([], tensors)
        return self._issue(
            "broadcast", lambda gloo, own: gloo.broadcast(own(tensors), opts), reads, writes, opts, root=opts.rootRank
        )

    def reduce(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """In place on the root. Elsewhere the tensor stays as it is, as with NCCL; gloo would leave partial sums."""
        is_root = opts.rootRank == self.rank()
        return self._issue(
            "reduce",
            lambda gloo, own: gloo.reduce(own(tensors), opts),
            tensors,
            tensors if is_root else [],
            opts,
            _op(opts),
            root=opts.rootRank,
            on_copies=not is_root,
        )

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """outputs[0][r] is what rank r gave."""
        opts = opts or _AllgatherOptions()
        return self._issue(
            "all_gather",
            lambda gloo, own: gloo.allgather(own(outputs), own(inputs), opts),
            inputs,
            _flat(outputs),
            opts,
        )

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> dist.Work:
        """output is what the ranks gave, one after the other."""
        opts = opts or _AllgatherOptions()
        return self._issue(
            "all_gather_into_tensor",
            lambda gloo, own: gloo._allgather_base(own(output), own(input), opts),
            [input],
            [output],
            opts,
        )

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """As all_gather_single, for each pair."""
        opts = opts or _AllgatherOptions()
        return self._issue(
            "all_gather_into_tensor_coalesced",
            lambda gloo, own: _last(
                gloo._allgather_base(*pair, opts) for pair in zip(own(outputs), own(inputs), strict=True)
            ),
            inputs,
            outputs,
            opts,
        )

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> dist.Work:
        """On the root outputs[0][r] is what rank r gave; elsewhere outputs is empty."""
        return self._issue(
            "gather",
            lambda gloo, own: gloo.gather(own(outputs), own(inputs), opts),
            inputs,
            _flat(outputs),
            opts,
            root=opts.rootRank,
        )

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> dist.Work:
        """outputs[0] is the root's inputs[0][own rank]; elsewhere inputs is empty."""
        return self._issue(
            "scatter",
            lambda gloo, own: gloo.scatter(own(outputs), own(inputs), opts),
            _flat(inputs),
            outputs,
            opts,
            root=opts.rootRank,
        )

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> dist.Work:
        """outputs[0] is the reduction of the ranks' inputs[0][own rank]."""
        opts = opts or dist.ReduceScatterOptions()
        return self._issue(
            "reduce_scatter",
            lambda gloo, own: gloo.reduce_scatter(own(outputs), own(inputs), opts),
            _flat(inputs),
            outputs,
            opts,
            _op(opts),
        )

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> dist.Work:
        """output is this rank's piece of the reduction of the ranks' inputs."""
        opts = opts or dist.ReduceScatterOptions()
        return self._issue(
            "reduce_scatter_tensor",
            lambda gloo, own: gloo._reduce_scatter_base(own(output), own(input), opts),
            [input],
            [output],
            opts,
            _op(opts),
        )

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> dist.Work:
        """As reduce_scatter_single, for each pair."""
        opts = opts or dist.ReduceScatterOptions()
        return self._issue(
            "reduce_scatter_tensor_coalesced",
            lambda gloo, own: _last(
                gloo._reduce_scatter_base(*pair, opts) for pair in zip(own(outputs), own(inputs), strict=True)
            ),
            inputs,
            outputs,
            opts,
            _op(opts),
        )

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """outputs[r] is what rank r gave as its inputs[own rank]."""
        opts = opts or dist.AllToAllOptions()
        return self._issue(
            "all_to_all", lambda gloo, own: gloo.alltoall(own(outputs), own(inputs), opts), inputs, outputs, opts
        )

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> dist.Work:
        """Rows of input go to the ranks, as many as input_splits say (all as many, if it is empty)."""
        opts = opts or dist.AllToAllOptions()
        output_splits, input_splits = list(output_splits), list(input_splits)
        return self._issue(
            "all_to_all_single",
            lambda gloo, own: gloo.alltoall_base(own(output), own(input), output_splits, input_splits, opts),
            [input],
            [output],
            opts,
            told=(self._pieces(input, input_splits), self._pieces(output, output_splits)),
        )

    def barrier(self, opts: Any = None) -> dist.Work:
        """Returns when all members have called it."""
        opts = opts or dist.BarrierOptions()
        return self._issue("barrier", lambda gloo, _: gloo.barrier(opts), [], [], opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:  # noqa: ARG002
        """As barrier: a member that does not come is named anyway."""
        self.barrier().wait()

    def send(self, tensors: list[Tensor], dst: int, tag: int) -> dist.Work:
        """The handle of a message to rank dst of the group."""
        return self._issue(
            "send",
            lambda gloo, own: gloo.send(own(tensors), dst, tag),
            tensors,
            [],
            _ASYNCHRONOUS,
            peer=dst,
            tag=tag,
        )

    def recv(self, tensors: list[Tensor], src: int, tag: int) -> dist.Work:
        """The handle of a message from rank src of the group."""
        return self._issue(
            "recv",
            lambda gloo, own: gloo.recv(own(tensors), src, tag),
            [],
            tensors,
            _ASYNCHRONOUS,
            peer=src,
            tag=tag,
        )

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> dist.Work:
        """The handle of a message from whichever rank sends one. The judge says which: gloo's own choice is chance."""
        return self._issue(
            "recv",
            lambda gloo, own, source=None: gloo.recv(own(tensors), source, tag),
            [],
            tensors,
            _ASYNCHRONOUS,
            tag=tag,
        )

    # Older names, and gloo's own.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

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

    def _pieces(self, tensor: Tensor, splits: Sequence[int]) -> list[Spec]:
        """What each rank gets of the rows of a tensor."""
        size = self.size()
        rows = splits or [tensor.shape[0] // size] * size
        whole = spec_of(tensor)
        return [Spec(whole.dtype, (length, *whole.shape[1:])) for length in rows]


_ASYNCHRONOUS = SimpleNamespace(asyncOp=True)


def _op(opts: Any) -> str:
    """The name of the reduction: a ReduceOp prints as its address."""
    return str(opts.reduceOp.op.name)


def _flat(nested: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    return [tensor for tensors in nested for tensor in tensors]


def _last(works: Iterator[dist.Work]) -> dist.Work:
    """Waits for all but the last of some operations."""
    started = list(works)
    for work in started[:-1]:
        work.wait()
    return started[-1]


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
