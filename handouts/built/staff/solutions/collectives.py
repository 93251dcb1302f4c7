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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from grader.given import Group, RedOp

# isort: split
import math
from typing import NamedTuple

from grader.given import broadcast_spec, exchange_counts, exchange_sizes, piece_sizes

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
    if dist.is_initialized():
        raise RuntimeError("the default process group exists already; call cleanup() first")
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; expected 1 or more")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}; expected 0 to {world_size - 1} in a world of {world_size}")
    if backend is None:
        gpu_for_each = dist.is_nccl_available() and torch.cuda.device_count() >= world_size
        backend = "nccl" if gpu_for_each else "gloo"
    device = torch.device("cpu")
    if "nccl" in backend:
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    dist.init_process_group(
        backend,
        init_method=init_method,
        rank=rank,
        world_size=world_size,
        timeout=timeout,
        device_id=device if device.type == "cuda" else None,
    )
    return device


def cleanup() -> None:
    """Ends the default group. Every rank calls; a second call, or one without a group, does nothing."""
    if dist.is_initialized():
        dist.destroy_process_group()


_SUM, _AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG
_COMBINE: dict[RedOp, Callable[..., Tensor]] = {
    _SUM: torch.add,
    _AVG: torch.add,  # the sum first; `_finish` divides once
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.PRODUCT: torch.mul,
}


def _place(group: Group) -> tuple[int, int]:
    """This process's rank in the group, and the group's world size. Outside the group: ValueError."""
    rank = dist.get_rank(group)
    if rank < 0:
        raise ValueError("this rank is not in the group; only the group's members may call")
    return rank, dist.get_world_size(group)


def _check_root(name: str, root: int, world_size: int) -> None:
    if not 0 <= root < world_size:
        raise ValueError(f"{name} is {root}; expected a rank in the group: 0 to {world_size - 1}")


def _check_op(op: RedOp, dtype: torch.dtype) -> None:
    if op not in _COMBINE:
        raise ValueError(f"op is {op}; expected SUM, AVG, MAX, MIN or PRODUCT")
    if op == _AVG and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"AVG of {dtype}; expected a floating-point or complex dtype")
    if op in (dist.ReduceOp.MAX, dist.ReduceOp.MIN) and dtype.is_complex:
        raise ValueError(f"MAX or MIN of {dtype}; complex numbers have no order")


def _check_rows(tensor: Tensor) -> None:
    if tensor.dim() == 0:
        raise ValueError("a 0-dimensional tensor has no rows; expected one dimension or more")


def _plain(tensor: Tensor) -> Tensor:
    """The tensor as its bytes would be sent: contiguous, with a lazy conjugation or negation carried out."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _copy(tensor: Tensor) -> Tensor:
    return _plain(tensor).clone()


def _combine(total: Tensor, part: Tensor, op: RedOp) -> None:
    """Takes `part` into `total`, in place."""
    _COMBINE[op](total, part, out=total)


def _finish(total: Tensor, op: RedOp, world_size: int) -> Tensor:
    """AVG is a sum until every rank's part is in; divided once, in place. Others are done."""
    return total.div_(world_size) if op == _AVG else total


def _send_all(tensors: dict[int, Tensor], group: Group) -> None:
    """Sends tensors[r] to rank r, to all at the same time, and waits until all have gone."""
    works = [dist.isend(tensor, group=group, group_dst=peer) for peer, tensor in tensors.items()]
    for work in works:
        assert work is not None  # None is for ranks outside the group
        work.wait()


def _shift(outgoing: Tensor, incoming: Tensor, group: Group) -> None:
    """One step of the ring: `outgoing` goes to the right neighbour, `incoming` is filled from the left one.

    A message of no elements is sent as well: on NCCL every rank must take part in a group's first batch.
    """
    rank, world_size = _place(group)
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    step = [
        dist.P2POp(dist.isend, outgoing, group=group, group_peer=right),
        dist.P2POp(dist.irecv, incoming, group=group, group_peer=left),
    ]
    for work in dist.batch_isend_irecv(step):
        work.wait()


