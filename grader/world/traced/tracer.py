"""What a rank knows of its own operations: tells the judge of each, and lets it start when the judge says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any

import torch
from torch import Tensor

from grader.world.channel import Channel
from grader.world.operation import ELEMENT_BYTES, REDUCE_OPS, Operation, Spec, head_of
from grader.world.refusal import refusal
from grader.world.traced.buffers import Private
from grader.world.traced.places import Places
from grader.world.traced.work import Start, TracedWork


class Tracer:
    """One for a rank, shared by its groups."""

    def __init__(self, channel: Channel, rank: int, places: Places) -> None:
        self._channel = channel
        self._rank = rank
        self._places = places
        self._issued = 0
        self._groups = count()
        # Kept until they are waited for: torch drops a handle that the caller drops, and its buffers with it.
        self._works: dict[int, TracedWork] = {}
        self._formed: set[int] = set()
        self._answers: dict[int, bool] = {}
        self._held = False
        self._one_at_a_time = threading.RLock()  # seqs are told in their order
        channel.on_order = self._obey

    def form(self, name: str, ranks: Sequence[int]) -> int:
        """Returns this rank's number for a group, when all its members have asked for it."""
        number = next(self._groups)
        head = {"event": "form", "g": number, "name": name, "ranks": list(ranks), "at": self._places.caller()}
        self._ask(head, lambda: number in self._formed)
        return number

    def issue(
        self,
        name: str,
        group: tuple[int, tuple[int, ...]],
        start: Start,
        *,
        reads: Sequence[Tensor],
        writes: Sequence[Tensor],
        is_async: bool,
        told: tuple[Sequence[Spec], Sequence[Spec]] | None = None,
        on_copies: bool = False,
        **fields: Any,
    ) -> TracedWork:
        """Tells of an operation. An asynchronous one returns at once; another one when its results are there.

        group:     its number here, and its ranks.
        told:      the specs to tell of, where they are not those of the tensors.
        on_copies: a synchronous one too leaves what it reads as it is; gloo would write there.
        Raises RuntimeError for tensors that are not contiguous, for what gloo does not have, for a rank that the group
        does not have, and for another number of tensors than it needs.
        """
        _refuse_tensors(name, reads, writes, fields.get("reduce_op", ""))
        of_reads, of_writes = told or ([spec_of(one) for one in reads], [spec_of(one) for one in writes])
        number, ranks = group
        place = self._places.caller()
        with self._one_at_a_time:
            operation = Operation(
                rank=self._rank,
                seq=self._issued,
                name=name,
                group=ranks,
                reads=tuple(of_reads),
                writes=tuple(of_writes),
                is_async=is_async,
                place=place,
                **fields,
            )
            refused = refusal(operation)
            if refused:
                raise RuntimeError(refused)  # no ValueError: checks would take it for the submission's own refusal
            self._channel.tell(self._signed(head_of(operation, number)))
            self._issued += 1
            private = Private(reads, writes, spoils=on_copies) if is_async or on_copies else None
            work = TracedWork(self, operation.seq, start, writes, private)
            self._works[operation.seq] = work
        if is_async:
            self._channel.obey_what_is_there()
            return work
        self._channel.listen_until(lambda: work.started)
        del self._works[operation.seq]
        work.finish()
        work.wait()  # raises what gloo refused
        return work

    def wait_for(self, work: TracedWork) -> None:
        """Returns when the operation has started: all members have issued it."""
        self._ask({"event": "wait", "s": work.seq, "at": self._places.caller()}, lambda: work.started)
        self._works.pop(work.seq, None)

    def is_complete(self, work: TracedWork) -> bool:
        """Whether all members have issued the operation. Where not, answered when no other rank can go on."""
        seq = work.seq
        self._answers.pop(seq, None)
        self._ask({"event": "poll", "s": seq, "at": self._places.caller()}, lambda: seq in self._answers)
        complete = self._answers.pop(seq)
        if complete:
            self._works.pop(seq, None)
        return complete

    def tell_of_race(self, work: TracedWork, *, wrote: bool) -> None:
        """A buffer of the operation was changed before it was waited for."""
        self._channel.tell({"event": "race", "s": work.seq, "wrote": wrote, "at": self._places.caller()})

    def mark(self, name: str) -> None:
        """Tells how far the program is."""
        self._channel.tell({"event": "mark", "name": name})

    def hold(self, of: int, name: str) -> None:
        """Returns when rank `of` has marked `name`."""
        self._held = True
        self._ask({"event": "hold", "of": of, "name": name}, lambda: not self._held)

    def excuse(self) -> None:
        """Nobody has to wait for the operations that are open now."""
        self._channel.tell({"event": "excuse"})

    def _ask(self, head: dict[str, Any], answered: Callable[[], bool]) -> None:
        self._channel.tell(self._signed(head))
        self._channel.listen_until(answered)

    def _signed(self, head: dict[str, Any]) -> dict[str, Any]:
        """With a note that this rank has threads: where this one waits, another may not."""
        if threading.active_count() > 1:
            head["threads"] = True
        return head

    def _obey(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "start":
                self._works[order["s"]].start(order.get("src"))
            case "answer":
                self._answers[order["s"]] = order["complete"]
            case "formed":
                self._formed.add(order["g"])
            case "go_on":
                self._held = False


def spec_of(tensor: Tensor) -> Spec:
    """dtype and shape as data. Raises RuntimeError for a dtype that gloo cannot send."""
    return Spec(_name_of(tensor.dtype), tuple(tensor.shape))


@cache
def _name_of(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in ELEMENT_BYTES:
        raise RuntimeError(f"tensors of {dtype} cannot be sent")
    return name


def _refuse_tensors(name: str, reads: Sequence[Tensor], writes: Sequence[Tensor], reduce_op: str) -> None:
    """Raises RuntimeError where a tensor lies in memory as gloo cannot send it, or has no such reduction."""
    for tensor in (*reads, *writes):
        if not tensor.is_contiguous():
            raise RuntimeError(_not_contiguous(name, tensor))
        if tensor.is_conj() or tensor.is_neg():
            raise RuntimeError(f"{name} got a view that torch conjugates or negates when read: clone() it first")
    if reduce_op and reduce_op not in REDUCE_OPS:
        raise RuntimeError(f"{name} with {reduce_op} is not there on a CPU; it has {', '.join(REDUCE_OPS)}")
    if reduce_op == "AVG" and any(not (one.is_floating_point() or one.is_complex()) for one in reads):
        raise RuntimeError(f"{name} with AVG divides, and {reads[0].dtype} has no fractions: use floats, or SUM")


def _not_contiguous(name: str, tensor: Tensor) -> str:
    return (
        f"{name} got a tensor that is not contiguous (shape {tuple(tensor.shape)}, strides {tensor.stride()}): "
        "NCCL refuses it, and gloo would mix up its elements; pass tensor.contiguous(), and copy the result back"
    )
