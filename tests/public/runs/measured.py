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
from tests.public.runs.timed import Step, joined, shown
from tests.public.runs.told import explained
from tests.public.runs.traffic import places


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

    measurement: the six fields. steps: what was done, in order. own: see programs/benchmark.py.
    """

    run: Run
    rank: int
    members: Sequence[int]
    seconds: Sequence[Sequence[float]]
    measurement: Sequence[Any]
    steps: Sequence[Step]
    own: Sequence[Any]

    @property
    def what(self) -> str:
        """The call, for messages."""
        return self.run.title

    @property
    def _where(self) -> str:
        """The submission's lines that ran the operation."""
        return places([step.operation for step in self.steps if step.operation and step.name == self.run.operation])

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
        operation = self.run.operation
        for number, (before, between) in enumerate(self._iterations()):
            met = before[-1].operation if before else None
            in_group = met is None or met.group == tuple(self.members)
            if [step.name for step in before[-2:]] != ["synchronize", "barrier"] or not in_group:
                names = [step.name for step in before]
                told = before_told(names, met.group if met else (), self.members, passed=self.run.injected)
                raise CheckFailed(
                    f"rank {self.rank}: {self.what} {told.did} in iteration {number}",
                    expected="before the clock is read: synchronize, barrier",
                    actual=shown(before[-2:]),
                    where=self._where,
                    help=told.help,
                )
            names = [step.name if step.part == "whole" else step.text for step in between]
            if names != [operation, "synchronize"]:
                told = between_told(names, operation)
                raise CheckFailed(
                    f"rank {self.rank}: {self.what} {told.did} in iteration {number}",
                    expected=f"between the two readings of the clock: {operation}, synchronize",
                    actual=shown(between),
                    where=self._where,
                    help=told.help,
                )

    def expect_buffers(self) -> None:
        """What is timed works on S elements of the dtype, in the same memory each time."""
        size = len(self.members)
        whole = oracle.whole_elements(self.run.num_elements, size)
        wanted = sorted(set(oracle.buffer_elements(self.run.operation, whole, size)))
        timed: list[Step] = []
        for number, (_, between) in enumerate(self._iterations()):
            own = [step for step in between if step.name == self.run.operation and step.part == "whole"]
            expect.true(
                len(own) == 1 or size == 1,  # a world of 1 need not communicate
                f"rank {self.rank}: {self.what} times {shown(between)} in iteration {number}, "
                f"not one {self.run.operation} and synchronize",
                expected=f"between the two clocks: {self.run.operation}",
                actual=shown(between),
                where=self._where,
                help=NOT_DONE,
            )
            timed += own
        for step in timed:
            group = list(step.operation.group) if step.operation else []
            expect.true(
                (step.elements, step.dtype, group) == (wanted, self.run.dtype, list(self.members)),
                f"rank {self.rank}: {self.what} times {_size(step.elements, step.dtype)} in the group of ranks "
                f"{group}, not {_size(wanted, self.run.dtype)} in that of {list(self.members)}",
                expected=f"tensors of {wanted} elements, {self.run.dtype}, in a group of {size}: {whole} in all",
                actual=f"tensors of {step.elements} elements, {step.dtype}, in the group of ranks {group}",
                where=self._where,
                help=WHOLE,
            )
        expect.true(
            len({step.memory for step in timed}) <= 1,
            f"rank {self.rank}: {self.what} uses other memory in some iterations: it is allocated while it is timed",
            expected="buffers that are allocated once, before anything is timed",
            where=self._where,
            help="make the tensors before you time, and let run() use them again and again",
        )

    def expect_warmup(self) -> None:
        """The collective ran so often before anything was timed."""
        wanted = self.run.num_warmups
        before, _ = self._iterations()[0]
        came = sum(step.name == self.run.operation and step.part == "whole" for step in before)
        expect.true(
            came == wanted,
            f"rank {self.rank}: {self.what} "
            + (f"warms up with {came} of {self.run.operation}, not {wanted}" if came else "does not warm up"),
            expected=f"warm-up: {wanted} times",
            actual=f"{came} times",
            where=self._where,
        )

    def expect_finite(self) -> None:
        """Nothing has grown without bound, and all memory was written."""
        expect.true(
            all(step.finite for step in self.steps if step.name == self.run.operation),
            f"rank {self.rank}: after {self.what} a buffer of the {self.run.operation} holds inf or NaN",
            expected="values that stay finite, however often the collective runs",
            where=self._where,
            help="torch.empty holds anything, and a sum in place of what is not zero grows each time it runs",
        )

    def _iterations(self) -> list[tuple[list[Step], list[Step]]]:
        """For each pair of readings of the clock, what was called before it and between the two."""
        readings = [place for place, step in enumerate(self.steps) if step.name == "clock"]
        count = self.run.num_iterations
        expect.true(
            len(readings) == 2 * count,
            f"rank {self.rank}: {self.what} read the clock {len(readings)} times",
            expected=f"{2 * count} times: twice for each of {count} iterations, and not in the warm-up",
            actual=f"{len(readings)} times",
            where=self._where,
        )
        pairs, done = [], 0
        for start, end in zip(readings[::2], readings[1::2], strict=True):
            pairs.append((joined(self.steps[done:start]), joined(self.steps[start + 1 : end])))
            done = end + 1
        return pairs


def _size(elements: Sequence[int], dtype: str) -> str:
    return f"{dtype} buffers of {' and '.join(map(str, elements))} elements"
