"""The judge's hold on a zygote: starts it on first use, asks it for worlds, and ends it with everything below."""

from __future__ import annotations

import atexit
import base64
import os
import socket
import subprocess
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from grader.world import wire
from grader.world.jail import Jail, NoJail

START_SECONDS = 90.0


class InfraError(Exception):
    """The grader itself, or this machine, is at fault: never scored against a submission."""


def run_id() -> str:
    """GRADER_RUN of this process: every process of a run carries it, so that leftovers can be counted."""
    return os.environ.setdefault("GRADER_RUN", str(uuid.uuid4()))


class Launcher:
    """Starts worlds in one jail. Not for use from several threads at once.

    Use as a context manager, or call `close`; a process that forgets both closes it at its end.
    """

    def __init__(self, jail: Jail | None = None) -> None:
        self.jail = jail if jail is not None else NoJail()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._ready = False

    @property
    def pid(self) -> int | None:
        """The zygote's process, or the jail's that holds it; None before it is started."""
        return self._process.pid if self._process is not None else None

    def begin(self) -> None:
        """Starts the zygote without waiting for it, so that its imports run beside the judge's own."""
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = self.jail.start(theirs, run_id=run_id())
        ours.settimeout(START_SECONDS)
        self._control = ours
        confinement = self.jail.confinement
        wire.send(
            ours,
            {
                "pid_namespace": confinement.pid_namespace,
                "limits": dict(confinement.limits),
                "seccomp": base64.b64encode(confinement.seccomp).decode(),
            },
        )
        atexit.register(self.close)

    def wait_until_ready(self) -> None:
        """Returns when worlds can be started. Raises InfraError where the zygote does not come up."""
        self.begin()
        if not self._ready:
            self._expect("ready")
            self._ready = True

    def start_world(self, descriptors: Sequence[int]) -> None:
        """Forks the warden of a world that gets `descriptors` (see warden.Lines). Raises InfraError."""
        self.wait_until_ready()
        assert self._control is not None
        try:
            socket.send_fds(self._control, [b"world"], list(descriptors))
        except OSError as error:
            raise InfraError(self._why()) from error
        self._expect("taken")

    def _expect(self, event: str) -> None:
        assert self._control is not None
        try:
            message = wire.receive(self._control)
        except OSError as error:
            raise InfraError(self._why()) from error
        if message is None or message.head.get("event") != event:
            raise InfraError(self._why())

    def _why(self) -> str:
        """Ends what is left of the zygote and says what it wrote last."""
        process = self._process
        if process is None or process.stderr is None:
            return "the zygote did not start"
        process.kill()
        lines = process.stderr.read().decode(errors="replace").strip().splitlines()
        self.close()
        last = lines[-1] if lines else f"it ended with code {process.returncode} and wrote nothing"
        return f"the process that ranks are forked from did not start or has gone: {last}"

    def close(self) -> None:
        """Ends the zygote and all below it. A closed launcher starts a new one when it is used again."""
        process, control = self._process, self._control
        self._process = self._control = None
        self._ready = False
        if control is not None:
            control.close()
        if process is not None:
            # Its end ends every warden, by the parent-death signal, and every rank with its warden.
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
            atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
