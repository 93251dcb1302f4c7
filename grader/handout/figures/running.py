"""Runs a program of the pictures on real ranks, and gives what came back as plain numbers. The only effect here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader.world import Failure, Foreign, Launcher, Program, Returned, Submitted, World
from grader.world.values import ReturnedTensor

PROGRAMS = Path(__file__).with_name("programs.py")


class FigureError(RuntimeError):
    """A picture cannot be drawn from what the reference returned; the message says which and why."""


def returned_of(submission: Submitted, function: str, world_size: int, launcher: Launcher, **inputs: Any) -> Returned:
    """What the world returned, with its trace. Raises FigureError where it failed."""
    world = World(world_size, submission=submission, launcher=launcher)
    outcome = world.run(Program.read(PROGRAMS, function), **inputs)
    if isinstance(outcome, Failure):
        raise FigureError(f"{submission.file_name} failed in {function} on {world_size} ranks: {outcome}")
    return outcome


def run(submission: Submitted, function: str, world_size: int, launcher: Launcher, **inputs: Any) -> list[list[Any]]:
    """What each rank yielded, by rank, tensors as (nested lists of) numbers. Raises FigureError."""
    outcome = returned_of(submission, function, world_size, launcher, **inputs)
    return [[plain(value) for value in own] for own in outcome.values]


def plain(value: Any) -> Any:
    """The value with its tensors as lists; whole numbers that a tensor holds as floats become int."""
    if isinstance(value, ReturnedTensor):
        return plain(value.tensor.tolist())
    if isinstance(value, Foreign):
        raise FigureError(f"a rank returned {value.type_name}, which cannot be drawn")
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: plain(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(child) for child in value]
    return value