def _ring_reduce(pieces: Sequence[Tensor], op: RedOp, group: Group) -> Tensor:
    """Reduces pieces[r] of all ranks onto rank r, in W - 1 steps; returns this rank's, new.

    The partial result for piece p starts on rank p + 1 and travels to the right; each rank on its way takes
    its own piece p in, and after W - 1 steps it is on rank p. Every piece but pieces[rank] is sent once.
    """
    rank, world_size = _place(group)
    partial = pieces[(rank - 1) % world_size].clone()
    for step in range(world_size - 1):
        own = pieces[(rank - step - 2) % world_size]
        received = torch.empty_like(own)
        _shift(partial, received, group)
        _combine(received, own, op)
        partial = received
    return _finish(partial, op, world_size)


def _ring_gather(piece: Tensor, sizes: Sequence[int], group: Group) -> Tensor:
    """Concatenates the ranks' pieces (sizes[r] rows on rank r) on every rank, in W - 1 steps."""
    rank, world_size = _place(group)
    whole = piece.new_empty((sum(sizes), *piece.shape[1:]))
    pieces = torch.split(whole, list(sizes))
    pieces[rank].copy_(piece)
    for step in range(world_size - 1):
        _shift(pieces[(rank - step) % world_size], pieces[(rank - step - 1) % world_size], group)
    return whole


def broadcast(tensor: Tensor, src: int, *, group: Group = None) -> Tensor:
    """Sends rank src's tensor to every rank; each returns a copy of it.

    Every rank passes a tensor of the same shape and dtype; the values of all but src's are ignored.

        src=1      rank 0    rank 1    rank 2
        passes     [0, 0]    [5, 6]    [0, 0]
        returns    [5, 6]    [5, 6]    [5, 6]
    """
    rank, world_size = _place(group)
    _check_root("src", src, world_size)
    if rank != src:
        received = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
        dist.recv(received, group=group, group_src=src)
        return received
    result = _copy(tensor)
    _send_all({peer: result for peer in range(world_size) if peer != src}, group)
    return result


def scatter(tensor: Tensor | None, src: int, *, group: Group = None) -> Tensor:
    """Splits rank src's tensor along dimension 0, by the uneven rule; each rank returns its own piece.

    Ranks other than src pass None; a tensor there is ignored.

        src=0      rank 0             rank 1    rank 2
        passes     [1, 2, 3, 4, 5]    None      None
        returns    [1, 2]             [3, 4]    [5]

    Raises ValueError on every rank if src passes None or a 0-dimensional tensor.
    """
    rank, world_size = _place(group)
    _check_root("src", src, world_size)
    spec = broadcast_spec(tensor, src, group=group)
    if not spec.shape:
        raise ValueError(f"rank {src} passed a 0-dimensional tensor, which has no rows to scatter")
    rows, *trailing = spec.shape
    sizes = piece_sizes(rows, world_size)
    if rank != src:
        received = torch.empty((sizes[rank], *trailing), dtype=spec.dtype, device=spec.device)
        dist.recv(received, group=group, group_src=src)
        return received
    assert tensor is not None  # broadcast_spec has raised otherwise
    pieces = torch.split(_plain(tensor), sizes)
    _send_all({peer: pieces[peer] for peer in range(world_size) if peer != src}, group)
    return pieces[src].clone()


def gather(piece: Tensor, dst: int, *, group: Group = None) -> Tensor | None:
    """Concatenates the ranks' pieces along dimension 0, in rank order, on rank dst; the others return None.

    The pieces have the same dtype and shape but for dimension 0, which may be of any length, 0 too.

        dst=2      rank 0    rank 1    rank 2
        passes     [1]       []        [2, 3]
        returns    None      None      [1, 2, 3]

    Raises ValueError for a 0-dimensional piece.
    """
    rank, world_size = _place(group)
    _check_root("dst", dst, world_size)
    _check_rows(piece)
    piece = _plain(piece)
    sizes = exchange_sizes(piece.shape[0], group=group)
    if rank != dst:
        dist.send(piece, group=group, group_dst=dst)
        return None
    whole = piece.new_empty((sum(sizes), *piece.shape[1:]))
    for source, rows in enumerate(torch.split(whole, sizes)):
        if source == dst:
            rows.copy_(piece)
        else:
            dist.recv(rows, group=group, group_src=source)
    return whole


