"""Messages over a stream socket: a JSON head and a blob of bytes, both bounded before they are read.

On the wire: 4 bytes length of the head, 8 bytes length of the blob (big-endian), the head, the blob.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any, NamedTuple

PREFIX = struct.Struct("!IQ")
MAX_HEAD = 16 * 2**20
MAX_BLOB = 512 * 2**20


class WireError(Exception):
    """The peer sent something that is not a message, or one that is too large."""


class Message(NamedTuple):
    """What one send carried."""

    head: dict[str, Any]
    blob: bytes
    head_bytes: int = 0


def pack(head: dict[str, Any], blob: bytes = b"") -> bytes:
    """The bytes of one message. Raises WireError if it is over the bounds, so that the sender hears of it."""
    text = json.dumps(head, separators=(",", ":")).encode()
    if len(text) > MAX_HEAD or len(blob) > MAX_BLOB:
        raise WireError(f"a message of {len(text) + len(blob):,} bytes is too large to send")
    return b"".join((PREFIX.pack(len(text), len(blob)), text, blob))


class Parser:
    """Cuts a stream into messages; what it holds is bounded by one message.

    max_head, max_blob: bytes of one head and of one blob; parsed, a head takes 30 times as much memory.
    max_heads:          bytes of all heads together.
    """

    def __init__(self, *, max_head: int = MAX_HEAD, max_blob: int = MAX_BLOB, max_heads: int | None = None) -> None:
        self._buffer = bytearray()
        self._max_head = max_head
        self._max_blob = max_blob
        self._max_heads = max_heads
        self._heads = 0

    def feed(self, data: bytes) -> list[Message]:
        """The messages completed by `data`. Raises WireError for anything that is not a message."""
        # Most messages come whole: they are read where they lie, and only what is left over is kept.
        stream: bytes | bytearray = data
        if self._buffer:
            self._buffer += data
            stream = self._buffer
        messages = []
        start = 0
        while len(stream) - start >= PREFIX.size:
            head_size, blob_size = PREFIX.unpack_from(stream, start)
            if head_size > self._max_head or blob_size > self._max_blob:
                raise WireError(f"a message announces {head_size + blob_size:,} bytes")
            if self._max_heads is not None and self._heads + head_size > self._max_heads:
                raise WireError("its messages hold too much beside tensors")
            text = start + PREFIX.size
            blob, end = text + head_size, text + head_size + blob_size
            if len(stream) < end:
                break
            messages.append(Message(_parse_head(bytes(stream[text:blob])), bytes(stream[blob:end]), head_size))
            start = end
            self._heads += head_size
        if stream is self._buffer:
            del self._buffer[:start]
        else:
            self._buffer += data[start:]
        return messages


def send(channel: socket.socket, head: dict[str, Any], blob: bytes = b"") -> None:
    """Sends one message over a blocking socket."""
    channel.sendall(pack(head, blob))


def receive(channel: socket.socket) -> Message | None:
    """The next message from a blocking socket, None at its end. Raises WireError if it is cut short."""
    prefix = _receive_exactly(channel, PREFIX.size)
    if not prefix:
        return None
    head_size, blob_size = PREFIX.unpack(prefix)
    if head_size > MAX_HEAD or blob_size > MAX_BLOB:
        raise WireError(f"a message announces {head_size + blob_size:,} bytes")
    body = _receive_exactly(channel, head_size + blob_size)
    if len(body) < head_size + blob_size:
        raise WireError("the stream ended inside a message")
    return Message(_parse_head(body[:head_size]), body[head_size:])


def _receive_exactly(channel: socket.socket, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = channel.recv(min(size - len(pieces), 2**20))
        if not piece:
            return bytes(pieces) if len(pieces) == size else b""
        pieces += piece
    return bytes(pieces)


def _parse_head(text: bytes) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError("a message's head is not JSON") from error
    if not isinstance(head, dict):
        raise WireError("a message's head is not a JSON object")
    return head
