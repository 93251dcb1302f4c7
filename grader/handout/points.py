"""The points that course.toml promises against those of the checks: no check is lost and none changes unseen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from grader.checking.catalog import ListedCheck
from grader.checking.course import Course


class PointsError(ValueError):
    """The checks do not sum to what the course promises; the message names module, files and changed checks."""


def require_points(course: Course, checks: Sequence[ListedCheck], before: Sequence[Mapping[str, Any]]) -> None:
    """Raises PointsError unless each offered module's checks sum to course.points.modules, in every tier. Pure.

    checks: all that there are, before they are selected and scaled.
    before: the checks of the last build (name, module, points), to say what has changed since.
    """
    faults = []
    for module in course.selection.modules:
        own = [listed for listed in checks if listed.spec.module == module]
        sums = {
            "full": sum(listed.spec.points for listed in own if not listed.spec.bonus),
            "core": sum(listed.spec.points for listed in own if listed.spec.core and not listed.spec.bonus),
            "bonus": sum(listed.spec.points for listed in own if listed.spec.bonus),
        }
        promised = course.points.modules[module].model_dump()  # type: ignore[index]
        for key, total in sums.items():
            if total != promised[key]:
                files = ", ".join(sorted({listed.path.as_posix() for listed in own})) or "tests/"
                faults.append(
                    f"{files}: the checks of {module} sum to {total} {_words(key)}, "
                    f"and points.modules.{module}.{key} in course.toml says {promised[key]}"
                )
    if faults:
        raise PointsError("\n".join([*faults, *_changes(course, checks, before)]))


def _words(key: str) -> str:
    return {"full": "points", "core": "points in the core tier", "bonus": "bonus points"}[key]


def _changes(course: Course, checks: Sequence[ListedCheck], before: Sequence[Mapping[str, Any]]) -> list[str]:
    now = {listed.spec.name: listed for listed in checks}
    lines = []
    for old in before:
        name, points = old["name"], old["points"] // course.points.scale
        if name not in now:
            lines.append(f"since the last build: the check {name} is gone ({points} points)")
        elif now[name].spec.points != points:
            listed = now[name]
            lines.append(
                f"since the last build: {listed.node_id} is worth {listed.spec.points}, and was worth {points}"
            )
    return lines
