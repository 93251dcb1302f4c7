"""The judge's ends of a world's sockets and pipes: moves bytes between them and the record, never blocks for long."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.world import wire
from grader.world.launcher import Launcher
from grader.world.record import Record

MAX_PIECE = 2**16  # bytes of a rank that are handled at once: between pieces the judge looks at the clock
MAX_UNREAD = 2**18  # bytes of orders that a rank has not read: more than MAX_OPEN operations have


@dataclass
class _Channel:
    rank: int
    socket: socket.socket
    outgoing: bytearray
    parser: wire.Parser
    wants_to_write: bool = True


class JudgeLines:
    """Opens one report socket and, for each rank, a channel, an output pipe and a stack pipe; starts the world."""

    def __init__(self, launcher: Launcher, tasks: list[bytes], record: Record) -> None:
        self.launcher = launcher
        self._record = record
        self._selector = selectors.DefaultSelector()
        self._channels: list[_Channel] = []
        self._report_parser = wire.Parser()
        size = len(tasks)
        self._report, report_theirs = socket.socketpair()
        channels = [socket.socketpair() for _ in range(size)]
        outputs = [os.pipe() for _ in range(size)]
        stacks = [os.pipe() for _ in range(size)]
        self._pipes = [reader for reader, _ in outputs + stacks]
        self._watch_report()
        for rank, (ours, _) in enumerate(channels):
            parser = wire.Parser(max_blob=record.max_value_bytes, max_head=record.max_value_head_bytes)
            self._watch_channel(_Channel(rank, ours, bytearray(tasks[rank]), parser))
        for rank in range(size):
            self._watch_pipe(outputs[rank][0], rank, record.printed)
            self._watch_pipe(stacks[rank][0], rank, record.dumped)
        theirs = [theirs for _, theirs in channels]
        writers = [writer for _, writer in outputs + stacks]
        try:
            launcher.start_world([report_theirs.fileno(), *(line.fileno() for line in theirs), *writers])
        except BaseException:
            self._close_all()
            raise
        finally:
            for line in (report_theirs, *theirs):
                line.close()
            for writer in writers:
                os.close(writer)

    def poll(self, seconds: float) -> None:
        """Moves what can be moved, waiting at most `seconds` for something to move."""
        # A whole batch is handled before anybody judges: a death and its victims' errors often come together.
        for key, events in self._selector.select(seconds):
            key.data(events)

    def tell_all(self, head: dict[str, Any]) -> None:
        """Sends a message to every rank."""
        for channel in self._channels:
            self.tell(channel.rank, [head])

    def tell(self, rank: int, heads: Sequence[dict[str, Any]]) -> None:
        """Sends messages to a rank: at once, or when it has taken what was sent before."""
        channel = self._channels[rank]
        for head in heads:
            channel.outgoing += wire.pack(head)
        if len(channel.outgoing) > MAX_UNREAD:
            channel.outgoing.clear()
            self._record.refuse(rank, "it asks and reads no answers")
        if not channel.wants_to_write:
            self._write(channel)

    def ask_for_stacks(self, ranks: list[int]) -> None:
        """Asks the warden to have these ranks write their Python stacks."""
        try:
            self._report.sendall(wire.pack({"do": "stacks", "ranks": ranks}))
        except OSError:
            return  # the warden has gone; so have the ranks

    def stop(self) -> None:
        """Tells the warden to end the world; its end is heard on the report."""
        try:
            self._report.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has gone already

    def close(self, seconds: float) -> bool:
        """Ends the world and waits until its warden, which goes last, has gone. False if it has not in time."""
        self.stop()
        ends = time.monotonic() + seconds
        while not self._record.warden_gone and (left := ends - time.monotonic()) > 0:
            self.poll(left)
        self._close_all()
        return self._record.warden_gone

    def _close_all(self) -> None:
        self._selector.close()
        self._report.close()
        for channel in self._channels:
            channel.socket.close()
        for pipe in self._pipes:
            os.close(pipe)

    def _watch_report(self) -> None:
        def move(_: int) -> None:
            data = self._report.recv(65536)
            for message in self._report_parser.feed(data):
                head = message.head
                self._record.ended(head["rank"], head["code"], head["signal"])
            if not data:
                self._selector.unregister(self._report)
                self._record.warden_gone = True

        self._selector.register(self._report, selectors.EVENT_READ, move)

    def _watch_channel(self, channel: _Channel) -> None:
        channel.socket.setblocking(False)
        self._channels.append(channel)

        def move(events: int) -> None:
            if events & selectors.EVENT_WRITE:
                self._write(channel)
            if events & selectors.EVENT_READ:
                self._read(channel)

        self._selector.register(channel.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, move)

    def _want(self, channel: _Channel) -> None:
        if channel.wants_to_write == bool(channel.outgoing):
            return
        channel.wants_to_write = bool(channel.outgoing)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if channel.outgoing else 0)
        if channel.socket.fileno() in self._selector.get_map():
            move = self._selector.get_key(channel.socket).data
            self._selector.modify(channel.socket, events, move)

    def _write(self, channel: _Channel) -> None:
        try:
            sent = channel.socket.send(memoryview(channel.outgoing)[: 2**20])
        except BlockingIOError:
            pass  # it computes and reads nothing: the rest goes when it reads again
        except OSError:
            channel.outgoing.clear()  # the rank has gone; the warden says so
        else:
            del channel.outgoing[:sent]
        self._want(channel)

    def _read(self, channel: _Channel) -> None:
        try:
            data = channel.socket.recv(MAX_PIECE)
            messages = channel.parser.feed(data)
        except OSError:
            data, messages = b"", []
        except wire.WireError as error:
            self._record.refuse(channel.rank, str(error))
            data, messages = b"", []
        for message in messages:
            self._record.heard(channel.rank, message)
        if not data:
            self._selector.unregister(channel.socket)

    def _watch_pipe(self, pipe: int, rank: int, keep: Callable[[int, bytes], None]) -> None:
        def move(_: int) -> None:
            data = os.read(pipe, 65536)
            if data:
                keep(rank, data)
            else:
                self._selector.unregister(pipe)

        self._selector.register(pipe, selectors.EVENT_READ, move)