def reduce(tensor: Tensor, dst: int, op: RedOp = dist.ReduceOp.SUM, *, group: Group = None) -> Tensor | None:
    """Combines the ranks' tensors element by element on rank dst; the others return None.

    Every rank passes a tensor of the same shape and dtype.

        dst=0      rank 0    rank 1    rank 2
        passes     [1, 9]    [2, 0]    [3, 0]
        SUM        [6, 9]    None      None
        AVG        [2, 3]    None      None
    """
    rank, world_size = _place(group)
    _check_root("dst", dst, world_size)
    _check_op(op, tensor.dtype)
    if rank != dst:
        dist.send(_plain(tensor), group=group, group_dst=dst)
        return None
    total = _copy(tensor)
    received = torch.empty_like(total)
    for source in range(world_size):
        if source != dst:
            dist.recv(received, group=group, group_src=source)
            _combine(total, received, op)
    return _finish(total, op, world_size)


def all_gather(piece: Tensor, *, group: Group = None) -> Tensor:
    """Concatenates the ranks' pieces along dimension 0, in rank order, on every rank.

    The pieces have the same dtype and shape but for dimension 0, which may be of any length, 0 too. A ring of
    W - 1 steps: each rank sends to one neighbour only, and each piece passes each link at most once.

                   rank 0       rank 1       rank 2
        passes     [1]          []           [2, 3]
        returns    [1, 2, 3]    [1, 2, 3]    [1, 2, 3]

    Raises ValueError for a 0-dimensional piece.
    """
    _place(group)
    _check_rows(piece)
    piece = _plain(piece)
    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)


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
    _, world_size = _place(group)
    _check_op(op, tensor.dtype)
    _check_rows(tensor)
    pieces = torch.split(_plain(tensor), piece_sizes(tensor.shape[0], world_size))
    return _ring_reduce(pieces, op, group)


def all_reduce(tensor: Tensor, op: RedOp = dist.ReduceOp.SUM, *, group: Group = None) -> Tensor:
    """Combines the ranks' tensors element by element; every rank returns the result, the same bits on each.

    Every rank passes a tensor of the same shape and dtype: any shape, 0-dimensional and empty too. Flattened,
    it is split into W chunks by the uneven rule; a ring reduce-scatter and a ring all-gather follow. Each
    rank sends to its ring neighbours only, and at most 2(n − ⌊n/W⌋) elements of the input's dtype.

                   rank 0    rank 1    rank 2
        passes     [1, 9]    [2, 0]    [3, 0]
        MAX        [3, 9]    [3, 9]    [3, 9]
    """
    _, world_size = _place(group)
    _check_op(op, tensor.dtype)
    flat = _plain(tensor).reshape(-1)
    sizes = piece_sizes(flat.numel(), world_size)
    own = _ring_reduce(torch.split(flat, sizes), op, group)
    return _ring_gather(own, sizes, group).reshape(tensor.shape)


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
    rank, world_size = _place(group)
    if len(pieces) != world_size:
        raise ValueError(f"{len(pieces)} pieces came; expected one for each of the {world_size} ranks")
    for piece in pieces:
        _check_rows(piece)
        if (piece.shape[1:], piece.dtype) != (pieces[0].shape[1:], pieces[0].dtype):
            raise ValueError(
                f"a piece of {tuple(piece.shape)}, {piece.dtype} beside one of {tuple(pieces[0].shape)}, "
                f"{pieces[0].dtype}; they may differ in dimension 0 only"
            )
    outgoing = [_plain(piece) for piece in pieces]
    counts = exchange_counts([piece.shape[0] for piece in pieces], group=group)
    incoming = [outgoing[0].new_empty((count, *outgoing[0].shape[1:])) for count in counts]
    incoming[rank].copy_(outgoing[rank])
    messages = []
    for peer in range(world_size):
        if peer != rank:
            messages.append(dist.P2POp(dist.isend, outgoing[peer], group=group, group_peer=peer))
            messages.append(dist.P2POp(dist.irecv, incoming[peer], group=group, group_peer=peer))
    if messages:  # a world of 1 has none, and torch refuses an empty batch
        for work in dist.batch_isend_irecv(messages):
            work.wait()
    return incoming


