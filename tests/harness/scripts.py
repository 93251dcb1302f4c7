"""Random programs that are valid: one script for the world, of which each rank does its part in the script's order."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.harness.simulated import Form, Issue, Step, Wait


@dataclass(frozen=True)
class ScriptStep:
    """One collective or message. waits: by member, how many steps later it waits; None: at once, without a handle."""

    line: int
    group: str
    ranks: tuple[int, ...]
    op: str
    ends: tuple[int, int] = (0, 0)  # of a message: sender and receiver, in the group
    tag: int = 0
    waits: tuple[tuple[int | None, bool], ...] = ()  # by rank in the group: how long, and whether by polling

    @property
    def members(self) -> tuple[int, ...]:
        """The ranks that take part."""
        return tuple(self.ranks[end] for end in self.ends) if self.op == "message" else self.ranks


@dataclass(frozen=True)
class Script:
    """size: of the world. groups: by name, other than "0"; alike: all operations have one shape."""

    size: int
    groups: tuple[tuple[str, tuple[int, ...]], ...]
    steps: tuple[ScriptStep, ...]
    alike: bool

    def programs(self, *, without: tuple[ScriptStep, int] | None = None) -> list[list[Step]]:
        """What each rank does; `without`: one rank leaves out its part of one step."""
        return [self._program(rank, without) for rank in range(self.size)]

    def _program(self, rank: int, without: tuple[ScriptStep, int] | None) -> list[Step]:
        done: list[Step] = [Form(ranks, name) for name, ranks in self.groups if rank in ranks]
        later: dict[int, list[Step]] = {}
        for number, step in enumerate(self.steps):
            if rank in step.members and (step, rank) != without:
                issue, waits = self._part(step, rank)
                done.append(issue)
                if waits is not None:
                    delay, polls = waits
                    later.setdefault(number + delay, []).append(Wait(str(step.line), polls=polls))
            done += later.pop(number, [])
        return done + [wait for number in sorted(later) for wait in later[number]]

    def _part(self, step: ScriptStep, rank: int) -> tuple[Issue, tuple[int, bool] | None]:
        own = step.ranks.index(rank)
        delay, polls = step.waits[own]
        shape = (4,) if self.alike else (step.line,)
        key = str(step.line)
        if step.op == "message":
            sender, receiver = step.ends
            op, peer = ("send", receiver) if own == sender else ("recv", sender)
            return Issue(step.group, op, key, shape, peer, step.tag, line=step.line), (delay or 0, polls)
        root = 0 if step.op == "broadcast" else None
        if delay is None:
            return Issue(step.group, step.op, "", shape, root=root, line=step.line), None
        return Issue(step.group, step.op, key, shape, root=root, line=step.line), (delay, polls)


@st.composite
def scripts(draw: st.DrawFn, *, alike: bool = False) -> Script:
    """Up to 5 ranks, 3 sub-groups and 12 steps. alike: one kind of collective, everybody waits at once, no polls."""
    size = draw(st.integers(1, 5))
    subsets = st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True).map(sorted)
    groups = tuple(
        (str(number), tuple(ranks)) for number, ranks in enumerate(draw(st.lists(subsets, max_size=3)), start=1)
    )
    every = (("0", tuple(range(size))), *groups)
    steps = []
    for line in range(1, draw(st.integers(1, 12)) + 1):
        name, ranks = draw(st.sampled_from(every))
        kinds = [
            "all_reduce",
            *([] if alike else ["broadcast", "all_gather"]),
            *(["message"] if len(ranks) > 1 else []),
        ]
        op = draw(st.sampled_from(kinds))
        sender = draw(st.integers(0, len(ranks) - 1))
        others = [number for number in range(len(ranks)) if number != sender]
        ends = (sender, draw(st.sampled_from(others))) if op == "message" else (0, 0)
        wait = st.tuples(st.none() | st.integers(0, 4), st.booleans()) if not alike else st.just((None, False))
        waits = tuple(draw(wait) for _ in ranks)
        steps.append(ScriptStep(line, name, ranks, op, ends, draw(st.integers(0, 2)), waits))
    return Script(size, groups, tuple(steps), alike)
