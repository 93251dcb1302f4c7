"""Programs that call `setup` and `cleanup` of collectives.py in worlds that are in no process group yet."""

from __future__ import annotations

import os
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist

from grader.world.program import attempt


def setup(here, *, seconds):
    """Yields the default group that two calls of `setup` made, and what a third and wrong arguments led to.

    seconds: the timeout that the first call is given.
    """
    # The address of a server that is there already, on a free port: what torchrun gives its processes.
    server = None
    meeting = dist.FileStore(here.init_method.removeprefix("file://") + "-port", here.world_size)
    if here.rank == 0:
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        meeting.set("port", str(server.port))
    port = meeting.get("port").decode()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True")
    device = here.submission.setup(here.rank, here.world_size, backend="gloo", timeout=timedelta(seconds=seconds))
    yield described(device)
    again = f"{here.init_method}-again"
    yield attempt(here.submission.setup, here.rank, here.world_size, backend="gloo", init_method=again)
    dist.destroy_process_group()

    # A GPU for all ranks but one.
    with gpus(here.world_size - 1):
        device = here.submission.setup(here.rank, here.world_size, init_method=here.init_method)
    yield described(device)
    dist.destroy_process_group()

    for rank, world_size in ((here.world_size, here.world_size), (-1, here.world_size), (0, 0)):
        yield attempt(
            here.submission.setup,
            rank,
            world_size,
            backend="gloo",
            init_method=f"{here.init_method}-{rank}-{world_size}",
            timeout=timedelta(seconds=1),
        )
        yield dist.is_initialized()


def cleanup(here):
    """Yields whether there is a default group after each step, and what became of each call."""
    yield attempt(here.submission.cleanup)
    dist.init_process_group("gloo", init_method=here.init_method, rank=here.rank, world_size=here.world_size)
    dist.all_reduce(torch.ones(1))
    yield attempt(here.submission.cleanup)
    yield dist.is_initialized()
    yield attempt(here.submission.cleanup)
    again = f"{here.init_method}-again"
    dist.init_process_group("gloo", init_method=again, rank=here.rank, world_size=here.world_size)
    yield attempt(here.submission.cleanup)
    yield dist.is_initialized()


def described(device):
    """The device and the default group, and the sum of 1 over its ranks."""
    ranks = torch.ones(1, dtype=torch.int64)
    dist.all_reduce(ranks)
    gloo = dist.group.WORLD._get_backend(torch.device("cpu"))
    return {
        "device": str(device) if isinstance(device, torch.device) else device,
        "is_device": isinstance(device, torch.device),
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "ranks": int(ranks),
        "backend": dist.get_backend(),
        "timeout": gloo.options._timeout.total_seconds(),
    }


def gpus(count):
    """This host seems to have that many."""
    return patch.multiple("torch.cuda", device_count=lambda: count, is_available=lambda: count > 0)
