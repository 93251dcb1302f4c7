"""Where the zygote lives: the interface that a jail implements, and the form without a jail."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Confinement:
    """What the warden of each world does to itself, inside the jail, before it forks ranks. Pure data.

    pid_namespace: the world gets a pid namespace of its own (needs CAP_SYS_ADMIN in the zygote; dropped after).
    limits:        resource limits by name ("NPROC", "DATA", "FSIZE", "NOFILE", ...), soft = hard.
    seccomp:       a raw array of sock_filter instructions, or empty.
    """

    pid_namespace: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    seccomp: bytes = b""


class Jail(Protocol):
    """A place where a zygote, and every rank forked from it, lives."""

    @property
    def name(self) -> str:
        """For messages and the gradebook: "none", "bubblewrap"."""
        ...

    @property
    def confinement(self) -> Confinement:
        """What each world in it does to itself."""
        ...

    def start(self, control: socket.socket, *, run_id: str) -> subprocess.Popen[bytes]:
        """Starts `grader.world.zygote.main(fd)` with `control` as its only inherited descriptor beyond 0, 1, 2.

        The process carries GRADER_RUN=run_id in its environment, OMP_NUM_THREADS=1 and GLOO_SOCKET_IFNAME=lo;
        its stderr is a pipe (`Popen.stderr`), read only when the zygote fails to start.
        """
        ...


def zygote_environment(run_id: str) -> dict[str, str]:
    """The environment that a zygote needs, and nothing of the judge's own."""
    return {
        "GRADER_RUN": run_id,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


class NoJail:
    """The zygote as an ordinary child process: for a student's own code on a student's own machine."""

    name = "none"
    confinement = Confinement()

    def start(self, control: socket.socket, *, run_id: str) -> subprocess.Popen[bytes]:
        """See `Jail.start`. The judge's environment is passed on, so that the student's settings hold."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "grader.world.zygote", str(control.fileno())],
            pass_fds=[control.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **zygote_environment(run_id)},
        )
