"""What became of one run of benchmark_collective on one rank, and what is expected of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from grader.checking import CheckFailed, expect
from tests.public.oracles import benchmark as oracle
from tests.public.runs.bandwidths import algorithm_told, bus_told
from tests.public.runs.iterations import NOT_DONE, before_told, between_told
from tests.public.runs.seconds import WHOLE, bytes_told, seconds_told
from tests.public.runs.told import explained


@dataclass(frozen=True)
class Run:
    """One call of benchmark_collective on every rank of a group.

    counts:   the keyword arguments warmup and iterations, or some of them.
    injected: synchronize and barrier are passed; else they are None.
    group:    "default", "own" (the group that holds the rank) or "other" (one that does not).
    naming:   for a call that must raise a ValueError on every rank: what its message holds; else None.
    """

    operation: str
    num_elements: int
    dtype: str = "float32"
    warmup: int | None = 1
    iterations: int | None = 2
    injected: bool = True
    group: Literal["default", "own", "other"] = "default"
    naming: Sequence[str] | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The keyword arguments that are passed."""
        given = {"warmup": self.warmup, "iterations": self.iterations}
        return {name: count for name, count in given.items() if count is not None}

    @property
    def num_warmups(self) -> int:
        """As passed, or the default."""
        return 5 if self.warmup is None else self.warmup

    @property
    def num_iterations(self) -> int:
        """As passed, or the default."""
        return 20 if self.iterations is None else self.iterations

    @property
    def title(self) -> str:
        """The call as messages write it."""
        words = [f'"{self.operation}"', str(self.num_elements), f"dtype={self.dtype}"]
        words += [f"{name}={count}" for name, count in self.counts.items()]
        words += {"own": ["group=one of several"], "other": ["group=one without this rank"]}.get(self.group, [])
        return f"benchmark_collective({', '.join(words)})"


