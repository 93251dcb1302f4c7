"""A running jail: bubblewrap as a child process, which knows when everything inside is gone."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# The kernel takes the jail first when memory runs out: every process inside inherits this.
_FIRST_TO_DIE = 'echo 1000 > /proc/self/oom_score_adj; exec "$0" "$@"'


class JailedProcess(subprocess.Popen[bytes]):
    """bubblewrap and everything inside it. `stderr` is a pipe; inside, stdin and stdout are /dev/null.

    It ends with the THREAD that makes it. `kill` ends everything inside; `wait` returns when all of it is gone.

    arguments:   bubblewrap's, passed by a descriptor, so that the host's list of processes does not show them.
    command:     what runs inside.
    keep:        descriptors that the command inherits, under their numbers; no others but 0, 1, 2.
    environment: bubblewrap's own, which is not the command's.
    uid:         the user that bubblewrap runs as; None for this process's own.

    command_ran: after `wait`, whether the command ended by itself; False if bubblewrap failed or was killed.
    """

    def __init__(
        self,
        bwrap: Path,
        arguments: Sequence[str],
        command: Sequence[str],
        *,
        keep: Sequence[int],
        environment: Mapping[str, str],
        uid: int | None,
    ) -> None:
        self.command_ran = False
        self._inside: int | None = None  # a descriptor of the process 1 inside
        status, status_writer = os.pipe()
        self._status = os.fdopen(status, "rb")
        words = _in_memory(b"".join(word.encode() + b"\0" for word in arguments))
        options = ["--args", str(words), "--json-status-fd", str(status_writer)]
        try:
            super().__init__(
                ["/bin/sh", "-c", _FIRST_TO_DIE, str(bwrap), *options, "--", *command],
                pass_fds=[words, status_writer, *keep],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd="/",
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
            )
        finally:
            os.close(words)
            os.close(status_writer)
        with suppress(LookupError, ProcessLookupError):  # it has failed at once, and nothing is inside
            self._inside = os.pidfd_open(json.loads(self._status.readline() or b"{}")["child-pid"])

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once neither bubblewrap nor any process inside is left.

        bubblewrap itself can be reaped up to 40 ms before the inside is gone; process 1 of a pid namespace ends
        only after all others in it. Raises subprocess.TimeoutExpired.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        code = super().wait(timeout)
        if self._inside is not None:
            poll = select.poll()
            poll.register(self._inside, select.POLLIN)
            left = None if ends is None else max(0.0, ends - time.monotonic()) * 1000
            if not poll.poll(left):
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            os.close(self._inside)
            self._inside = None
        if not self._status.closed:
            with self._status:
                self.command_ran = any("exit-code" in json.loads(line) for line in self._status)
        return code


def _in_memory(data: bytes) -> int:
    """A descriptor from which `data` can be read once."""
    descriptor = os.memfd_create("arguments")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
