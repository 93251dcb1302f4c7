"""The rendezvous of a world: a key-value store that its warden owns, asked over a socket of each rank's own.

No port and no file can be left behind, and a rank that waits for a key is answered when the key is there, instead
of asking again and again as a store in a file does.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from torch.distributed.distributed_c10d import Store

from grader.world import wire

BOUNDS = {"max_blob": 64 * 2**10, "max_heads": wire.MAX_HEAD}  # of one rank; torch and gloo keep addresses here
MAX_KEYS = 10_000
MAX_WAITING = 1000  # a rank waits for one answer at a time


class StoreServer:
    """The warden's side: answers each rank's requests; a `get` of a key that is not there waits for it. Pure of I/O."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._waiting: list[tuple[Callable[[dict[str, Any], bytes], None], list[str], bool]] = []

    def handle(self, request: wire.Message, reply: Callable[[dict[str, Any], bytes], None]) -> None:
        """Answers one request, now or when its keys are there. ValueError where it would keep too much."""
        head, blob = request.head, request.blob
        keys = [str(key) for key in head.get("keys", [])]
        if len(self._values) >= MAX_KEYS or len(self._waiting) >= MAX_WAITING:
            raise ValueError("the store is full")
        match head.get("do"):
            case "set":
                self._values[keys[0]] = blob
                reply({}, b"")
                self._answer_waiting()
            case "add":
                total = int(self._values.get(keys[0], b"0")) + int(head["amount"])
                self._values[keys[0]] = str(total).encode()
                reply({"total": total}, b"")
                self._answer_waiting()
            case "compare_set":
                present = self._values.get(keys[0])
                if present == head["expected"].encode() or (present is None and not head["expected"]):
                    self._values[keys[0]] = present = blob
                reply({}, present if present is not None else head["expected"].encode())
                self._answer_waiting()
            case "check":
                reply({"there": all(key in self._values for key in keys)}, b"")
            case "delete":
                reply({"deleted": self._values.pop(keys[0], None) is not None}, b"")
            case "count":
                reply({"total": len(self._values)}, b"")
            case "get" | "wait" as do:
                self._waiting.append((reply, keys, do == "get"))
                self._answer_waiting()

    def _answer_waiting(self) -> None:
        still = []
        for reply, keys, wants_value in self._waiting:
            if all(key in self._values for key in keys):
                reply({}, self._values[keys[0]] if wants_value else b"")
            else:
                still.append((reply, keys, wants_value))
        self._waiting = still


class ClientStore(Store):
    """The rank's side: a torch store that asks the warden. Its waits end with the world, which has a deadline."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__()
        self._channel = channel
        self._one_at_a_time = threading.Lock()

    def _ask(self, do: str, keys: list[str], blob: bytes = b"", **fields: Any) -> wire.Message:
        with self._one_at_a_time:
            wire.send(self._channel, {"do": do, "keys": keys, **fields}, blob)
            answer = wire.receive(self._channel)
        if answer is None:
            raise RuntimeError("the world ended while this rank waited for the others")
        return answer

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", [key], value.encode() if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        return self._ask("get", [key]).blob

    def add(self, key: str, amount: int) -> int:
        return int(self._ask("add", [key], amount=amount).head["total"])

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        return self._ask("compare_set", [key], desired.encode(), expected=expected).blob

    def check(self, keys: list[str]) -> bool:
        return bool(self._ask("check", keys).head["there"])

    def delete_key(self, key: str) -> bool:
        return bool(self._ask("delete", [key]).head["deleted"])

    def num_keys(self) -> int:
        return int(self._ask("count", []).head["total"])

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:  # noqa: ARG002  the world's deadline
        self._ask("wait", keys)
