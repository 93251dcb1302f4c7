"""The handle of an operation: torch's Work, answered by the harness."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from grader.world.traced.buffers import Private
from grader.world.traced.futures import TracedFuture

if TYPE_CHECKING:
    from grader.world.traced.tracer import Tracer

# Asks gloo for the operation, given what puts the buffers to use in place of the caller's, and a message's sender.
Start = Callable[[Callable[[Any], Any], int | None], dist.Work | None]


class TracedWork(dist.Work):
    """An operation that was issued.

    seq:     its number on this rank.
    start:   makes the real operation, given the buffers to use and the peer (None: as issued); called when all agree.
    outputs: the caller's tensors that it writes.
    private: the buffers of an asynchronous operation; None for a synchronous one, which uses the caller's.
    """

    def __init__(
        self,
        tracer: Tracer,
        seq: int,
        start: Start,
        outputs: Sequence[Tensor],
        private: Private | None,
    ) -> None:
        super().__init__()
        self.seq = seq
        self.done = False
        self.started = False
        self._tracer = tracer
        self._start = start
        self._outputs = outputs
        self._private = private
        self._real: dist.Work | None = None
        self._error: Exception | None = None
        self._source: int | None = None
        self._future: TracedFuture | None = None
        self._one_waits = threading.RLock()  # the judge hears of one wait

    def start(self, source: int | None) -> None:
        """Lets the data move. source: for a receive, the sender's rank in the group."""
        self.started = True
        self._source = source
        own = self._private.of if self._private is not None else _as_they_are
        try:
            self._real = self._start(own, source)
        except Exception as error:  # gloo's own refusal; it belongs to whoever waits
            self._error = error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:  # noqa: ARG002  the world's deadline bounds it
        """Returns when the results are in the caller's tensors."""
        with self._one_waits:
            if not self.done:
                self._tracer.wait_for(self)
                self.finish()
        if self._error is not None:
            raise self._error
        return True

    def finish(self) -> None:
        """Waits for the data, and hands the results over. All agree, so it is not for long."""
        self.done = True
        try:
            if self._real is not None:
                self._real.wait()
        except Exception as error:
            self._error = error
        if self._error is None:
            self._hand_over()
        if self._future is not None:
            self._complete(self._future)

    def _hand_over(self) -> None:
        private, self._private = self._private, None
        if private is not None:
            if private.changed():
                self._tracer.tell_of_race(self, wrote=False)
            if private.written():
                self._tracer.tell_of_race(self, wrote=True)
            private.give_results()

    def _complete(self, future: TracedFuture) -> None:
        if self._error is None:
            future.set_result(list(self._outputs))
        else:
            future.set_exception(self._error)

    def is_completed(self) -> bool:
        """Whether the results are there; where they are, they are handed over."""
        with self._one_waits:
            if not self.done and self._tracer.is_complete(self):
                self.finish()
        return self.done

    def is_success(self) -> bool:
        """Whether it is complete, without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """The error that it ended with."""
        return self._error

    def result(self) -> list[Tensor]:
        """The tensors that were written."""
        self.wait()
        return list(self._outputs)

    def synchronize(self) -> None:
        """As wait."""
        self.wait()

    def _source_rank(self) -> int:
        """The rank in the group that a received message came from."""
        if self._source is None:
            raise RuntimeError("only a receive that is complete has a source")
        return self._source

    source_rank = _source_rank

    def get_future(self) -> Future[list[Tensor]]:
        """A future that is complete when the results are there.

        torch's DDP blocks in C++ on it, at the end of backward, where no method of ours is called: so we see to it
        before, in a callback of the autograd engine that comes ahead of DDP's own. With a static graph DDP issues and
        blocks within one of those callbacks; there it is done at once.
        """
        if self._future is None:
            self._future = TracedFuture(self)
            if self.done:
                self._complete(self._future)
            elif _in_a_final_callback():
                self.wait()
            else:
                with contextlib.suppress(RuntimeError):  # outside backward: whoever wants the result waits for it
                    torch.autograd.Variable._execution_engine.queue_callback(self.synchronize)
        return self._future


def _in_a_final_callback() -> bool:
    """Whether backward has computed all its gradients and runs what was queued for its end."""
    in_backward: bool = torch._C._current_graph_task_id() != -1
    return in_backward and torch._C._current_autograd_node() is None


def _as_they_are(nested: Any) -> Any:
    return nested
