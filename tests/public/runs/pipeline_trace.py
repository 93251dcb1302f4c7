"""What each stage did in one call, as steps: messages posted and waited for, microbatches computed. From the trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from grader.checking import Check, CheckFailed
from grader.world import Doing, Trace
from grader.world.failure import printable
from grader.world.mismatch import describe, short
from grader.world.operation import NOWHERE, Operation, Place
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs.pipelines import Call, Pipeline

MARK = re.compile(r"(begun|done) the (forward|backward) of microbatch (\d{1,6}) in call \d+")
NAMES = {"ra": "receive of the activation", "sa": "send of the activation"}
NAMES |= {"rg": "receive of the gradient", "sg": "send of the gradient", "F": "forward", "B": "backward"}


class Action(NamedTuple):
    """As grader.given's, by the short names that it prints: "ra", "F", …"""

    kind: str
    k: int

    def __str__(self) -> str:
        return f"{self.kind}{self.k}"

    @property
    def name(self) -> str:
        """In words: "send of the activation of microbatch 0"."""
        return f"{NAMES[self.kind]} of microbatch {self.k}"


class Step(NamedTuple):
    """A message is posted (isend, irecv) or waited for; the computation of a microbatch begins or ends."""

    doing: Literal["post", "wait", "begin", "end"]
    action: Action
    place: Place = NOWHERE
    operation: Operation | None = None

    def __str__(self) -> str:
        """Short: "post ra1", "F0"."""
        return str(self.action) if self.doing == "begin" else f"{self.doing} {self.action}"

    @property
    def present(self) -> str:
        """After "rank 1": "posts its receive of the activation of microbatch 1"."""
        verb = {"post": "posts its", "wait": "waits for its", "begin": "begins the", "end": "ends the"}[self.doing]
        return f"{verb} {self.action.name}"

    @property
    def perfect(self) -> str:
        """After "rank 1 has": "posted its receive of the activation of microbatch 1"."""
        verb = {"post": "posted its", "wait": "waited for its", "begin": "begun the", "end": "ended the"}[self.doing]
        return f"{verb} {self.action.name}"


@dataclass(frozen=True)
class Account:
    """One stage in one call. steps: of which the last may be missing, where the world failed."""

    pipeline: Pipeline
    call: Call
    stage: int
    steps: Sequence[Step]

    @property
    def members(self) -> tuple[int, ...]:
        """The ranks of the group, by stage."""
        return tuple(self.pipeline.group or range(len(self.pipeline.stages)))

    @property
    def rank(self) -> int:
        """Of the world."""
        return self.neighbour(0)

    @property
    def what(self) -> str:
        """The call, for messages."""
        return self.pipeline.named(self.call)

    def neighbour(self, step: int) -> int:
        """The rank of the stage so many further on."""
        return self.members[self.stage + step]

    def schedule(self) -> list[Action]:
        """What the stage has to do, in order."""
        actions = oracle.schedule(self.stage, len(self.pipeline.stages), self.pipeline.num_microbatches)
        kinds = ("ra", "F", "sa") if self.call.function == "forward_only" else tuple(NAMES)
        split = [re.fullmatch(r"([a-zA-Z]+)(\d+)", action) for action in actions]
        made = [Action(found[1], int(found[2])) for found in split if found]
        return [action for action in made if action.kind in kinds]

    def schedule_has(self, kind: str) -> bool:
        """Whether the stage does this in this call."""
        return any(action.kind == kind for action in self.schedule())

    def failed(self, did: str, *, at: Step | None = None, **fields: Any) -> CheckFailed:
        """rank 1 DID in this call. at: the step that is wrong."""
        place = at.place if at is not None else NOWHERE
        where = f"rank {self.rank}: {place_text(place)}" if place.file else ""
        return CheckFailed(f"rank {self.rank} {did}, in {self.what}", where=where, **fields)

    def until(self, at: Step, count: int = 12) -> str:
        """The steps that came before one, and it, in short."""
        shown = [step for step in self.steps[: self.steps.index(at) + 1] if step.doing != "end"]
        return f"rank {self.rank}: {'… ' * (len(shown) > count)}{', '.join(map(str, shown[-count:]))}"


