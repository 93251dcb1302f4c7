"""A submission of mistakes: each function makes one that gloo answers with silence, an abort or a timeout.

Each takes the rank and the world size. The lines that a message has to show end in "here".
"""

import torch
import torch.distributed as dist


def shape(rank, size):
    dist.all_reduce(torch.ones(4 if rank == 0 else 1000))  # here


def shape_of_a_broadcast(rank, size):
    if rank == 0:
        dist.broadcast(torch.ones(8), src=0)  # here
    else:
        dist.broadcast(torch.ones(2, 3), src=0)  # here


def dtype(rank, size):
    dist.all_reduce(torch.ones(4, dtype=torch.float16 if rank == 1 else torch.float32))  # here


def operation(rank, size):
    tensor = torch.ones(4)
    if rank == 0:
        dist.all_reduce(tensor)  # here
    else:
        dist.broadcast(tensor, src=0)  # here


def reduction(rank, size):
    dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)  # here


def root(rank, size):
    dist.broadcast(torch.ones(4), src=rank)  # here


def missing_rank(rank, size):
    if rank == size - 1:
        return
    dist.all_reduce(torch.ones(4))  # here


def missing_rank_of_a_barrier(rank, size):
    if rank != 0:
        dist.barrier()  # here


def one_more_iteration(rank, size):
    for _ in range(3 if rank == 0 else 2):
        dist.all_reduce(torch.ones(4))  # here


def unequal_all_gather(rank, size):
    dist.all_gather([torch.empty(2 + rank) for _ in range(size)], torch.ones(2 + rank))  # here


def all_gather_with_other_room(rank, size):
    dist.all_gather([torch.empty(3) for _ in range(size)], torch.ones(2))  # here


def unequal_gather(rank, size):
    outputs = [torch.empty(2) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.ones(2 if rank == 0 else 3), outputs, dst=0)  # here


def unequal_scatter(rank, size):
    pieces = [torch.ones(2 + to) for to in range(size)] if rank == 0 else None
    dist.scatter(torch.empty(2), pieces, src=0)  # here


def unequal_exchange(rank, size):
    """Each rank expects two rows of everyone, and rank 1 gives three to the first."""
    gives = [3, 1] if rank == 1 else [2, 2]
    dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 2], gives)  # here


def strided(rank, size):
    dist.broadcast(torch.arange(8.0)[::2], src=0)  # here


def strided_reduce(rank, size):
    dist.all_reduce(torch.ones(4, 2)[:, 0])  # here


def mixed_layouts(rank, size):
    matrix = torch.arange(6.0).reshape(2, 3)
    dist.all_reduce(matrix.reshape(3, 2).t() if rank == 1 else matrix)  # here


def receives_more(rank, size):
    if rank == 0:
        dist.send(torch.ones(4), 1)  # here
    else:
        dist.recv(torch.empty(8), 0)  # here


def receives_less(rank, size):
    if rank == 0:
        dist.send(torch.ones(4), 1)  # here
    else:
        dist.recv(torch.empty(2), 0)  # here


def receives_another_dtype(rank, size):
    if rank == 0:
        dist.send(torch.ones(4), 1)  # here
    else:
        dist.recv(torch.empty(4, dtype=torch.int32), 0)  # here


def both_send(rank, size):
    peer = 1 - rank
    dist.send(torch.ones(4), peer)  # here
    dist.recv(torch.ones(4), peer)


def both_receive(rank, size):
    dist.recv(torch.ones(4), 1 - rank)  # here
    dist.send(torch.ones(4), 1 - rank)


def another_tag(rank, size):
    if rank == 0:
        dist.send(torch.ones(4), 1, tag=7)  # here
    else:
        dist.recv(torch.ones(4), 0, tag=8)  # here


def never_sent(rank, size):
    if rank == 1:
        dist.recv(torch.ones(4), 0)  # here


def never_sent_by_anybody(rank, size):
    if rank == 1:
        dist.recv(torch.ones(4))  # here


