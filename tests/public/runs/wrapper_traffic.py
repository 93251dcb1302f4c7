"""What wrappers send in the steps of their sessions: in the given group, nothing inside no_sync(), and what is due.

The program marks where each session and each step begins, and where a step ends. Marks and operations are claims.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from grader.checking import Check, CheckFailed
from grader.world import Doing, Trace
from grader.world.mismatch import short
from grader.world.operation import Operation
from tests.public.oracles.data_parallel import fill
from tests.public.oracles.sessions import Session
from tests.public.runs.wrapper_trace import (
    Buckets,
    compare_group,
    compare_part,
    compare_sent,
    issued,
    messages,
    table,
    told_by_trace,
)
from tests.public.runs.wrong_means import INSIDE

SESSION, END = "session", "end of "
AFTER_BACKWARD = ("NaiveDDP", "FlatDDP")
BACKWARDS = ("backward", "retaining backward", "backward of two calls")


@dataclass
class _Step:
    """What one rank sent between two marks. inside: of a no_sync(). look: the number of the next look."""

    name: str
    inside: bool
    look: int
    sent: list[Operation] = field(default_factory=list)


@contextmanager
def watched(check: Check, wrapper: str, sessions: Sequence[Session], *, counted: bool) -> Iterator[list[Any]]:
    """Runs the block, which runs the sessions in a world and compares gradients; then compares what was sent.

    The block puts the world's values into the list. counted: each synchronize_gradients() must send what is due, by
    the wrapper's rule.
    """
    values: list[Any] = []

    def compare(ended: bool) -> None:
        # Where ranks did not meet, what one has left out is the reason; but the buckets come with the values.
        told = counted if ended else wrapper != "BucketedDDP"
        for account in _accounts(check, wrapper, sessions, values):
            account.compare(counted=told, ended=ended)

    with told_by_trace(check, compare):
        yield values


@contextmanager
def within(check: Check, group: tuple[int, ...], named: Sequence[str]) -> Iterator[None]:
    """Runs the block, which runs a world of these cases; each sends in the group alone."""

    def compare(_: bool) -> None:
        for rank, (case, what) in itertools.product(range(check.ran[-1].world_size), enumerate(named)):
            for event in check.trace.of(rank, case):
                operation = issued(event)
                if operation is not None:
                    compare_group(operation, group, what=what, rank=rank)

    with told_by_trace(check, compare):
        yield


def _accounts(
    check: Check, wrapper: str, sessions: Sequence[Session], values: Sequence[Sequence[Any]]
) -> Iterator[_Account]:
    """Of each session on each rank, as far as it came."""
    for rank in range(check.ran[-1].world_size):
        first = 0
        for session, steps in zip(sessions, _steps(check.trace.of(rank)), strict=False):
            looks = session.looks()
            value = values[rank][first] if values else None
            yield _Account(wrapper, session, rank, steps, looks, first, _own_buckets(value, session))
            first += len(looks)


def _steps(events: Trace) -> list[list[_Step]]:
    """By session."""
    sessions: list[list[_Step]] = []
    depth = 0
    for event in events:
        operation = issued(event)
        if event.doing is Doing.MARK:
            depth += {"no_sync": 1, f"{END}no_sync": -1}.get(event.name, 0)
            step = _Step(event.name, depth > 0, event.case)
            if event.name == SESSION:
                sessions.append([step])
            elif sessions:
                sessions[-1].append(step)
        elif operation is not None and sessions:
            sessions[-1][-1].sent.append(operation)
    return sessions


@dataclass(frozen=True)
class _Account:
    """One session on one rank. looks: their titles; first: the number of the first. buckets: the wrapper's own."""

    wrapper: str
    session: Session
    rank: int
    steps: Sequence[_Step]
    looks: Sequence[str]
    first: int
    buckets: Buckets

    def compare(self, *, counted: bool, ended: bool) -> None:
        """Raises CheckFailed for the first operation that is wrong, or left out. ended: no step is missing."""
        for step in self.steps:
            self._compare_group(step)
        if len(self.session.members) == 1 or self.rank not in self.session.members:
            return
        for step in self.steps:
            if step.inside and step.sent:
                raise CheckFailed(
                    f"rank {self.rank}: {self._what(step)} calls {short(step.sent[0])} inside no_sync()",
                    expected="nothing is sent inside no_sync(): backward only accumulates into this rank's .grad",
                    actual=table(step.sent),
                    help=INSIDE,
                )
        if counted:
            self._compare_sent(ended)

    def _compare_group(self, step: _Step) -> None:
        for operation in step.sent:
            compare_group(operation, tuple(self.session.members), what=self._what(step), rank=self.rank)

    def _compare_sent(self, ended: bool) -> None:
        of = self.session.parameters
        trainable = {name: value for name, value in of.items() if name not in self.session.frozen}
        due = messages(self.wrapper, trainable, self.buckets)
        sent: list[Operation] = []  # since the last synchronize_gradients()
        for step in self.steps:
            if step.name == f"{END}synchronize":
                compare_sent(sent, due, self.wrapper, what=self._what(step), rank=self.rank)
                sent = []
            if step.name in BACKWARDS and self.wrapper in AFTER_BACKWARD and step.sent:
                raise CheckFailed(
                    f"rank {self.rank}: {self._what(step)} calls {short(step.sent[0])} inside backward",
                    expected=f"{self.wrapper} sends when synchronize_gradients() is called",
                    actual=table(step.sent),
                )
            if step.name == "refused backward":
                return
            if step.name not in (SESSION, "wrap again"):
                sent += step.sent
        if not ended:
            compare_part(sent, due, self.wrapper, what=self._what(self.steps[-1]), rank=self.rank)
        elif sent:
            raise CheckFailed(
                f"rank {self.rank}: {self._what(self.steps[-1])} calls {short(sent[0])} after synchronize_gradients()",
                expected="nothing is sent between synchronize_gradients() and the next backward",
                actual=table(sent),
            )

    def _what(self, step: _Step) -> str:
        """What the wrapper is doing, and in which session: "synchronize_gradients() of NaiveDDP (four steps, …)"."""
        look = min(max(step.look - self.first, 0), len(self.looks) - 1)
        name = step.name.removeprefix(END)
        if name in (SESSION, "wrap again"):
            doing = f"making {self.wrapper}"
        elif name.endswith("synchronize"):
            doing = f"synchronize_gradients() of {self.wrapper}"
        else:
            doing = f"backward of {self.wrapper}" if name in BACKWARDS else self.wrapper
        return f"{doing} ({self.looks[look]})"


def _own_buckets(value: Any, session: Session) -> Buckets:
    """The names in the wrapper's .buckets, if they are those of the trainable parameters; else by the rule."""
    trainable = [name for name in session.parameters if name not in session.frozen]
    came = value.get("buckets") if type(value) is dict else None
    if type(came) is list and all(type(bucket) is list for bucket in came):
        named = [name for bucket in came for name in bucket]
        if all(type(name) is str for name in named) and sorted(named) == sorted(trainable):
            return came
    of = [session.parameters[name] for name in trainable]
    sizes, kinds = [each.numel() * each.element_size() for each in of], [each.dtype for each in of]
    plan = fill(sizes, kinds, int(session.options.get("bucket_bytes", 25 * 2**20)))
    return [[trainable[index] for index in bucket] for bucket in plan]
