"""`handouts/course.toml`: the facts of a course and of one term, validated as a whole."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.checking.selection import Selection
from grader.checking.spec import MODULES, Module

Text = Annotated[str, Field(min_length=1)]
Size = Annotated[int, Field(ge=1, le=5)]
Points = Annotated[int, Field(ge=0)]


COURSE = Path("handouts/course.toml")  # in a checkout


class CourseError(ValueError):
    """A course file is wrong: a line for each fault, with the file and the key."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Contact(_Table):
    """Whom students write to."""

    name: Text
    email: Annotated[str, Field(pattern=r"^[^@\s<>]+@[^@\s<>]+\.[^@\s<>]+$")]


class Dates(_Table):
    """When it is handed out and when it is due; with an offset, so that nobody has to guess a time zone."""

    released: datetime
    due: datetime

    @model_validator(mode="after")
    def _in_order(self) -> Dates:
        if self.released.tzinfo is None or self.due.tzinfo is None:
            raise ValueError("write dates with an offset, as 2027-02-01T23:59:00-08:00")
        if self.due <= self.released:
            raise ValueError("due lies before released")
        return self


class Offer(_Table):
    """What of the assignment is given."""

    modules: Annotated[tuple[Module, ...], Field(min_length=1, strict=False)]
    tier: Literal["full", "core"]
    world_sizes: Annotated[tuple[Size, ...], Field(min_length=1, strict=False)]


class ModulePoints(_Table):
    """What the checks of a module must sum to, before they are scaled."""

    full: Points
    core: Points
    bonus: Points = 0


class PointsTable(_Table):
    """The scale, and the sums that the build holds the checks to."""

    scale: Annotated[int, Field(ge=1)]
    modules: dict[Module, ModulePoints]

    @model_validator(mode="after")
    def _all_modules(self) -> PointsTable:
        if missing := [module for module in MODULES if module not in self.modules]:
            raise ValueError(f"no points for {', '.join(missing)}")
        return self


class Course(_Table):
    """One term of a course."""

    title: Text
    term: Text
    late_policy: Text
    contact: Contact
    dates: Dates
    offer: Offer
    points: PointsTable

    @property
    def selection(self) -> Selection:
        """Which checks are given."""
        modules = tuple(module for module in MODULES if module in self.offer.modules)
        sizes = tuple(sorted(set(self.offer.world_sizes)))
        return Selection(modules, self.offer.tier, sizes, self.points.scale)


def read_course(path: Path, term: Path | None = None) -> Course:
    """The course in the file at `path`; what the file `term` says, table by table, takes its place.

    Raises CourseError, with a line for each fault: FILE: KEY: what is wrong.
    """
    facts = _read(path)
    if term is not None:
        facts = merged(facts, _read(term))
    try:
        return Course.model_validate(facts)
    except ValidationError as error:
        source = f"{path} with {term}" if term is not None else str(path)
        raise CourseError("\n".join(f"{source}: {_fault(fault)}" for fault in error.errors())) from None


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over`; tables are merged key by key. Pure."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path}: {error}") from None
    except OSError as error:
        raise CourseError(f"{path}: {error.strerror}") from None


def _fault(fault: Any) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    words = {
        "missing": "this key is missing",
        "extra_forbidden": "there is no such key",
    }.get(fault["type"], fault["msg"].removeprefix("Value error, "))
    came = "" if fault["type"] in ("missing", "extra_forbidden", "value_error") else f" (it is {fault['input']!r})"
    return f"{key}: {words}{came}"