def dropped_isend(rank, size):
    if rank == 0:
        dist.isend(torch.ones(4), 1)  # here
    else:
        dist.recv(torch.ones(4), 0)


def dropped_all_reduce(rank, size):
    gradient = torch.ones(4)
    dist.all_reduce(gradient, async_op=True)  # here
    return gradient


def modified_isend(rank, size):
    tensor = torch.ones(4)
    if rank == 0:
        work = dist.isend(tensor, 1)  # here
        tensor += 1
        work.wait()  # here
    else:
        dist.recv(tensor, 0)
    return tensor


def modified_broadcast(rank, size):
    weights = torch.full((4,), float(rank + 1))
    work = dist.broadcast(weights, src=0, async_op=True)  # here
    if rank == 0:
        weights.mul_(0.5)
    work.wait()  # here


def divides_before_wait(rank, size):
    gradient = torch.full((4,), float(rank))
    work = dist.all_reduce(gradient, async_op=True)  # here
    gradient /= size
    work.wait()  # here
    return gradient


def fills_before_wait(rank, size):
    """In a part of a buffer, whose other parts may be written."""
    buffer = torch.zeros(8)
    work = dist.all_reduce(buffer[:4], async_op=True)  # here
    buffer[4:].fill_(1.0)
    buffer[:4].fill_(2.0)
    work.wait()  # here
    return buffer


def polls_for_ever(rank, size):
    if rank == 0:
        work = dist.irecv(torch.ones(4), 1)  # here
        while not work.is_completed():  # here
            pass


def only_members_make_the_group(rank, size):
    ranks = [0, 1] if rank < 2 else [2, 3]
    group = dist.new_group(ranks)  # here
    dist.all_reduce(torch.ones(4), group=group)


def one_rank_makes_the_group(rank, size):
    if rank == 0:
        dist.new_group([0, 1])  # here


def groups_in_another_order(rank, size):
    pair, everybody = dist.new_group([0, 1]), dist.group.WORLD
    for group in (pair, everybody) if rank == 0 else (everybody, pair):
        dist.all_reduce(torch.ones(4), group=group)  # here


def premultiplied_sum(rank, size):
    dist.all_reduce(torch.ones(4), op=dist._make_nccl_premul_sum(0.5))  # here


def average_of_integers(rank, size):
    dist.all_reduce(torch.ones(4, dtype=torch.int64), op=dist.ReduceOp.AVG)  # here


def stacked_output(rank, size):
    dist.all_gather_into_tensor(torch.empty(size, 4), torch.ones(4))  # here


def unequal_list_exchange(rank, size):
    lengths = [1 + rank + to for to in range(size)]
    dist.all_to_all([torch.empty(n) for n in lengths], [torch.ones(n) for n in lengths])  # here


def sends_beyond_the_last(rank, size):
    dist.send(torch.ones(4), rank + 1)  # here


def receives_before_the_first(rank, size):
    dist.recv(torch.ones(4), rank - 1)  # here


def reads_before_wait(rank, size):
    gradient = torch.full((4,), float(rank))
    work = dist.all_reduce(gradient, async_op=True)  # here
    mean = gradient / size
    work.wait()  # here
    return mean


def reads_a_reduce_everywhere(rank, size):
    tensor = torch.full((4,), float(rank + 1))
    dist.reduce(tensor, dst=0)  # here
    return tensor


def swapped_order(rank, size):
    a, b = torch.full((2,), 1.0), torch.full((2,), 100.0)
    if rank == 0:
        dist.all_reduce(a)  # here
        dist.all_reduce(b)
    else:
        dist.all_reduce(b)  # here
        dist.all_reduce(a)
    return a, b


def catches_everything(rank, size):
    """A student's `except` must not make the world go on."""
    try:
        dist.all_reduce(torch.ones(4 + rank))  # here
    except Exception:
        dist.barrier()
