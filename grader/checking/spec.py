"""What a check is, apart from its code: its name, points and statement. Pure data, read without importing torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pytest

MODULES = (
    "collectives",
    "benchmark",
    "data_parallel",
    "tensor_parallel",
    "pipeline_parallel",
    "accounting",
)
Module = Literal["collectives", "benchmark", "data_parallel", "tensor_parallel", "pipeline_parallel", "accounting"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class CheckSpec:
    """One check.

    name:      "module.name", unique over public and hidden checks; the test function's name without "test_".
    points:    whole points; 0 is allowed for none.
    statement: one sentence, in the student's words, that is true of a right submission.
    worlds:    the world sizes it runs in; () for a check that needs no process group.
    needs:     names that the module must define for the check to run at all.
    core:      it belongs to the core tier (the shorter assignment).
    bonus:     its points come on top; they are not part of what is possible.
    hidden:    only staff have it.
    """

    name: str
    module: Module
    points: int
    statement: str
    worlds: tuple[int, ...]
    needs: tuple[str, ...]
    core: bool
    bonus: bool
    hidden: bool


def check(
    module: Module,
    *,
    points: int,
    statement: str,
    worlds: tuple[int, ...] = (),
    needs: tuple[str, ...] = (),
    core: bool = True,
    bonus: bool = False,
) -> Callable[[Function], Function]:
    """Marks a test function `test_NAME(check)` as the graded check "MODULE.NAME". See CheckSpec for the fields."""
    return pytest.mark.check(
        module=module, points=points, statement=statement, worlds=worlds, needs=needs, core=core, bonus=bonus
    )


def spec_of(function: Callable[..., Any], *, hidden: bool) -> CheckSpec | None:
    """The spec of a test function that carries the `check` mark, else None. Raises ValueError if it is malformed."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "check"]
    if not marks:
        return None
    fields = marks[0].kwargs
    if fields["module"] not in MODULES:
        raise ValueError(f"{function.__name__}: no module {fields['module']!r}; it is one of {', '.join(MODULES)}")
    if not function.__name__.startswith("test_"):
        raise ValueError(f"{function.__name__}: a check's function is named test_NAME")
    if not fields["statement"].endswith("."):
        raise ValueError(f"{function.__name__}: the statement is a sentence and ends with a full stop")
    name = f"{fields['module']}.{function.__name__.removeprefix('test_')}"
    return CheckSpec(name=name, hidden=hidden, **fields)
