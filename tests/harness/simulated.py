"""Ranks without processes: each is a list of steps, and tells a conductor what a real one would tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.world.conductor import Conductor
from grader.world.report import Report

LINE = ["mine.py", 0, "run", "submission"]


@dataclass(frozen=True)
class Form:
    """Forms a group; `name` is torch's name of it."""

    ranks: tuple[int, ...]
    name: str


@dataclass(frozen=True)
class Issue:
    """Issues an operation in the group of that name; a handle (`key`) is left open, unless it is synchronous."""

    group: str
    op: str = "all_reduce"
    key: str = ""
    shape: tuple[int, ...] = (4,)
    peer: int | None = None  # rank in the group
    tag: int = 0
    root: int | None = None
    line: int = 1


@dataclass(frozen=True)
class Wait:
    """Waits for a handle; or asks again and again until it is complete."""

    key: str
    polls: bool = False


@dataclass(frozen=True)
class Mark:
    """Says that it has come so far."""

    name: str


@dataclass(frozen=True)
class Hold:
    """Waits for another rank's mark."""

    of: int
    name: str


Step = Form | Issue | Wait | Mark | Hold


@dataclass
class SimulatedRank:
    """One rank: the steps that are left, and what it waits for."""

    rank: int
    steps: list[Step]
    threads: bool = False
    started: list[int] = field(default_factory=list)
    polls: int = 0
    _groups: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    _seqs: dict[str, int] = field(default_factory=dict)
    _next_seq: int = 0
    _blocked: Callable[[dict[str, Any]], bool] | None = None
    ended: bool = False

    @property
    def can_speak(self) -> bool:
        return not self.ended and self._blocked is None

    def speak(self, conductor: Conductor) -> None:
        """Says the next thing."""
        if not self.steps:
            self.ended = True
            conductor.ended(self.rank)
            return
        head, blocked = self._head(self.steps[0])
        if not (isinstance(self.steps[0], Wait) and self.steps[0].polls):
            self.steps.pop(0)
        self._blocked = blocked
        if self.threads:
            head["threads"] = True
        conductor.heard(self.rank, head)

    def hear(self, order: Mapping[str, Any]) -> None:
        """Obeys an order of the conductor."""
        if order["do"] == "start":
            self.started.append(order["s"])
        if order["do"] == "answer":
            self.polls += 1
            if order["complete"]:
                self.steps.pop(0)
        if self._blocked is not None and self._blocked(dict(order)):
            self._blocked = None

    def _head(self, step: Step) -> tuple[dict[str, Any], Callable[[dict[str, Any]], bool] | None]:
        match step:
            case Form(ranks, name):
                number = len(self._groups)
                self._groups[name] = number, ranks
                head = {"event": "form", "g": number, "name": name, "ranks": list(ranks), "at": LINE}
                return head, lambda order: order == {"do": "formed", "g": number}
            case Issue():
                return self._issue(step)
            case Wait(key, polls):
                seq = self._seqs[key]
                head = {"event": "poll" if polls else "wait", "s": seq, "at": LINE}
                if polls:
                    return head, lambda order: order["do"] == "answer"
                if seq in self.started:
                    return head, None
                return head, lambda order: order["do"] == "start" and order["s"] == seq
            case Mark(name):
                return {"event": "mark", "name": name}, None
            case Hold(of, name):
                return {"event": "hold", "of": of, "name": name}, lambda order: order["do"] == "go_on"

    def _issue(self, step: Issue) -> tuple[dict[str, Any], Callable[[dict[str, Any]], bool] | None]:
        number, ranks = self._groups[step.group]
        seq, self._next_seq = self._next_seq, self._next_seq + 1
        self._seqs[step.key] = seq
        spec = ["float32", list(step.shape)]
        head: dict[str, Any] = {
            "event": "issue",
            "s": seq,
            "g": number,
            "op": step.op,
            "at": [LINE[0], step.line, *LINE[2:]],
        }
        is_root = step.root is not None and ranks[step.root] == self.rank
        head["reads"] = [spec]
        match step.op:
            case "recv":
                head["reads"], head["writes"] = [], [spec]
            case "broadcast" if not is_root:
                head["reads"], head["writes"] = [], [spec]
            case "all_gather":
                head["writes"] = [spec] * len(ranks)
            case "all_reduce":
                head["writes"], head["reduce_op"] = [spec], "SUM"
        if step.op in ("send", "recv"):
            head["peer"], head["tag"] = step.peer, step.tag
        if step.root is not None:
            head["root"] = step.root
        if step.key or step.op in ("send", "recv"):
            head["async"] = True
            return head, None
        return head, lambda order: order["do"] == "start" and order["s"] == seq


class SimulatedWorld:
    """Ranks and their conductor. Every rank begins in the group "0" of all."""

    def __init__(self, programs: Sequence[Sequence[Step]], *, threads: Sequence[int] = ()) -> None:
        self.conductor = Conductor(len(programs))
        everybody = tuple(range(len(programs)))
        self.ranks = [
            SimulatedRank(rank, [Form(everybody, "0"), *steps], threads=rank in threads)
            for rank, steps in enumerate(programs)
        ]

    def run(
        self, choose: Callable[[list[int]], int] = min, *, until: Callable[[], bool] = lambda: False
    ) -> Report | None:
        """Lets one of the ranks that can speak say one thing, as `choose` says, until none can; the report, if any."""
        while not until():
            able = [rank for rank, state in enumerate(self.ranks) if state.can_speak]
            if not able or self.conductor.report is not None:
                return self.conductor.report
            self.ranks[choose(able)].speak(self.conductor)
            self.conductor.settle()
            self._deliver()
        return self.conductor.report

    def _deliver(self) -> None:
        for rank, orders in self.conductor.outbox.items():
            for order in orders:
                self.ranks[rank].hear(order)
        self.conductor.outbox.clear()
