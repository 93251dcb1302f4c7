"""Pipes to a child process, read by the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import IO


class Tail(asyncio.Protocol):
    """Keeps the last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._kept += data
        del self._kept[: -self._limit]

    def connection_lost(self, _error: Exception | None) -> None:
        """Called by the event loop at the end of the stream."""
        self._ended.set()

    async def ended(self, timeout_seconds: float) -> None:
        """Returns when the stream has ended; a process that outlives the judge may hold it open: not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._ended.wait()

    def text(self) -> str:
        """What is kept, as text."""
        return self._kept.decode("utf-8", "backslashreplace")


@contextlib.asynccontextmanager
async def reading(pipe: IO[bytes], protocol: asyncio.BaseProtocol) -> AsyncIterator[None]:
    """The event loop feeds `protocol` from `pipe`."""
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    try:
        yield
    finally:
        transport.close()


def pipe(ends: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    """A pipe's reading and writing end, closed with `ends` at the latest; no child inherits them by itself."""
    reading, writing = os.pipe()
    return (
        ends.enter_context(os.fdopen(reading, "rb", buffering=0)),
        ends.enter_context(os.fdopen(writing, "wb", buffering=0)),
    )
