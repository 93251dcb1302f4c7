"""The operations of a process group, by the names that torch.distributed calls: each told, then asked of gloo.

Where torch has an old and a new name for one operation, both are here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import AllgatherOptions as _AllgatherOptions

from grader.world.operation import Spec
from grader.world.traced.tracer import spec_of


class Operations:
    """What a group can be asked for. The class that has it says who is in the group, and how an operation is issued.

    rank, size: torch's own. call, in `_issue`: given gloo's group and a function that puts private copies in a
    tensor's place, asks gloo.
    """

    rank: Callable[[], int]
    size: Callable[[], int]

    @abstractmethod
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
        """Tells of the operation; the handle, or, where opts say so, the operation that is done."""

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