def all_reduce_while(
    tensor: Tensor, compute: Callable[[], T], op: RedOp = dist.ReduceOp.SUM, *, group: Group = None
) -> tuple[Tensor, T]:
    """All-reduces a copy of the tensor while `compute()` runs; returns the reduced copy and compute's result.

    The all-reduce (torch's own, of the dtypes it knows) is started first, then compute() is called once, then
    the all-reduce is waited for. If compute raises, it is waited for too, and then the exception goes on.
    """
    _, world_size = _place(group)
    _check_op(op, tensor.dtype)
    total = _copy(tensor)
    # Not every backend and torch has AVG: sum, and divide when the sum is there.
    work = dist.all_reduce(total, _SUM if op == _AVG else op, group=group, async_op=True)
    try:
        result = compute()
    finally:
        work.wait()
    return _finish(total, op, world_size), result


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
    rank, world_size = _place(group)
    if x.is_complex():
        raise ValueError(f"x is {x.dtype}; expected a real dtype")
    values_N = x.detach().to(torch.float64).reshape(-1)
    table_W3 = values_N.new_zeros((world_size, 3))
    if values_N.numel() > 0:
        mean = values_N.mean()
        table_W3[rank, 0] = values_N.numel()
        table_W3[rank, 1] = mean
        table_W3[rank, 2] = (values_N - mean).square().sum()
    dist.all_reduce(table_W3, group=group)
    count_W, mean_W, m2_W = table_W3.unbind(dim=1)
    count = count_W.sum()
    if count == 0:
        raise ValueError("no rank holds an element; expected one at least somewhere")
    mean = (count_W * mean_W).sum() / count
    m2 = m2_W.sum() + (count_W * (mean_W - mean).square()).sum()
    return mean, m2 / count


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
    _, world_size = _place(group)
    _check_rows(rows)
    if destination.shape != rows.shape[:1]:
        raise ValueError(f"destination is {tuple(destination.shape)}; expected {tuple(rows.shape[:1])}")
    if destination.dtype.is_floating_point or destination.dtype.is_complex or destination.dtype == torch.bool:
        raise ValueError(f"destination is of {destination.dtype}; expected whole numbers")
    if not all(0 <= rank < world_size for rank in destination.tolist()):
        raise ValueError(f"destination is {destination.tolist()}; expected ranks 0 to {world_size - 1}")
    order = torch.argsort(destination, stable=True)
    send_counts = torch.bincount(destination, minlength=world_size).tolist()
    receive_counts = exchange_counts(send_counts, group=group)
    plan = _DispatchPlan(order, send_counts, receive_counts)
    return _exchange_rows(rows.detach()[order], send_counts, receive_counts, group), plan


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
    _place(group)
    _check_rows(processed)
    if processed.shape[0] != sum(plan.receive_counts):
        raise ValueError(f"{processed.shape[0]} rows came; expected {sum(plan.receive_counts)}, one for each received")
    returned = _exchange_rows(processed.detach(), plan.receive_counts, plan.send_counts, group)
    result = torch.empty_like(returned)
    result[plan.order] = returned
    return result


class _DispatchPlan(NamedTuple):
    """order[k] is the row that was sent as the k-th; the counts are rows to and from each rank."""

    order: Tensor
    send_counts: list[int]
    receive_counts: list[int]


def _exchange_rows(rows: Tensor, send: list[int], receive: list[int], group: Group) -> Tensor:
    """Sends the first send[0] rows to rank 0, and so on; returns those received, by source rank.

    Rows travel as bytes: backends lack some dtypes (gloo's all-to-all has no int16), none lacks uint8.
    """
    outgoing = _plain(rows)
    incoming = outgoing.new_empty((sum(receive), *rows.shape[1:]))
    dist.all_to_all_single(_row_bytes(incoming), _row_bytes(outgoing), receive, send, group=group)
    return incoming


def _row_bytes(rows: Tensor) -> Tensor:
    """The same memory as (rows, bytes per row)."""
    return rows.view(rows.shape[0], math.prod(rows.shape[1:])).view(torch.uint8)
