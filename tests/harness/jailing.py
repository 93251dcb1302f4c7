"""What the tests of the jail share: a jail that works here or a reason to skip, and outcomes of worlds."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from grader.jail import Bubblewrap, missing
from grader.world import Failure, Launcher, Returned, World
from tests.harness import hostile
from tests.harness.leftovers import processes_of


def working_jail() -> Bubblewrap:
    """A jail, tried. Skips the test where bubblewrap cannot run."""
    jail = Bubblewrap()
    if reason := missing(jail):
        pytest.skip(reason)
    return jail


def launchers() -> Iterator[Launcher]:
    """The body of a fixture: one launcher in a jail, in a run of its own, so that its processes can be counted."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GRADER_RUN", str(uuid.uuid4()))
        with Launcher(working_jail()) as launcher:
            yield launcher


def values(outcome: Returned | Failure) -> list[list[Any]]:
    """Of each rank. Fails the test where the world did."""
    assert isinstance(outcome, Returned), outcome.text(everything=True)
    return outcome.values


def one(launcher: Launcher, program: Any, **inputs: Any) -> Any:
    """What `program` returns on the only rank of a world that is in no group."""
    return values(World(1, launcher=launcher, joined=False, deadline=60.0).run(program, **inputs))[0][0]


def works(launcher: Launcher) -> None:
    """The next world in this jail is as good as ever."""
    for (gradient,) in values(World(3, launcher=launcher).run(hostile.adds_up)):
        assert gradient.tensor.tolist() == [6.0, 6.0, 6.0]


def settles(run: str, expected: list[int]) -> bool:
    """Whether just the processes `expected` of this run are left, now or soon."""
    ends = time.monotonic() + 10.0
    while processes_of(run) != expected:
        if time.monotonic() > ends:
            return False
    return True


def jail_alone(launcher: Launcher, run: str) -> list[int]:
    """The processes of a running jail in which no world is: bubblewrap, its process 1 inside, and the zygote."""
    works(launcher)
    ends = time.monotonic() + 10.0
    while len(found := processes_of(run)) > 3:
        assert time.monotonic() < ends, found
    return found
