"""A running jail: bubblewrap as a child process, which knows when everything inside is gone.

bubblewrap's own way to die with its parent is not used. If it is ended in the moment in which its child waits for
it, the child waits for ever; and its parent is a thread, not a process. Instead what runs inside ends when its end
of a socket, the lifeline, tells it that the judge has gone (`confine.end_with`), and everything inside with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
# The kernel takes the jail first when memory runs out: every process inside inherits this.
_FIRST_TO_DIE = 'echo 1000 > /proc/self/oom_score_adj; exec "$0" "$@"'


class JailedProcess(subprocess.Popen[bytes]):
    """bubblewrap and everything inside it. `stderr` is a pipe; inside, stdin and stdout are /dev/null.

    It is there once the command inside has sent its first byte over the lifeline, or has ended without. `kill` ends
    everything inside; `wait` returns when all of it is gone; it ends too when this process does.

    arguments:   bubblewrap's, passed by a descriptor, so that the host's list of processes does not show them.
    command:     what runs inside; it calls `confine.end_with` on the second socket of `lifeline`, and sends a byte.
    lifeline:    a pair of sockets for nothing else; the second one is closed here.
    keep:        descriptors that the command inherits, under their numbers; no others but 0, 1, 2 and the lifeline.
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
        lifeline: tuple[socket.socket, socket.socket],
        keep: Sequence[int],
        environment: Mapping[str, str],
        uid: int | None,
    ) -> None:
        self.command_ran = False
        self._killed = False
        self._inside: int | None = None  # a descriptor of the process 1 inside
        # A file, not a pipe: bubblewrap would end in that same bad moment if nobody read it any more.
        self._status = tempfile.TemporaryFile()  # noqa: SIM115  closed by `wait`
        self._lifeline, theirs = lifeline
        with theirs, tempfile.TemporaryFile() as words:
            words.write(b"".join(word.encode() + b"\0" for word in arguments))
            words.seek(0)
            options = ["--args", str(words.fileno()), "--json-status-fd", str(self._status.fileno())]
            super().__init__(
                ["/bin/sh", "-c", _FIRST_TO_DIE, str(bwrap), *options, "--", *command],
                pass_fds=[words.fileno(), self._status.fileno(), theirs.fileno(), *keep],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=dict(environment),
                cwd="/",
                start_new_session=True,  # Ctrl-C at the terminal is the judge's to handle
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
            )
        self._lifeline.settimeout(START_SECONDS)
        try:
            self._lifeline.recv(1)  # b"" if all that held the other end has gone
        except TimeoutError:
            super().kill()
        first = self._reports()
        if first:
            with suppress(ProcessLookupError):
                self._inside = os.pidfd_open(first[0]["child-pid"])

    def kill(self) -> None:
        """Ends bubblewrap and everything inside, without waiting for it."""
        self._killed = True  # bubblewrap may still report that the command has ended, before it is killed itself
        self._kill_inside()
        super().kill()

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once neither bubblewrap nor any process inside is left.

        bubblewrap itself can be reaped up to 40 ms before the inside is gone; process 1 of a pid namespace ends
        only after all others in it. Raises subprocess.TimeoutExpired.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        code = super().wait(timeout)
        if self._inside is not None:
            self._kill_inside()  # where something else has ended bubblewrap alone
            poll = select.poll()
            poll.register(self._inside, select.POLLIN)
            left = None if ends is None else max(0.0, ends - time.monotonic()) * 1000
            if not poll.poll(left):
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            os.close(self._inside)
            self._inside = None
        if not self._status.closed:
            self.command_ran = not self._killed and any("exit-code" in report for report in self._reports())
            self._status.close()
            self._lifeline.close()
        return code

    def _kill_inside(self) -> None:
        if self._inside is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inside, signal.SIGKILL)

    def _reports(self) -> list[dict[str, Any]]:
        """What bubblewrap has written so far; its descriptor shares our place in the file."""
        return [json.loads(line) for line in os.pread(self._status.fileno(), 65536, 0).splitlines()]
