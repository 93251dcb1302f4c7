"""The programs of the benchmarks."""

import statistics
import time

import torch
import torch.distributed as dist


def all_reduce_once(here):
    """Adds up one number over all ranks."""
    total = torch.ones(1)
    dist.all_reduce(total)
    return total


def time_all_reduces(here, *, elements, repeats, rounds):
    """Median seconds of one all-reduce of gloo alone, and of a traced one: synchronous, and by a handle."""
    tensor = torch.ones(elements)
    gloo, options = dist.group.WORLD._gloo, dist.AllreduceOptions()
    kinds = [
        lambda: gloo.allreduce([tensor], options).wait(),
        lambda: dist.all_reduce(tensor),
        lambda: dist.all_reduce(tensor, async_op=True).wait(),
    ]
    seconds = [[] for _ in kinds]
    for _ in range(rounds):
        for kind, own in zip(kinds, seconds, strict=True):
            dist.barrier()
            began = time.perf_counter()
            for _ in range(repeats):
                kind()
            own.append((time.perf_counter() - began) / repeats)
    return [statistics.median(own) for own in seconds]


def all_receive(here):
    """Every rank waits for its right neighbour; the last to do so says when."""
    dist.barrier()
    print(time.monotonic())
    dist.recv(torch.empty(1), (here.rank + 1) % here.world_size)
