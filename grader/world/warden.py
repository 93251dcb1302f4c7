"""The warden of one world: forks its ranks, owns their store, reports deaths, and outlives every process of it.

In a jail it is process 1 of the world's pid namespace. Elsewhere it is the world's subreaper, so that a process
that a submission left behind becomes its child. Either way it ends only when nothing of the world is left.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from grader.world import confine, rank, store, wire
from grader.world.descendants import end_all_children
from grader.world.jail import Confinement
from grader.world.store import StoreServer


@dataclass(frozen=True)
class Lines:
    """The descriptors of one world, as the judge sent them: one report socket, and three lines for each rank."""

    report: socket.socket
    channels: Sequence[socket.socket]
    outputs: Sequence[int]
    stacks: Sequence[int]

    @staticmethod
    def of(descriptors: Sequence[int]) -> Lines:
        """From [report, channels…, outputs…, stacks…]."""
        report, *others = descriptors
        size = len(others) // 3
        return Lines(
            report=socket.socket(fileno=report),
            channels=[socket.socket(fileno=number) for number in others[:size]],
            outputs=others[size : 2 * size],
            stacks=others[2 * size :],
        )


def run_world(lines: Lines, confinement: Confinement) -> NoReturn:
    """Runs one world and ends this process, and every process below it."""
    confine.die_with_parent()
    if confinement.pid_namespace:
        confine.enter_pid_namespace()
        first = os.fork()
        if first:
            # The report ends with this process, which ends after the kernel has ended the whole namespace.
            close_all_but({lines.report.fileno()})
            os.waitpid(first, 0)
            os._exit(0)
    else:
        confine.become_subreaper()
    confine.apply(confinement)
    confine.die_with_parent()
    place = Path(tempfile.mkdtemp(prefix="grader-world-"))
    pids: dict[int, int] = {}
    try:
        _Warden(lines, place, pids).run()
    finally:
        end_all_children(set(pids))
        shutil.rmtree(place, ignore_errors=True)
        os._exit(0)


class _Warden:
    """pids: rank by process id, of those that have not ended; filled here, read by the caller too."""

    def __init__(self, lines: Lines, place: Path, pids: dict[int, int]) -> None:
        self._lines = lines
        self._pids = pids
        self._store = StoreServer()
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        os.set_blocking(self._wake_reader, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        self._fork_ranks(place)

    def _fork_ranks(self, place: Path) -> None:
        lines, size = self._lines, len(self._lines.channels)
        stores = [socket.socketpair() for _ in range(size)]
        # No rank runs a submission before all are forked: what it does could make the next fork fail.
        gate, gate_holder = os.pipe()
        for number in range(size):
            pid = os.fork()
            if pid == 0:
                mine = {
                    lines.channels[number].fileno(),
                    lines.outputs[number],
                    lines.stacks[number],
                    stores[number][1].fileno(),
                }
                confine.die_with_parent()
                close_all_but({*mine, gate})
                os.read(gate, 1)
                os.close(gate)
                rank.enter(
                    number,
                    size,
                    channel=lines.channels[number],
                    store=stores[number][1],
                    output=lines.outputs[number],
                    stack=lines.stacks[number],
                    place=place / "meet",
                )
            self._pids[pid] = number
        os.close(gate)
        os.close(gate_holder)
        for number, (ours, theirs) in enumerate(stores):
            theirs.close()
            lines.channels[number].close()
            os.close(lines.outputs[number])
            os.close(lines.stacks[number])
            self._selector.register(ours, selectors.EVENT_READ, wire.Parser(**store.BOUNDS))

    def run(self) -> None:
        """Until the judge closes the report, which is how it ends a world, or every rank has ended."""
        self._selector.register(self._lines.report, selectors.EVENT_READ, wire.Parser())
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        while self._pids:
            for key, _ in self._selector.select():
                if key.fileobj is self._lines.report:
                    if not self._hear_judge(key.data):
                        return
                elif key.fileobj == self._wake_reader:
                    os.read(self._wake_reader, 4096)
                else:
                    self._serve_store(key)
            self._reap()

    def _hear_judge(self, parser: wire.Parser) -> bool:
        data = self._lines.report.recv(65536)
        for message in parser.feed(data):
            if message.head.get("do") == "stacks":
                for pid, number in self._pids.items():
                    if number in message.head["ranks"]:
                        os.kill(pid, rank.STACK_SIGNAL)
        return bool(data)

    def _serve_store(self, key: selectors.SelectorKey) -> None:
        channel = key.fileobj
        assert isinstance(channel, socket.socket)
        try:
            data = channel.recv(65536)
            requests = key.data.feed(data)
            for request in requests:
                self._store.handle(request, lambda head, blob: _answer(channel, head, blob))
        except (OSError, wire.WireError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError):
            data = b""  # a request that is none: this rank gets no more answers
        if not data:
            self._selector.unregister(channel)
            _hang_up(channel)

    def _reap(self) -> None:
        while self._pids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self._pids.pop(pid, None)
            if number is None:
                continue  # something that a submission started and left
            code = os.waitstatus_to_exitcode(status)
            ended: dict[str, Any] = {
                "event": "ended",
                "rank": number,
                "code": max(code, 0),
                "signal": max(-code, 0),
            }
            wire.send(self._lines.report, ended)


def _answer(channel: socket.socket, head: dict[str, Any], blob: bytes) -> None:
    """Sends an answer without ever waiting: a rank that asks again and reads no answers gets no more of them."""
    answer = wire.pack(head, blob)
    try:
        whole = channel.send(answer, socket.MSG_DONTWAIT) == len(answer)
    except OSError:
        whole = False
    if not whole:
        _hang_up(channel)


def _hang_up(channel: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the rank may have gone
        channel.shutdown(socket.SHUT_RDWR)


def close_all_but(keep: set[int]) -> None:
    """Closes every descriptor from 3 up that is not in `keep`."""
    limit = 3
    for number in sorted(keep):
        os.closerange(limit, number)
        limit = max(limit, number + 1)
    os.closerange(limit, 4096)
