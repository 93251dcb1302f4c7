"""Programs that call `setup` and `cleanup` of collectives.py in worlds that are in no process group yet."""

from __future__ import annotations

import os
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist

from grader.world.program import attempt


def setup(here, *, seconds):
    """Yields the default group that two calls of `setup` made, and what a third and wrong arguments led to.

    seconds: the timeout that the first call is given.
    """
    meeting = Meeting(here)
    with server(here, meeting):
        device = here.submission.setup(here.rank, here.world_size, backend="gloo", timeout=timedelta(seconds=seconds))
        yield described(device)
        again = f"{here.init_method}-again"
        yield attempt(here.submission.setup, here.rank, here.world_size, backend="gloo", init_method=again)
        meeting.wait("before the first group ends")
        dist.destroy_process_group()
        meeting.wait("before the server ends")

    with gpus(here.world_size - 1):
        device = here.submission.setup(here.rank, here.world_size, init_method=here.init_method)
    yield described(device)
    meeting.wait("before the second group ends")
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
    """Yields what became of each call, and whether there is a default group after it."""
    meeting = Meeting(here)
    yield attempt(here.submission.cleanup)
    for name in ("first", "second"):
        method = f"{here.init_method}-{name}"
        dist.init_process_group("gloo", init_method=method, rank=here.rank, world_size=here.world_size)
        meeting.wait(f"before the {name} group ends")
        yield attempt(here.submission.cleanup)
        yield dist.is_initialized()
        yield attempt(here.submission.cleanup)


class Meeting:
    """Where the ranks wait for each other without a process group.

    A rank that ended a group while others still connect to it would look like the cause of their errors.
    """

    def __init__(self, here):
        self.store = dist.FileStore(here.init_method.removeprefix("file://") + "-meeting", here.world_size)
        self._world_size = here.world_size

    def wait(self, occasion):
        """Until every rank has called it with this `occasion`."""
        if self.store.add(f"{occasion}: ranks", 1) == self._world_size:
            self.store.set(f"{occasion}: all", "")
        self.store.wait([f"{occasion}: all"])


@contextmanager
def server(here, meeting):
    """Meanwhile env:// leads to a server on a free port of rank 0, as under torchrun."""
    if here.rank == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        meeting.store.set("port", str(store.port))
    port = meeting.store.get("port").decode()
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_USE_AGENT_STORE": "True"}
    with patch.dict(os.environ, address):
        yield


def described(device):
    """The device and the default group, and the sum of 1 over its ranks."""
    ranks = torch.ones(1, dtype=torch.int64)
    dist.all_reduce(ranks)
    return {
        "device": str(device) if isinstance(device, torch.device) else device,
        "is_device": isinstance(device, torch.device),
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "ranks": int(ranks),
        "backend": dist.get_backend(),
        "timeout": timeout_of(dist.group.WORLD).total_seconds(),
    }


def timeout_of(group):
    """That of the harness's group in the place of torch's own, or of torch's own, which keeps it with its backend."""
    backend = group if hasattr(group, "options") else group._get_backend(torch.device("cpu"))
    return backend.options._timeout


def gpus(count):
    """This host seems to have that many."""
    return patch.multiple("torch.cuda", device_count=lambda: count, is_available=lambda: count > 0)
