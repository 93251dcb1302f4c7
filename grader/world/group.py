"""How a rank joins the world's process group."""

from __future__ import annotations

from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import Store


def join(store: Store, *, rank: int, world_size: int, timeout: timedelta) -> None:
    """Makes the default group of this world; every rank calls. `timeout` bounds each operation in it."""
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=timeout)
