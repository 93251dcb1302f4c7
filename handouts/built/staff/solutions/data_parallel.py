"""Module 3. Data parallelism: every rank holds the whole model and its own rows; gradients are averaged after backward.

The four wrappers compute the same gradients and differ in when they send what:

    NaiveDDP        after backward      one all-reduce for each parameter
    FlatDDP         after backward      one all-reduce for each dtype
    OverlappedDDP   during backward     one all-reduce for each parameter
    BucketedDDP     during backward     one all-reduce for each bucket of parameters

Of n rows, rank r owns n // W + (1 if r < n % W else 0), in rank order; W is the world size of the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from grader.given import Group

# isort: split
import threading
import weakref
from dataclasses import dataclass
from typing import NamedTuple

from grader.given import exchange_sizes, piece_range


def shard_batch(batch: Tensor, rank: int, world_size: int) -> Tensor:
    """The rows (dimension 0) of `batch` that `rank` owns: a view, by the uneven rule; nothing is sent.

    Example: of 5 rows in a world of 3, rank 0 owns rows 0-1, rank 1 rows 2-3, rank 2 row 4. Of 2 rows, rank 2
    owns none: a tensor of shape (0, ...).

    Raises ValueError if rank is outside 0 ... world_size - 1.
    """
    rows = piece_range(batch.shape[0], rank, world_size)
    return batch[rows.start : rows.stop]


@torch.no_grad()
def broadcast_module(module: nn.Module, src: int = 0, *, group: Group = None) -> None:
    """Gives every rank the parameters and buffers of rank `src` of the group. In place; every rank calls.

    Before: each rank's module has tensors of the same names, shapes and dtypes, with values of its own.
    After: they have the values of src, in the same Parameter and buffer objects and the same memory. Frozen
    parameters and buffers that are not in the state_dict are sent too. Memory that the module has under two
    names (a tied weight, a buffer that is a view of a parameter) is sent once. Any layout, and tensors without
    elements, are right.

    Raises ValueError on every rank if src is no rank of the group.
    """
    _, world_size = _place(group)
    if not 0 <= src < world_size:
        raise ValueError(f"src is {src}; expected a rank in the group: 0 to {world_size - 1}")
    sent: set[_Memory] = set()
    for tensor in [*module.parameters(), *module.buffers()]:
        memory = _memory_of(tensor)
        if tensor.numel() == 0 or memory in sent:
            continue
        sent.add(memory)
        # An expanded dimension (stride 0) repeats the same elements, and those cannot be written twice at once.
        elements = tensor.detach()[tuple(0 if stride == 0 else slice(None) for stride in tensor.stride())]
        # Backends send memory, not elements: gloo mixes up the elements of other layouts without a word.
        message = elements.contiguous()
        dist.broadcast(message, group_src=src, group=group)
        if message is not elements:
            elements.copy_(message)


def loss_scale(local_rows: int, *, group: Group = None) -> float:
    """W / (rows of all ranks): what each rank multiplies the SUM of its local losses by. Every rank calls.

    The mean over ranks of the gradients of the scaled losses is then the gradient of the mean loss over all
    rows, for unequal and empty shards too. (A mean of the ranks' means weighs each rank alike, not each row.)

    Example: ranks with 3 rows and 1 row both get 2 / 4 = 0.5.

    Raises ValueError on every rank if no rank has a row, and on a rank whose own local_rows is below 0, before it
    sends.
    """
    _, world_size = _place(group)
    if local_rows < 0:
        raise ValueError(f"local_rows is {local_rows}; expected 0 or more")
    all_rows = sum(exchange_sizes(local_rows, group=group))
    if all_rows == 0:
        raise ValueError("no rank has a row; expected at least one row in the whole batch")
    return world_size / all_rows


def plan_buckets(parameters: Sequence[Tensor], bucket_bytes: int) -> list[list[int]]:
    """Which parameters travel together: lists of indices into `parameters`. Pure data: nothing is sent.

    Parameters are taken in reverse order, since backward computes the gradients of the last layers first. A
    bucket closes when the next parameter would take it over bucket_bytes bytes, or has another dtype or device.
    So a parameter that is larger than bucket_bytes is alone in its bucket. Every index is in one bucket, and no
    bucket is empty.

    Example: float32 parameters of 2, 5, 1 and 1 elements and buckets of 12 bytes: [[3, 2], [1], [0]].

    Raises ValueError if bucket_bytes is below 1.
    """
    if bucket_bytes < 1:
        raise ValueError(f"bucket_bytes is {bucket_bytes}; expected at least 1")
    buckets: list[list[int]] = []
    kind: tuple[torch.dtype, torch.device] | None = None
    num_bytes = 0
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        size = parameter.numel() * parameter.element_size()
        if kind != (parameter.dtype, parameter.device) or num_bytes + size > bucket_bytes:
            buckets.append([])
            kind, num_bytes = (parameter.dtype, parameter.device), 0
        buckets[-1].append(index)
        num_bytes += size
    return buckets


class DDP(nn.Module, ABC):
    """A module whose gradients are averaged over the ranks of a group. Abstract: one of the four below is made.

    A training step is the same on every rank, but for the rows:

        scale = loss_scale(len(local_x), group=group)
        (scale * loss_fn(model(local_x), local_y, reduction="sum")).backward()
        model.synchronize_gradients()
        optimizer.step()

    As in torch, the wrapped module is `.module`, the keys of the state_dict begin with `module.`, and train(),
    eval() and to() reach it. Which parameters are trainable is read at construction: only their gradients are read
    and written, frozen ones' never. A Parameter object under two names counts once. When the wrapper is gone, so
    are its hooks, and the module may be wrapped again.
    """

    module: nn.Module

    def __init__(self, module: nn.Module, *, group: Group = None) -> None:
        """Broadcasts the parameters and buffers of rank 0 of the group, in place. Every rank of the group calls.

        Buffers are not synchronized later.
        """
        super().__init__()
        broadcast_module(module, group=group)
        self.module = module
        self._group = group
        self._trainable = _trainable(module)
        self._no_sync = _NoSync()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the wrapped module returns for these arguments; its hooks run."""
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which backward only accumulates into this rank's `.grad`: nothing is sent.

        The next `synchronize_gradients()` outside sends all that accumulated, for parameters that the last
        backward did not use too, and whether or not a backward ran outside. May be nested. After it, also
        after an exception, all is as before.

        Example, three microbatches that send once:
            with model.no_sync():
                for x, y in microbatches[:2]:
                    loss_fn(model(x), y).backward()
            loss_fn(model(microbatches[2][0]), microbatches[2][1]).backward()
            model.synchronize_gradients()
        """
        self._no_sync.depth += 1
        try:
            yield
        finally:
            self._no_sync.depth -= 1

    @abstractmethod
    def synchronize_gradients(self) -> None:
        """Makes every trainable `.grad` the mean over ranks (the sum / W), bit for bit the same on every rank.

        Every rank of the group calls, once after the last backward of a step. Before: `.grad` is as this rank's
        backwards left it, on top of what was not cleared, or None, which counts as zeros. After: the mean of
        `.grad` as it stood on each rank; zeros where no rank had one. Ranks may leave out different parameters.

        Raises RuntimeError inside `no_sync()`.

        Each of the four has its own; what they share may live here (`super().synchronize_gradients()`).
        """
        if self._no_sync.depth > 0:
            raise RuntimeError(
                "synchronize_gradients() inside no_sync(), where gradients only accumulate: "
                "call it after the context has ended"
            )


class NaiveDDP(DDP):
    """After backward, one all-reduce for each parameter."""

    def synchronize_gradients(self) -> None:
        """As in DDP. One all-reduce for each trainable parameter, of the size of that parameter."""
        super().synchronize_gradients()
        for parameter in self._trainable:
            _finish(_issue([parameter], self._group), self._group)


class FlatDDP(DDP):
    """After backward, all gradients in one all-reduce."""

    def synchronize_gradients(self) -> None:
        """As in DDP. One all-reduce for each dtype (and device) among the trainable parameters."""
        super().synchronize_gradients()
        alike: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
        for parameter in self._trainable:
            alike.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        for parameters in alike.values():
            _finish(_issue(parameters, self._group), self._group)


class OverlappedDDP(DDP):
    """During backward, one all-reduce for each parameter, while backward computes the next gradients.

    Order: reverse `module.parameters()`, the same on every rank. Each gradient's all-reduce is issued, and not
    waited for, as soon as the gradient is ready and its predecessors are issued.
    """

    def __init__(self, module: nn.Module, *, group: Group = None) -> None:
        """As in DDP; from now on, backward issues the all-reduces.

        A second backward outside `no_sync()` before `synchronize_gradients()` raises RuntimeError, whatever
        parameters it uses: it would accumulate into a gradient in flight. A backward inside `no_sync()` that
        reaches a gradient in flight raises it too. (Activation checkpointing with use_reentrant=True runs
        backwards of its own inside backward, and is refused by the same rule; use_reentrant=False is right.)
        """
        super().__init__(module, group=group)
        buckets = [[parameter] for parameter in reversed(self._trainable)]
        self._overlap = _Overlap(buckets, self._no_sync, group)

    def synchronize_gradients(self) -> None:
        """As in DDP. Issues what backward left out on this rank: its `.grad`, or zeros; then waits for all."""
        super().synchronize_gradients()
        self._overlap.finish()


class BucketedDDP(DDP):
    """During backward, one all-reduce for each bucket of parameters, in the order of the plan.

    buckets: the trainable parameters of each bucket, as `plan_buckets` planned them. A bucket's all-reduce is
    issued, and not waited for, as soon as all its gradients are ready and its predecessors are issued.
    """

    buckets: list[list[nn.Parameter]]

    def __init__(self, module: nn.Module, bucket_bytes: int = 25 * 2**20, *, group: Group = None) -> None:
        """As in OverlappedDDP, with buckets of at most bucket_bytes bytes (a larger parameter is alone).

        Raises ValueError on every rank, before anything is sent, if bucket_bytes is below 1.
        """
        trainable = _trainable(module)
        plan = plan_buckets(trainable, bucket_bytes)
        super().__init__(module, group=group)
        self.buckets = [[trainable[index] for index in bucket] for bucket in plan]
        self._overlap = _Overlap(self.buckets, self._no_sync, group)

    def synchronize_gradients(self) -> None:
        """As in DDP. Issues the buckets that backward left open on this rank, then waits for all."""
        super().synchronize_gradients()
        self._overlap.finish()


class _Reduction(NamedTuple):
    """An all-reduce under way of the gradients of `parameters`, one after the other in `flat`."""

    work: dist.Work
    flat: Tensor  # not to be read before work.wait()
    parameters: Sequence[nn.Parameter]


@torch.no_grad()
def _issue(parameters: Sequence[nn.Parameter], group: Group) -> _Reduction:
    """Starts the all-reduce of a copy of the gradients as they stand; a missing one is sent as zeros.

    A copy, since a `.grad` may have any layout, may be sparse, and may share its memory with another one:
    autograd hands one tensor to both sides of p.view(-1) + q.view(-1), and then each would be reduced twice.
    """
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad.detach().to_dense() for p in parameters]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    work = dist.all_reduce(flat, op=dist.ReduceOp.SUM, group=group, async_op=True)
    return _Reduction(work, flat, parameters)


@torch.no_grad()
def _finish(reduction: _Reduction, group: Group) -> None:
    """Waits, divides by the world size, and gives each parameter a `.grad` of its own, in its own layout."""
    work, flat, parameters = reduction
    work.wait()
    flat /= dist.get_world_size(group)
    pieces = torch.split(flat, [parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.grad = torch.empty_like(parameter).copy_(piece.view(parameter.shape))


@dataclass
class _NoSync:
    """How many `no_sync()` contexts of a wrapper are open; 0 is outside."""

    depth: int = 0


_SECOND_BACKWARD = (
    "a second backward() before synchronize_gradients(): gradients of the first are in flight, and what this one "
    "adds to them would be lost. Call synchronize_gradients() after each backward(), or run every backward() but "
    "the last inside no_sync()"
)


class _Overlap:
    """The all-reduces of one step, in the order of the buckets, each issued when its gradients are ready.

    Ranks may compute different gradients, in a different order. So the order of the all-reduces is that of the
    buckets and nothing else: a bucket waits for those before it, and `finish` issues what backward left out.
    """

    def __init__(self, buckets: Sequence[Sequence[nn.Parameter]], no_sync: _NoSync, group: Group) -> None:
        self._buckets = buckets
        self._no_sync = no_sync
        self._group = group
        # Autograd has a thread for each device, and a module may have parameters on several.
        self._lock = threading.Lock()
        self._begin_step()
        for index, bucket in enumerate(buckets):
            for parameter in bucket:
                self._hook(parameter, index)

    def _begin_step(self) -> None:
        self._num_missing = [len(bucket) for bucket in self._buckets]  # gradients that are not computed yet
        self._issued: list[_Reduction] = []  # of the first buckets
        self._backward: int | None = None  # autograd's number of the backward that issued them

    def _hook(self, parameter: nn.Parameter, index: int) -> None:
        """Has backward call `_gradient_ready` when it has accumulated this parameter's gradient, if any."""
        # The parameter outlives the wrapper. With a strong reference, the wrapper would never be gone.
        this = weakref.ref(self)

        def on_gradient(_: Tensor) -> None:
            overlap = this()
            if overlap is not None:
                overlap._gradient_ready(index)

        handle = parameter.register_post_accumulate_grad_hook(on_gradient)  # type: ignore[no-untyped-call]
        weakref.finalize(self, handle.remove)

    def _gradient_ready(self, index: int) -> None:
        """Called in backward: one more gradient of bucket `index` is in its `.grad`."""
        with self._lock:
            if self._no_sync.depth > 0:
                if index < len(self._issued):
                    raise RuntimeError(_SECOND_BACKWARD)
                return
            backward = torch._C._current_graph_task_id()
            if self._backward not in (None, backward):
                raise RuntimeError(_SECOND_BACKWARD)
            self._backward = backward
            self._num_missing[index] -= 1
            while len(self._issued) < len(self._buckets) and self._num_missing[len(self._issued)] == 0:
                self._issue_next()

    def _issue_next(self) -> None:
        self._issued.append(_issue(self._buckets[len(self._issued)], self._group))

    def finish(self) -> None:
        """Issues the buckets that are left, waits for all, writes the means, and begins the next step."""
        while len(self._issued) < len(self._buckets):
            self._issue_next()
        for reduction in self._issued:
            _finish(reduction, self._group)
        self._begin_step()


_Memory = tuple[torch.device, int, tuple[tuple[int, int], ...]]


def _memory_of(tensor: Tensor) -> _Memory:
    """Names the bytes that a tensor's elements occupy: the same for w, w.view(-1), w.t() and w.view(dtype).

    A tensor visits memory in steps: `count` times, `stride` bytes apart. Steps that follow each other without a
    gap are joined, from the smallest.
    """
    element_size = tensor.element_size()
    steps = [(1, element_size)]
    for stride, count in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if stride == 0 or count == 1:
            continue
        inner_stride, inner_count = steps[-1]
        if stride * element_size == inner_stride * inner_count:
            steps[-1] = (inner_stride, inner_count * count)
        else:
            steps.append((stride * element_size, count))
    return tensor.device, tensor.data_ptr(), tuple(steps)


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that want a gradient, each object once, in the order of module.parameters()."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _place(group: Group) -> tuple[int, int]:
    """This process's rank in the group, and the world size. Raises ValueError on a rank outside the group."""
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this rank is not in the group; only the ranks of the group may call")
    return rank, dist.get_world_size(group)