@dataclass(frozen=True)
class Measured:
    """What became of a run on one rank of `members`.

    measurement: the six fields. events: what was called, in order. own: see programs/benchmark.py.
    """

    run: Run
    rank: int
    members: Sequence[int]
    seconds: Sequence[Sequence[float]]
    measurement: Sequence[Any]
    events: Sequence[dict[str, Any]]
    finite: bool
    own: Sequence[Any]

    @property
    def what(self) -> str:
        """The call, for messages."""
        return self.run.title

    def field(self, name: str) -> Any:
        """One field of the measurement."""
        return self.measurement[oracle.FIELDS.index(name)]

    def expect_seconds(self) -> None:
        """The median over iterations of the maximum over ranks."""
        value, wanted = self.field("seconds"), oracle.slowest_median(self.seconds)
        told = partial(seconds_told, value, self.seconds, self.members, self.rank)
        with explained(told, what=self.what, rank=self.rank):
            expect.number(value, wanted, what=f"seconds of {self.what}", rank=self.rank)

    def expect_sizes(self) -> None:
        """num_bytes, the world size, and both bandwidths: right, or what the submission's own functions make of it."""
        size = len(self.members)
        num_bytes = oracle.whole_elements(self.run.num_elements, size) * oracle.ITEM_BYTES[self.run.dtype]
        wanted = {"operation": self.run.operation, "num_bytes": num_bytes, "world_size": size}
        what = f"{self.what} in a world of {size}"
        told = partial(
            bytes_told, self.field("num_bytes"), self.run.operation, self.run.num_elements, self.run.dtype, size
        )
        for name, value in wanted.items():
            with explained(told if name == "num_bytes" else lambda: None, what=what, rank=self.rank):
                expect.same(self.field(name), value, what=f"{name} of {what}", rank=self.rank)
        seconds = self.field("seconds")
        if type(seconds) not in (float, int) or not seconds > 0:
            raise CheckFailed(f"rank {self.rank}: seconds of {self.what} is not a number above 0")
        right = (num_bytes / seconds, oracle.bus_bandwidth(self.run.operation, num_bytes, seconds, size))
        for name, value, own in zip(oracle.FIELDS[4:], right, self.own, strict=True):
            came = self.field(name)
            if type(came) is float and type(own) is float and came == own:
                continue  # where the submission's own function is wrong, that is another check's to say
            told = partial(algorithm_told, came, num_bytes, seconds)
            if name == "bus_bandwidth":
                told = partial(bus_told, came, self.run.operation, num_bytes, seconds, size)
            of = f"{name} of {self.what}"
            with explained(told, what=of, rank=self.rank):
                expect.number(came, value, what=of, rank=self.rank)

    def expect_iterations(self) -> None:
        """Each iteration is synchronize, barrier, clock, the collective, synchronize, clock."""
        size, operation = len(self.members), self.run.operation
        for number, (before, between) in enumerate(self._iterations()):
            came, met = [each["event"] for each in before[-2:]], before[-1:] and before[-1].get("ranks", size)
            if came != ["synchronize", "barrier"] or met != size:
                told = before_told([each["event"] for each in before], met, size, passed=self.run.injected)
                raise CheckFailed(
                    f"rank {self.rank}: {self.what} {told.did} in iteration {number}",
                    expected="before the clock is read: synchronize, barrier",
                    actual=shown(before[-2:]),
                    help=told.help,
                )
            came = [each["event"] for each in between]
            if came != [operation, "synchronize"]:
                told = between_told(came, operation)
                raise CheckFailed(
                    f"rank {self.rank}: {self.what} {told.did} in iteration {number}",
                    expected=f"between the two readings of the clock: {operation}, synchronize",
                    actual=shown(between),
                    help=told.help,
                )

    def expect_buffers(self) -> None:
        """What is timed works on S elements of the dtype, in the same memory each time."""
        size = len(self.members)
        whole = oracle.whole_elements(self.run.num_elements, size)
        wanted = oracle.buffer_elements(self.run.operation, whole, size)
        timed = []
        for number, (_, between) in enumerate(self._iterations()):
            own = [one for one in between if one["event"] == self.run.operation]
            expect.true(
                len(own) == 1 or size == 1,  # a world of 1 need not communicate
                f"rank {self.rank}: {self.what} times {shown(between)} in iteration {number}, "
                f"not one {self.run.operation} and synchronize",
                expected=f"between the two clocks: {self.run.operation}",
                actual=shown(between),
                help=NOT_DONE,
            )
            timed += own
        for one in timed:
            came = (sorted(one["elements"]), one["dtype"], one["ranks"])
            expect.true(
                came == (wanted, self.run.dtype, size),
                f"rank {self.rank}: {self.what} times {_size(*came[:2])}, not {_size(wanted, self.run.dtype)}",
                expected=f"tensors of {wanted} elements, {self.run.dtype}, in a group of {size}: {whole} in all",
                actual=f"tensors of {came[0]} elements, {came[1]}, in a group of {came[2]}",
                help=WHOLE,
            )
        expect.true(
            len({one["buffers"] for one in timed}) <= 1,
            f"rank {self.rank}: {self.what} uses other memory in some iterations: it is allocated while it is timed",
            expected="buffers that are allocated once, before anything is timed",
            help="make the tensors before you time, and let run() use them again and again",
        )

    def expect_warmup(self) -> None:
        """The collective ran so often before anything was timed."""
        wanted = self.run.num_warmups
        before, _ = self._iterations()[0]
        came = sum(one["event"] == self.run.operation for one in before)
        expect.true(
            came == wanted,
            f"rank {self.rank}: {self.what} "
            + (f"warms up with {came} of {self.run.operation}, not {wanted}" if came else "does not warm up"),
            expected=f"warm-up: {wanted} times",
            actual=f"{came} times",
        )

    def expect_finite(self) -> None:
        """Nothing has grown without bound, and all memory was written."""
        expect.true(
            self.finite,
            f"rank {self.rank}: after {self.what} a buffer of the {self.run.operation} holds inf or NaN",
            expected="values that stay finite, however often the collective runs",
            help="torch.empty holds anything, and a sum in place of what is not zero grows each time it runs",
        )

    def _iterations(self) -> list[tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]]:
        """For each pair of readings of the clock, what was called before it and between the two."""
        places = [place for place, one in enumerate(self.events) if one["event"] == "clock"]
        count = self.run.num_iterations
        expect.true(
            len(places) == 2 * count,
            f"rank {self.rank}: {self.what} read the clock {len(places)} times",
            expected=f"{2 * count} times: twice for each of {count} iterations, and not in the warm-up",
            actual=f"{len(places)} times",
        )
        pairs, done = [], 0
        for start, end in zip(places[::2], places[1::2], strict=True):
            pairs.append((self.events[done:start], self.events[start + 1 : end]))
            done = end + 1
        return pairs


def _size(elements: Sequence[int], dtype: str) -> str:
    return f"{dtype} buffers of {' and '.join(map(str, elements))} elements"


def shown(events: Sequence[dict[str, Any]]) -> str:
    """Events as one line; a collective of a group with the group's size."""
    return (
        ", ".join(str(one["event"]) + (f" (a group of {one['ranks']})" if "ranks" in one else "") for one in events)
        or "nothing"
    )
