"""One row of the table for each mutant of a classic mistake and each check that it is there to fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.checking import Status
from grader.checking.spec import MODULES
from tests.harness import mutation
from tests.mistakes.titles import TITLES

WRONG = (Status.FAIL, Status.CRASH, Status.TIMEOUT)


@dataclass(frozen=True)
class Task:
    """A mutant, by module and name, and a check that it fails."""

    number: int
    module: str
    mutant: str
    check: str


@dataclass(frozen=True)
class Row:
    """A task and what became of it. line: the first of the message, "" for a pass."""

    task: Task
    status: Status
    line: str

    @property
    def caught(self) -> bool:
        """Whether the check said no."""
        return self.status in WRONG


def tasks_of(numbers: Sequence[int], *, every: bool = False) -> list[Task]:
    """The tasks of these mistakes, in their order. every: all declared checks of a mutant, not the first alone."""
    tasks = [
        Task(mutant.mistake, module, mutant.name, check)
        for module in MODULES
        for mutant in mutation.mutants_of(module)
        if mutant.mistake in TITLES and mutant.mistake in numbers
        for check in (mutant.fails if every else mutant.fails[:1])
    ]
    return sorted(tasks, key=lambda task: task.number)


def missing(numbers: Sequence[int], tasks: Sequence[Task]) -> list[int]:
    """The mistakes that no mutant has."""
    return [number for number in numbers if number not in {task.number for task in tasks}]


def numbers_of(text: str) -> list[int]:
    """The numbers in a text like "1-15,25". Raises ValueError for anything else, and for numbers without a title."""
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        one = range(int(first), int(last or first) + 1)
        if not one:
            raise ValueError(f"{part.strip()!r} is no range of numbers")
        chosen += [number for number in one if number in TITLES]
        if not set(one) & set(TITLES):
            raise ValueError(f"there is no mistake with the number {part.strip()}")
    return sorted(set(chosen))
