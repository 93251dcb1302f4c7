"""A rank's line to the judge: it may speak from any thread, and one thread at a time listens for all."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from grader.world import wire

PIECE = 2**13  # bytes read at once: orders are short


class Left(BaseException):
    """The judge has gone or has ended the world: leave without a word."""


class Channel:
    """The rank's end of its socket. on_order: called with each message that has "do" in it; others wait for `hear`."""

    def __init__(self, line: socket.socket) -> None:
        self.on_order: Callable[[dict[str, Any]], None] = _unexpected
        self._line = line
        os.register_at_fork(after_in_child=line.close)  # a child of the rank is no rank
        self._parser = wire.Parser()
        self._letters: list[wire.Message] = []
        self._may_send = threading.Lock()
        self._state = threading.Condition(threading.RLock())
        self._listening = False
        self._others = 0  # threads that wait while one listens

    def tell(self, head: dict[str, Any], blob: bytes = b"") -> None:
        """Sends one message; never waits for an answer."""
        data = wire.pack(head, blob)
        with self._may_send:
            self._line.sendall(data)

    def hear(self) -> wire.Message:
        """The next message that is no order. Raises Left at the end of the world."""
        self.listen_until(lambda: bool(self._letters))
        return self._letters.pop(0)

    def listen_until(self, condition: Callable[[], bool]) -> None:
        """Obeys orders until the condition holds. Raises Left at the end of the world."""
        with self._state:
            while not condition():
                if self._listening:
                    self._others += 1
                    self._state.wait()
                    self._others -= 1
                    continue
                self._listening = True
                self._state.release()
                try:
                    data = self._line.recv(PIECE)
                finally:
                    self._state.acquire()
                    self._listening = False
                    if self._others:
                        self._state.notify_all()
                self._take(data)

    def obey_what_is_there(self) -> None:
        """Obeys the orders that have come, without waiting for any."""
        with self._state:
            if self._listening:
                return
            try:
                data = self._line.recv(PIECE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        if not data:
            raise Left
        for message in self._parser.feed(data):
            if "do" in message.head:
                self.on_order(message.head)
            else:
                self._letters.append(message)


def _unexpected(head: dict[str, Any]) -> None:
    raise RuntimeError(f"an order that nobody takes: {head}")
