"""What the conductor knows of one rank."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from grader.world.meetings import Group
from grader.world.operation import Operation, Place
from grader.world.trace import Doing


@dataclass(frozen=True)
class Waiting:
    """What a rank is blocked in: an operation, or a mark `name` of rank `of`."""

    doing: Doing
    place: Place
    operation: Operation | None = None
    of: int = 0
    name: str = ""


@dataclass
class RankState:
    """What is known of one rank.

    open:    operations whose handle it has not waited for, by seq; unstarted: those that wait for other ranks.
    waited:  the last ones that it waited for. excused: handles that the program says nobody has to wait for.
    held:    the rank and the mark that it is held until.
    idle_polls: how often it was told "not yet" since a rank last did anything else.
    threads: it had other threads when it last asked for something to wait for: where one waits, another may go on.
    """

    groups: dict[int, Group] = field(default_factory=dict)
    open: dict[int, Operation] = field(default_factory=dict)
    unstarted: dict[int, Operation] = field(default_factory=dict)
    waited: deque[Operation] = field(default_factory=lambda: deque(maxlen=256))
    excused: set[int] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)
    marked: int = 0
    held: tuple[int, str] | None = None
    waiting: Waiting | None = None
    ended: bool = False
    idle_polls: int = 0
    threads: bool = False
    next_seq: int = 0
    forms: int = 0
    case: int = 0

    @property
    def may_go_on(self) -> bool:
        """Whether it can do something that nobody has to answer first."""
        return not (self.waiting or self.ended)
