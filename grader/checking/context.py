"""What a check is given: `check`. It runs programs on the submission and turns a failed world into CheckFailed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.checking.explain import explain
from grader.checking.failed import CheckFailed
from grader.checking.spec import CheckSpec
from grader.checking.submission import Submission
from grader.checking.verdict import Status
from grader.world import Failure, Launcher, Program, Trace, World

if TYPE_CHECKING:
    import torch

DEADLINE = 20.0
PUBLIC_SEED = 2026


@dataclass
class Grading:
    """What all checks of one submission share.

    ends:     the monotonic time at which the submission's budget is spent.
    deadline: seconds for one world.
    names:    by module, the names that it defines; filled by the import of the module, tried once.
    """

    submission: Submission
    launcher: Launcher
    ends: float = float("inf")
    deadline: float = DEADLINE
    names: dict[str, frozenset[str] | CheckFailed] = field(default_factory=dict)

    def time_left(self) -> float:
        """Seconds for the next world: its deadline, or what is left of the budget."""
        return min(self.deadline, self.ends - time.monotonic())


def seed_of(name: str, *, hidden: bool, salt: str, fixed: int | None = None) -> int:
    """The seed of a check's inputs: fixed for public checks, by student (`salt`) for hidden ones."""
    if fixed is not None:
        return fixed
    own = salt if hidden else ""
    digest = hashlib.sha256(f"{PUBLIC_SEED}/{name}/{own}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


@dataclass(frozen=True)
class Ran:
    """One world that a check ran: its program and cases, what the ranks asked of their groups, and its failure."""

    world_size: int
    program: str
    cases: Sequence[str]
    trace: Trace
    failure: Failure | None


class Check:
    """The argument of every check: `def test_broadcast(check)`.

    worlds: the world sizes of the check's mark. seed: of its inputs. spec: the mark itself.
    ran:    the worlds that ran so far.
    """

    def __init__(self, spec: CheckSpec, grading: Grading, *, seed: int, programs: Sequence[Path]) -> None:
        self.spec = spec
        self.worlds = spec.worlds
        self.seed = seed
        self.output = ""  # of the world that ran last
        self.ran: list[Ran] = []
        self._grading = grading
        self._programs = programs

    @property
    def trace(self) -> Trace:
        """What the ranks of the world that ran last asked of their groups. CheckFailed where some was not kept."""
        trace = self.ran[-1].trace
        if not trace.complete:
            raise CheckFailed(
                "the ranks asked their groups for more operations than can be counted",
                help="is a tensor sent element by element, or is there a loop that asks again and again?",
            )
        return trace

    def generator(self, *path: object) -> torch.Generator:
        """A generator of random numbers for this check's seed and `path`, e.g. (world_size, "weights")."""
        import torch

        digest = hashlib.sha256(f"{self.seed}/{path}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))

    def run(
        self,
        world_size: int,
        program: str,
        *,
        cases: Sequence[str] = (),
        joined: bool = True,
        **inputs: Any,
    ) -> list[list[Any]]:
        """Runs the program "file.function" of `programs/` on `world_size` ranks of the submission's module.

        cases: what each value that the program yields is about, for messages ("src=1, shape (3, 2)").
        Returns values[rank][k]: what the program yielded, always as many as cases where those are given. Inputs
        may be PerRank. Raises CheckFailed where the world failed.
        """
        world = World(
            world_size,
            submission=self._grading.submission.module(self.spec.module),
            launcher=self._grading.launcher,
            joined=joined,
            deadline=self._time_left(),
        )
        outcome = world.run(self._find(program), **inputs)
        self.output = joined_output(outcome.output)
        failure = outcome if isinstance(outcome, Failure) else None
        self.ran.append(Ran(world_size, program, cases, outcome.trace, failure))
        if isinstance(outcome, Failure):
            raise explain(outcome, world_size=world_size, cases=cases)
        for rank, values in enumerate(outcome.values):
            if cases and len(values) != len(cases):
                raise CheckFailed(f"rank {rank} returned {len(values)} results for {len(cases)} cases")
            if not values:  # a program yields something; the submission has ended it without its word
                raise CheckFailed(f"rank {rank} returned no result")
        return outcome.values

    def _time_left(self) -> float:
        left = self._grading.time_left()
        if left <= 0:
            raise CheckFailed(
                "the time for this submission was spent before this check",
                status=Status.TIMEOUT,
                help="checks that hang use up the time: mend those first",
            )
        return left

    def _find(self, program: str) -> Program:
        file_name, _, function = program.partition(".")
        for folder in self._programs:
            path = folder / f"{file_name}.py"
            if path.exists():
                return Program.read(path, function)
        raise FileNotFoundError(f"no program {file_name}.py in {', '.join(map(str, self._programs))}")


def story(*parts: str) -> str:
    """Where the ranks were, then what they printed: the parts that there are, below each other."""
    return "\n".join(part for part in parts if part)


def joined_output(outputs: Sequence[str]) -> str:
    """What the ranks printed, each line with its rank in front."""
    return "\n".join(f"[rank {rank}] {line}" for rank, text in enumerate(outputs) for line in text.splitlines())
