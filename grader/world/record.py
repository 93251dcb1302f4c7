"""What the judge has heard of one world so far, and the rule that names the cause. Pure: no sockets, no clock."""

from __future__ import annotations

import codecs
from dataclasses import replace
from typing import Any

from grader.world.conductor import EVENTS, Conductor
from grader.world.failure import Failure, Frame, Kind, RankFailure, printable, read_error
from grader.world.report import Report
from grader.world.stacks import below_the_harness, complete, main_stack
from grader.world.wire import Message

MAX_OUTPUT = 64 * 1024  # bytes kept of what a rank prints
MAX_OUTPUT_SEEN = 32 * 2**20  # bytes after which a rank that prints is stopped
MAX_STACK = 256 * 1024
MAX_VALUES = 10_000
MAX_VALUE_BYTES = 64 * 2**20  # of the tensors of all ranks, in equal shares
MAX_VALUE_HEAD_BYTES = 4 * 2**20  # of all else in their values


class Record:
    """The state of each rank: waiting, ready, done, failed or ended; its values, output and stack.

    max_value_bytes, max_value_head_bytes: what one rank may return: the bytes of its tensors, and of all else.
    """

    def __init__(self, size: int, program_file: str) -> None:
        self.size = size
        self.conductor = Conductor(size)
        self.values: list[list[Message]] = [[] for _ in range(size)]
        self.warden_gone = False
        self.max_value_bytes = MAX_VALUE_BYTES // size
        self.max_value_head_bytes = MAX_VALUE_HEAD_BYTES // size
        self._program_file = program_file
        self._ready: set[int] = set()
        self._done: set[int] = set()
        self._failures: dict[int, RankFailure] = {}  # in the order in which they were heard of
        self._output = [bytearray() for _ in range(size)]
        self._output_seen = [0] * size
        self._stack = [bytearray() for _ in range(size)]
        self._bytes = [0] * size
        self._head_bytes = [0] * size

    @property
    def all_ready(self) -> bool:
        """Every rank has imported, joined and waits for its go."""
        return len(self._ready) == self.size

    @property
    def all_done(self) -> bool:
        """Every rank has returned, and none has failed."""
        return len(self._done) == self.size and not self.somebody_failed

    @property
    def somebody_failed(self) -> bool:
        """The world cannot return values any more."""
        return bool(self._failures) or self.conductor.report is not None

    @property
    def all_settled(self) -> bool:
        """Every rank is done or has failed: there is nothing more to hear."""
        return len(self._done | self._failures.keys()) == self.size

    def unfinished(self) -> list[int]:
        """The ranks that are neither done nor failed."""
        return [rank for rank in range(self.size) if rank not in self._done and rank not in self._failures]

    def heard(self, rank: int, message: Message) -> None:
        """A message from a rank. Anything that a rank of this protocol does not say makes it `refused`."""
        head = message.head
        match head.get("event"):
            case "ready":
                self._ready.add(rank)
            case str(event) if event in EVENTS:
                if rank not in self._done:  # else a thread that the program has left behind; nobody waits for it
                    self._conduct(rank, head)
            case "value" if rank in self._ready and rank not in self._done:
                self.conductor.returned_value(rank)
                self._bytes[rank] += len(message.blob)
                self._head_bytes[rank] += message.head_bytes
                if (
                    len(self.values[rank]) >= MAX_VALUES
                    or self._bytes[rank] > self.max_value_bytes
                    or self._head_bytes[rank] > self.max_value_head_bytes
                ):
                    self.refuse(rank, "it returned too many values")
                else:
                    self.values[rank].append(message)
            case "done" if rank in self._ready:
                self._done.add(rank)
                self.conductor.ended(rank)
            case "failed":
                self._failures.setdefault(rank, read_error(rank, len(self.values[rank]), head))
            case _:
                self.refuse(rank, "a message that no rank sends")

    def _conduct(self, rank: int, head: dict[str, Any]) -> None:
        try:
            self.conductor.heard(rank, head)
        except (LookupError, ValueError, TypeError, AttributeError, StopIteration):
            self.refuse(rank, "an operation that no rank asks for")

    def refuse(self, rank: int, why: str) -> None:
        """The rank sent what cannot be taken."""
        failure = RankFailure(rank, Kind.REFUSED, self._phase(rank), len(self.values[rank]), message=why)
        self._failures.setdefault(rank, failure)

    def ended(self, rank: int, code: int, signal: int) -> None:
        """The warden says that a rank's process is gone. After "done" and the world's end that is as it should be."""
        if rank in self._done or rank in self._failures:
            return
        self._failures[rank] = RankFailure(
            rank, Kind.ENDED, self._phase(rank), len(self.values[rank]), exit_code=code, signal=signal
        )

    def printed(self, rank: int, data: bytes) -> None:
        """Output of a rank; beyond the bounds it is counted, and in the end the rank is stopped for it."""
        self._output_seen[rank] += len(data)
        room = MAX_OUTPUT - len(self._output[rank])
        self._output[rank] += data[: max(room, 0)]
        if self._output_seen[rank] > MAX_OUTPUT_SEEN:
            self.refuse(rank, f"it printed more than {MAX_OUTPUT_SEEN // 2**20} MiB")

    def dumped(self, rank: int, data: bytes) -> None:
        """A piece of a rank's stack dump. The latest are kept: a signal handler may have written before."""
        self._stack[rank] += data
        del self._stack[rank][:-MAX_STACK]

    def have_stacks(self, ranks: list[int]) -> bool:
        """Whether a stack of each of these ranks has come whole, or the rank has ended without writing one."""
        return all(rank in self._failures or complete(self._stack_text(rank)) for rank in ranks)

    def outputs(self) -> tuple[str, ...]:
        """What each rank printed, printable and bounded, with a note where it was cut."""
        texts = []
        for kept, seen in zip(self._output, self._output_seen, strict=True):
            text = printable(codecs.decode(bytes(kept), "utf-8", "replace"), MAX_OUTPUT)
            cut = f"\n(… {seen - len(kept):,} more bytes)" if seen > len(kept) else ""
            texts.append(text + cut)
        return tuple(texts)

    def failure(self, seconds: float) -> Failure:
        """The failure of this world: its cause first, or what the conductor found.

        The first failure heard of is the cause, except that an error which only says that a connection is lost is
        the consequence of a death, whichever was heard of first. A world in which a group's timeout passed, or
        nobody failed, was stuck: then every rank that waited is named, with its stack.
        """
        failed = [self._with_stack(failure) for failure in self._failures.values()]
        waiting = [self._with_stack(self._unfinished_failure(rank)) for rank in self.unfinished()]
        report = self.conductor.report
        if report is not None and not failed:
            return Failure(self._reported(report), False, tuple(waiting), seconds, self.outputs(), report=report)
        own_fault = [failure for failure in failed if not failure.lost_a_peer and not failure.gave_up_waiting]
        if own_fault:
            cause = own_fault[0]
            stuck = False
        else:
            # A rank whose operation timed out closes its connections, so its peers may lose theirs.
            waited = any(failure.gave_up_waiting for failure in failed)
            stuck = waited or not any(failure.lost_a_peer for failure in failed)
            cause = min([*failed, *waiting] if stuck else failed, key=lambda failure: failure.rank)
        others = [failure for failure in (*failed, *waiting) if failure is not cause]
        others.sort(key=lambda failure: failure.rank)
        return Failure(cause, stuck, tuple(others), seconds, self.outputs(), stands=self.conductor.stands())

    def _reported(self, report: Report) -> RankFailure:
        """The conductor's report as what became of the rank that it names first."""
        first = report.stands[0]
        frame = Frame(printable(first.place.file, 300), first.place.line, printable(first.place.function, 120))
        return RankFailure(
            first.rank, Kind.REPORTED, "program", len(self.values[first.rank]), message=report.sentence, frames=(frame,)
        )

    def _unfinished_failure(self, rank: int) -> RankFailure:
        return RankFailure(rank, Kind.UNFINISHED, self._phase(rank), len(self.values[rank]))

    def _with_stack(self, failure: RankFailure) -> RankFailure:
        frames = failure.frames or main_stack(self._stack_text(failure.rank), self._program_file)
        return replace(failure, frames=below_the_harness(frames))

    def _stack_text(self, rank: int) -> str:
        return printable(codecs.decode(bytes(self._stack[rank]), "utf-8", "replace"), MAX_STACK)

    def _phase(self, rank: int) -> str:
        return "program" if rank in self._ready else "import"
