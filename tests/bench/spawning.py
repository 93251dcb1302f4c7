"""What worlds are compared with: torch's own spawn, and a bare fork of a process that has torch imported.

`python -m tests.bench.spawning SIZE` serves bare forks: a line on stdin asks for a world, a line on stdout says
that it has ended. It is a process of its own, since one that ran tensor operations must not fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self


def all_reduce_once(rank: int, world_size: int, meeting: str) -> None:
    """Joins by a file, adds up one number over all ranks, and leaves."""
    import torch
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world_size)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def spawn_world(world_size: int) -> None:
    """One world by torch.multiprocessing.spawn."""
    import torch.multiprocessing

    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meet")
        torch.multiprocessing.spawn(all_reduce_once, (world_size, meeting), nprocs=world_size)


class BareForks:
    """Worlds by os.fork from a process that only imported torch."""

    def __init__(self, world_size: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.spawning", str(world_size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def __call__(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("world\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "ended\n":
            raise RuntimeError("the process that forks has gone")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def serve(world_size: int) -> None:
    """The process that forks."""
    import gc

    import torch.distributed  # noqa: F401  what a forked rank would import otherwise

    gc.freeze()
    for _ in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            pids = [_fork_rank(rank, world_size, str(Path(folder) / "meet")) for rank in range(world_size)]
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        if any(codes):
            raise RuntimeError(f"ranks ended with {codes}")
        sys.stdout.write("ended\n")
        sys.stdout.flush()


def _fork_rank(rank: int, world_size: int, meeting: str) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            all_reduce_once(rank, world_size, meeting)
            code = 0
        finally:
            os._exit(code)
    return pid


if __name__ == "__main__":
    serve(int(sys.argv[1]))
