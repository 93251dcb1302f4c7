"""Programs that mark how far they are, hold a rank, use threads, or leave handles."""

import threading
import time

import torch
import torch.distributed as dist


def holds(here, *, blocks):
    """Rank 1 goes on when rank 0 has computed; rank 0 has something in flight then, or waits for it before."""
    tensor = torch.full((2,), float(here.rank))
    if here.rank == 1:
        here.hold(until="computed", of=0)
        dist.all_reduce(tensor)
        return tensor
    work = dist.all_reduce(tensor, async_op=not blocks)
    here.mark("computed")
    if not blocks:
        work.wait()
    return tensor


def interrupted(here, *, excused):
    """The owner of a handle has been interrupted, so nobody can wait for it."""
    if here.rank == 0:
        dist.isend(torch.ones(2), 1)
    if excused:
        here.excuse_handles()
    if here.rank == 1:
        tensor = torch.zeros(2)
        dist.recv(tensor, 0)
        return tensor
    return None


def threads(here):
    """Two threads of each rank use a group each, in an order of their own."""
    groups = [dist.new_group(), dist.new_group()]
    tensors = [torch.full((2,), float(here.rank + number)) for number in (0, 1)]

    def use(number):
        time.sleep(0.02 * (number if here.rank else 1 - number))
        for _ in range(5):
            dist.all_reduce(tensors[number], group=groups[number])

    workers = [threading.Thread(target=use, args=(number,)) for number in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return tensors


def waits_in_two_threads(here):
    """One handle, and two threads that wait for it."""
    tensor = torch.full((2,), float(here.rank))
    if here.rank == 0:
        time.sleep(0.1)
    work = dist.all_reduce(tensor, async_op=True)
    seen = []
    workers = [threading.Thread(target=lambda: (work.wait(), seen.append(tensor.clone()))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return seen


def slow(here, *, seconds):
    """Rank 0 is busy while all others wait: in a collective, for a message, for a handle and in a poll."""
    if here.rank == 0:
        time.sleep(seconds)
        dist.send(torch.ones(1), 1)
    if here.rank == 1:
        dist.recv(torch.ones(1), 0)
    works = [dist.all_reduce(torch.ones(1), async_op=True) for _ in range(2)]
    if here.rank == 2:
        while not works[0].is_completed():
            pass
    for work in works:
        work.wait()
    dist.barrier()
    return here.rank