def unread(check: Check, pipelines: Sequence[Pipeline]) -> Iterator[tuple[Account, Trace]]:
    """For each call and stage an account without steps, and the events."""
    calls = [(pipeline, call) for pipeline in pipelines for call in pipeline.calls]
    for number, (pipeline, call) in enumerate(calls):
        for stage in range(len(pipeline.stages)):
            account = Account(pipeline, call, stage, ())
            yield account, check.trace.of(account.rank, number)


def accounts(check: Check, pipelines: Sequence[Pipeline], *, strict: bool = True) -> Iterator[list[Account]]:
    """By call, what each stage did. Raises CheckFailed for what no stage does: operations that are no messages, …

    strict: else those are left out.
    """
    sources = {(one.rank, one.seq): one.peer_rank for met in check.trace.met for one in met if one.name == "recv"}
    found: list[Account] = []
    for account, events in unread(check, pipelines):
        found.append(replace(account, steps=list(_steps(account, events, sources, strict=strict))))
        if account.stage == len(account.pipeline.stages) - 1:
            yield found
            found = []


def _steps(
    account: Account, events: Trace, sources: Mapping[tuple[int, int], int | None], *, strict: bool
) -> Iterator[Step]:
    """sources: by rank and seq, whom a receive has received from."""
    posted: dict[int, Action] = {}  # by seq
    counts: Counter[str] = Counter()
    for event in events:
        operation, mark = event.operation, MARK.fullmatch(event.name)
        if event.doing is Doing.MARK and mark:
            kind = "F" if mark[2] == "forward" else "B"
            yield Step("begin" if mark[1] == "begun" else "end", Action(kind, int(mark[3])))
        elif operation is None or operation.place.asker == "program":
            continue
        elif event.doing in (Doing.ISSUE, Doing.FORM):
            peer = operation.peer_rank if operation.peer is not None else sources.get((operation.rank, operation.seq))
            if operation.name == "recv" and peer is None:
                return  # from any rank, and none has sent: nothing can be said of what follows
            message = _message(account, operation, peer)
            if message:
                posted[operation.seq] = Action(message, counts[message])
                counts[message] += 1
                yield Step("post", posted[operation.seq], operation.place, operation)
            elif strict and (event.doing is Doing.ISSUE or operation.place.asker == "submission"):
                raise _foreign(account, operation)
        elif operation.seq in posted:
            yield Step("wait", posted[operation.seq], event.place, operation)


def _message(account: Account, operation: Operation, peer: int | None) -> str:
    """What the message is: "sa". "" for an operation that is none of the stage's messages."""
    if operation.name not in ("send", "recv") or operation.group != account.members:
        return ""
    if account.stage < len(account.members) - 1 and peer == account.neighbour(1):
        return "sa" if operation.name == "send" else "rg"
    if account.stage > 0 and peer == account.neighbour(-1):
        return "sg" if operation.name == "send" else "ra"
    return ""


def refuse_other_group(account: Account, operation: Operation) -> None:
    """Raises CheckFailed for an operation in another group than that of the stage."""
    if operation.group != account.members:
        raise account.failed(
            f"calls {short(operation)} in the group of the ranks {list(operation.group)}",
            at=Step("post", Action("F", 0), operation.place),
            expected=f"the group that was given, of the ranks {list(account.members)}",
            actual=describe(operation),
            help="pass group=group to every operation of torch.distributed",
        )


def _foreign(account: Account, operation: Operation) -> CheckFailed:
    """An operation that is none of the stage's messages."""
    alone = len(account.members) == 1
    did, help = (
        f"calls {short(operation)}",
        "every rank knows the number and sizes of all messages: nothing else is sent",
    )
    if operation.name == "new_group":
        did, help = "forms a group of its own", "use the group that was given; None is the default group"
    elif operation.name in ("send", "recv") and not alone:
        refuse_other_group(account, operation)
        did = f"{did}, which is not the rank of a neighbouring stage"
    return account.failed(
        did,
        at=Step("post", Action("F", 0), operation.place),
        expected="a world of 1 sends nothing" if alone else "messages to and from its neighbours, nothing else",
        actual=describe(operation),
        help=help,
    )


def place_text(place: Place) -> str:
    """ "pipeline_parallel.py:41 in forward"."""
    return f"{printable(place.file, 100)}:{place.line} in {printable(place.function, 100)}"
