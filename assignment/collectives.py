"""Module 1. The collectives of the lecture, built from messages between two ranks.

All functions follow the same rules.
- Every rank of `group` calls; None is the default group. Roots and peers are ranks *in the group*: rank 1 of
  the group of ranks [2, 3] is the process whose global rank is 3. A world of 1 works too.
- Inputs are never changed, and may be non-contiguous. Results are new, contiguous, of the input's dtype, on
  the group's device and outside autograd.
- Of n items rank r owns n // W + (1 if r < n % W else 0), in rank order (`piece_sizes` of grader.given).
- An argument that every rank gets alike and that is wrong (a root outside the group, an operator that is not
  SUM, AVG, MAX, MIN or PRODUCT) is a ValueError on every rank before anything is sent. What only one rank can
  see is a ValueError on that rank before it sends. A rank outside the group gets a ValueError.
- AVG needs a floating-point or complex dtype, MAX and MIN one that is not complex: else a ValueError.

From grader.given you may call `piece_sizes`, `broadcast_spec`, `exchange_sizes` and `exchange_counts`: their
messages are not counted. All else, up to and including `all_to_all`, is made from send, recv, isend, irecv
and batch_isend_irecv alone; what comes after may use torch's collectives. Where two ranks send to each other
in one step, batch the two messages or put them in an order: two unbatched ones can block on NCCL.

To do: put your code in place of each `raise NotImplementedError(...)`. Names, arguments and docstrings stay.
To check this module, from the folder above: pytest -k test_collectives
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from grader.given import Group, RedOp

T = TypeVar("T")


def setup(
    rank: int,
    world_size: int,
    *,
    backend: str | None = None,
    init_method: str = "env://",
    timeout: timedelta = timedelta(seconds=60),
) -> torch.device:
    """Makes this process rank `rank` of a new default group and returns the device that it computes on.

    Every process of the world calls, on one host. After it, the default group has `world_size` ranks and
    `timeout` for each operation. The device is cuda:rank, which becomes the current one, if the backend is
    NCCL, and cpu otherwise.

    backend:     "nccl", "gloo", ...; None takes NCCL if this host has a GPU for every rank, else gloo.
    init_method: where the ranks meet: "env://" reads MASTER_ADDR and MASTER_PORT; "file:///path" is a file
                 that does not exist yet, the same for all ranks.
    Raises RuntimeError if this process has a default group already; ValueError for world_size < 1 or a rank
    outside 0 ... world_size - 1, before it waits for any other.
    """
    raise NotImplementedError("choose the backend, bind the device, join the default group")


def cleanup() -> None:
    """Ends the default group. Every rank calls; a second call, or one without a group, does nothing."""
    raise NotImplementedError("destroy the default group if there is one")


def broadcast(tensor: Tensor, src: int, *, group: Group = None) -> Tensor:
    """Sends rank src's tensor to every rank; each returns a copy of it.

    Every rank passes a tensor of the same shape and dtype; the values of all but src's are ignored.

        src=1      rank 0    rank 1    rank 2
        passes     [0, 0]    [5, 6]    [0, 0]
        returns    [5, 6]    [5, 6]    [5, 6]
    """
    raise NotImplementedError("send src's tensor to every other rank and return it on all")


def scatter(tensor: Tensor | None, src: int, *, group: Group = None) -> Tensor:
    """Splits rank src's tensor along dimension 0, by the uneven rule; each rank returns its own piece.

    Ranks other than src pass None; a tensor there is ignored.

        src=0      rank 0             rank 1    rank 2
        passes     [1, 2, 3, 4, 5]    None      None
        returns    [1, 2]             [3, 4]    [5]

    Raises ValueError on every rank if src passes None or a 0-dimensional tensor.
    """
    raise NotImplementedError("send each rank its rows of src's tensor and return the own ones")


def gather(piece: Tensor, dst: int, *, group: Group = None) -> Tensor | None:
    """Concatenates the ranks' pieces along dimension 0, in rank order, on rank dst; the others return None.

    The pieces have the same dtype and shape but for dimension 0, which may be of any length, 0 too.

        dst=2      rank 0    rank 1    rank 2
        passes     [1]       []        [2, 3]
        returns    None      None      [1, 2, 3]

    Raises ValueError for a 0-dimensional piece.
    """
    raise NotImplementedError("send every piece to dst and concatenate them there")


def reduce(tensor: Tensor, dst: int, op: RedOp = dist.ReduceOp.SUM, *, group: Group = None) -> Tensor | None:
    """Combines the ranks' tensors element by element on rank dst; the others return None.

    Every rank passes a tensor of the same shape and dtype.

        dst=0      rank 0    rank 1    rank 2
        passes     [1, 9]    [2, 0]    [3, 0]
        SUM        [6, 9]    None      None
        AVG        [2, 3]    None      None
    """
    raise NotImplementedError("send every tensor to dst and combine them there")


def all_gather(piece: Tensor, *, group: Group = None) -> Tensor:
    """Concatenates the ranks' pieces along dimension 0, in rank order, on every rank.

    The pieces have the same dtype and shape but for dimension 0, which may be of any length, 0 too. A ring of
    W - 1 steps: each rank sends to one neighbour only, and each piece passes each link at most once.

                   rank 0       rank 1       rank 2
        passes     [1]          []           [2, 3]
        returns    [1, 2, 3]    [1, 2, 3]    [1, 2, 3]

    Raises ValueError for a 0-dimensional piece.
    """
    raise NotImplementedError("pass the pieces around the ring until every rank has them all")


def reduce_scatter(tensor: Tensor, op: RedOp = dist.ReduceOp.SUM, *, group: Group = None) -> Tensor:
    """Combines the ranks' tensors element by element; rank r returns piece r of the result along dimension 0.

    Every rank passes a tensor of the same shape and dtype; the pieces are those of the uneven rule. A ring of
    W - 1 steps: each rank sends to one neighbour only, and at most n − ⌊rows/W⌋ · (elements per row) of its n
    elements.

                   rank 0          rank 1          rank 2
        passes     [0, 1, 2, 3]    [1, 2, 3, 4]    [2, 3, 4, 5]
        SUM        [3, 6]          [9]             [12]

    Raises ValueError for a 0-dimensional tensor.
    """
    raise NotImplementedError("pass partial results around the ring until each rank has its piece")


def all_reduce(tensor: Tensor, op: RedOp = dist.ReduceOp.SUM, *, group: Group = None) -> Tensor:
    """Combines the ranks' tensors element by element; every rank returns the result, the same bits on each.

    Every rank passes a tensor of the same shape and dtype: any shape, 0-dimensional and empty too. Flattened,
    it is split into W chunks by the uneven rule; a ring reduce-scatter and a ring all-gather follow. Each
    rank sends to its ring neighbours only, and at most 2(n − ⌊n/W⌋) elements of the input's dtype.

                   rank 0    rank 1    rank 2
        passes     [1, 9]    [2, 0]    [3, 0]
        MAX        [3, 9]    [3, 9]    [3, 9]
    """
    raise NotImplementedError("reduce-scatter the flattened tensor, then all-gather the chunks")


def all_to_all(pieces: Sequence[Tensor], *, group: Group = None) -> list[Tensor]:
    """Sends pieces[r] to rank r; entry i of the result is what rank i sent here.

    The pieces of all ranks have the same dtype, and the same shape but for dimension 0, which may be 0. The
    own piece is copied, not sent.

                   rank 0            rank 1
        passes     [[1], [2, 3]]     [[4, 5], []]
        returns    [[1], [4, 5]]     [[2, 3], []]

    Raises ValueError, before it sends, unless there is one piece for each rank, each of one dimension at
    least, and they agree in dtype and trailing shape.
    """
    raise NotImplementedError("exchange the sizes, then send each rank its piece and receive theirs")


def all_reduce_while(
    tensor: Tensor, compute: Callable[[], T], op: RedOp = dist.ReduceOp.SUM, *, group: Group = None
) -> tuple[Tensor, T]:
    """All-reduces a copy of the tensor while `compute()` runs; returns the reduced copy and compute's result.

    The all-reduce (torch's own, of the dtypes it knows) is started first, then compute() is called once, then
    the all-reduce is waited for. If compute raises, it is waited for too, and then the exception goes on.
    """
    raise NotImplementedError("start the all-reduce on a copy, compute, wait, return both")


def global_mean_and_variance(x: Tensor, *, group: Group = None) -> tuple[Tensor, Tensor]:
    """Mean and population variance over all elements of all ranks' x; two 0-dimensional float64 tensors.

    Each rank passes a tensor of any shape and real dtype; a rank may hold no element. Every rank returns the
    same. One all-reduce: each rank puts its count, its mean and M2 (the sum of squared deviations from its
    own mean) into its row of a table of zeros. The rows combine as Chan, Golub and LeVeque showed (1979):
    M2 = Σ M2_r + Σ count_r (mean_r − mean)². Sums of squares cancel where this does not: the relative error
    stays below 1e-6 at mean 1e8 and variance 1.

                   rank 0    rank 1    rank 2
        passes     [1, 2]    []        [6]
        returns    3, 14/3   3, 14/3   3, 14/3

    Raises ValueError on every rank if no rank holds anything; ValueError for a complex x.
    """
    raise NotImplementedError("fill your row of the table, all-reduce it, combine the rows")


def dispatch_rows(rows: Tensor, destination: Tensor, *, group: Group = None) -> tuple[Tensor, Any]:
    """Sends row i to rank destination[i], as a mixture of experts does; returns the rows received and a plan.

    rows:        (N, ...), N differs by rank and may be 0; dtype and trailing shape are the same on all ranks.
    destination: (N,), whole numbers: ranks in the group.
    The received rows are in the order of their source rank, then of their row there. The plan is for
    `combine_rows`, and its form is up to you.

                        rank 0           rank 1
        rows            [10, 11, 12]     [20, 21]
        destination     [1, 0, 1]        [0, 1]
        received        [11, 20]         [10, 12, 21]

    Raises ValueError, before it sends, if destination has not one whole number for each row or names a rank
    outside the group.
    """
    raise NotImplementedError("sort the rows by destination, exchange the counts, exchange the rows")


def combine_rows(processed: Tensor, plan: Any, *, group: Group = None) -> Tensor:
    """The inverse of `dispatch_rows`: sends each row back to where it came from, in its old place.

    processed: (rows received, ...), one for each row that `dispatch_rows` returned here, in that order; any
               width and dtype, the same on all ranks.
    plan:      what that call returned; it is not used up.
    Returns (N, ...): row i is what became of row i of the `rows` that this rank dispatched.

        (the example of dispatch_rows)    rank 0           rank 1
        processed                         [-11, -20]       [-10, -12, -21]
        returns                           [-10, -11, -12]  [-20, -21]

    Raises ValueError, before it sends, if processed has not one row for each row received.
    """
    raise NotImplementedError("send the rows back and put each where it came from")
