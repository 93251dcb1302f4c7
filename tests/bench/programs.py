"""The program of the benchmark of worlds."""

import torch
import torch.distributed as dist


def all_reduce_once(here):
    """Adds up one number over all ranks."""
    total = torch.ones(1)
    dist.all_reduce(total)
    return total
