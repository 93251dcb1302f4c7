"""Futures that wait as their operations do: torch's own would block in C++, and nobody would tell the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.futures import Future


class _Awaited(Protocol):
    """What a future waits for: an operation, or several futures."""

    def wait(self) -> object: ...
    def is_completed(self) -> bool: ...


class TracedFuture(Future):  # type: ignore[type-arg]
    """torch's future, that waits for `awaited`; whoever completes that gives this its result."""

    def __init__(self, awaited: _Awaited) -> None:
        super().__init__()
        self._awaited = awaited

    def done(self) -> bool:
        """Whether what it waits for is complete."""
        return self._awaited.is_completed() and super().done()

    def wait(self) -> Any:
        """The result, when it is there."""
        self._awaited.wait()
        return super().wait()

    def value(self) -> Any:
        """As wait."""
        self._awaited.wait()
        return super().value()

    def then(self, callback: Callable[[Any], Any]) -> Future[Any]:
        """A future of what `callback` makes of this one. Waiting for torch's own would not reach the operation."""
        following = TracedFuture(self._awaited)
        self.add_done_callback(lambda _: _take(following, lambda: callback(self)))
        return following


def _take(future: TracedFuture, result: Callable[[], Any]) -> None:
    try:
        future.set_result(result())
    except Exception as error:
        future.set_exception(error)


class _All:
    """Several futures as one thing to wait for."""

    def __init__(self, futures: Sequence[Future[Any]]) -> None:
        self._futures = futures

    def wait(self) -> None:
        for future in self._futures:
            future.wait()

    def is_completed(self) -> bool:
        return all(future.done() for future in self._futures)


_torch_collect_all = torch.futures.collect_all


def collect_all(futures: Sequence[Future[Any]]) -> Future[Any]:
    """In the place of torch.futures.collect_all: a future of them all that is complete when each is."""
    futures = list(futures)
    together = TracedFuture(_All(futures))
    _torch_collect_all(futures).add_done_callback(lambda whole: _take(together, whole.value))
    return together


def wait_all(futures: Sequence[Future[Any]]) -> list[Any]:
    """In the place of torch.futures.wait_all: the results of all of them."""
    return [future.wait() for future in collect_all(futures).wait()]
