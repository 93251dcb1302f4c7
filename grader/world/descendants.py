"""Ending every process below this one: what a subreaper does when its world ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def children() -> list[int]:
    """The pids of this process's direct children. In a jail without /proc: [-1], all that can be signalled."""
    task = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return [int(pid) for pid in task.read_text().split()]
    except OSError:
        return _children_by_stat() if Path("/proc/self").exists() else [-1]


def _children_by_stat() -> list[int]:
    """For kernels without /proc/…/children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state ppid …; the name may hold blanks and brackets
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it ended meanwhile
        if parent == os.getpid():
            found.append(int(stat.parent.name))
    return found


def end_all_children(known: set[int]) -> None:
    """Kills and reaps until no child is left; each death may hand this process new ones.

    known: pids to kill where the system cannot list children (macOS): their process groups are killed.
    """
    for pid in known:
        _kill_group(pid)
    while True:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
