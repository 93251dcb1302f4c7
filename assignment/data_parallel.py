"""Module 3. Data parallelism: every rank holds the whole model and its own rows; gradients are averaged after backward.

The four wrappers compute the same gradients and differ in when they send what:

    NaiveDDP        after backward      one all-reduce for each parameter
    FlatDDP         after backward      one all-reduce for each dtype
    OverlappedDDP   during backward     one all-reduce for each parameter
    BucketedDDP     during backward     one all-reduce for each bucket of parameters

Of n rows, rank r owns n // W + (1 if r < n % W else 0), in rank order; W is the world size of the group.

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_data_parallel
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


def shard_batch(batch: Tensor, rank: int, world_size: int) -> Tensor:
    """The rows (dimension 0) of `batch` that `rank` owns: a view, by the uneven rule; nothing is sent.

    Example: of 5 rows in a world of 3, rank 0 owns rows 0-1, rank 1 rows 2-3, rank 2 row 4. Of 2 rows, rank 2
    owns none: a tensor of shape (0, ...).

    Raises ValueError if rank is outside 0 ... world_size - 1.
    """
    raise NotImplementedError("return the rows of the batch that this rank owns")


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
    raise NotImplementedError("copy the parameters and buffers of rank src to every rank, in place")


def loss_scale(local_rows: int, *, group: Group = None) -> float:
    """W / (rows of all ranks): what each rank multiplies the SUM of its local losses by. Every rank calls.

    The mean over ranks of the gradients of the scaled losses is then the gradient of the mean loss over all
    rows, for unequal and empty shards too. (A mean of the ranks' means weighs each rank alike, not each row.)

    Example: ranks with 3 rows and 1 row both get 2 / 4 = 0.5.

    Raises ValueError on every rank if no rank has a row, and on a rank whose own local_rows is below 0, before it
    sends.
    """
    raise NotImplementedError("return the world size over the number of rows of all ranks")


def plan_buckets(parameters: Sequence[Tensor], bucket_bytes: int) -> list[list[int]]:
    """Which parameters travel together: lists of indices into `parameters`. Pure data: nothing is sent.

    Parameters are taken in reverse order, since backward computes the gradients of the last layers first. A
    bucket closes when the next parameter would take it over bucket_bytes bytes, or has another dtype or device.
    So a parameter that is larger than bucket_bytes is alone in its bucket. Every index is in one bucket, and no
    bucket is empty.

    Example: float32 parameters of 2, 5, 1 and 1 elements and buckets of 12 bytes: [[3, 2], [1], [0]].

    Raises ValueError if bucket_bytes is below 1.
    """
    raise NotImplementedError("return the indices of each bucket's parameters")


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
        raise NotImplementedError("keep the module and give every rank the values of rank 0")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the wrapped module returns for these arguments; its hooks run."""
        raise NotImplementedError("call the wrapped module")

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
        raise NotImplementedError("make backward only accumulate until the context ends")

    @abstractmethod
    def synchronize_gradients(self) -> None:
        """Makes every trainable `.grad` the mean over ranks (the sum / W), bit for bit the same on every rank.

        Every rank of the group calls, once after the last backward of a step. Before: `.grad` is as this rank's
        backwards left it, on top of what was not cleared, or None, which counts as zeros. After: the mean of
        `.grad` as it stood on each rank; zeros where no rank had one. Ranks may leave out different parameters.

        Raises RuntimeError inside `no_sync()`.

        Each of the four has its own; what they share may live here (`super().synchronize_gradients()`).
        """
        raise NotImplementedError("refuse inside no_sync(), and do what the four have in common")


class NaiveDDP(DDP):
    """After backward, one all-reduce for each parameter."""

    def synchronize_gradients(self) -> None:
        """As in DDP. One all-reduce for each trainable parameter, of the size of that parameter."""
        raise NotImplementedError("average the gradient of each parameter by an all-reduce of its own")


class FlatDDP(DDP):
    """After backward, all gradients in one all-reduce."""

    def synchronize_gradients(self) -> None:
        """As in DDP. One all-reduce for each dtype (and device) among the trainable parameters."""
        raise NotImplementedError("average all gradients of one dtype by one all-reduce")


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
        raise NotImplementedError("let backward issue each gradient's all-reduce, in one order")

    def synchronize_gradients(self) -> None:
        """As in DDP. Issues what backward left out on this rank: its `.grad`, or zeros; then waits for all."""
        raise NotImplementedError("issue what backward left out, wait for all, and write the means")


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
        raise NotImplementedError("plan the buckets and let backward issue their all-reduces in order")

    def synchronize_gradients(self) -> None:
        """As in DDP. Issues the buckets that backward left open on this rank, then waits for all."""
        raise NotImplementedError("issue the buckets left open, wait for all, and write the means")
