"""What a judge says, taken down: each check gets exactly one verdict, whatever becomes of the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.checking.spec import CheckSpec
from grader.checking.verdict import Explanation, Status, Verdict


class Hearing:
    """Which checks still lack a verdict, while a judge speaks."""

    def __init__(self, checks: Sequence[CheckSpec], record: Callable[[Verdict], None]) -> None:
        self._open = {spec.name: spec for spec in checks}
        self._record = record
        self._under_way = ""

    def take(self, event: dict[str, Any]) -> bool:
        """Takes one event; True if it was the last. Raises ValueError, KeyError or TypeError for a malformed one."""
        match event.pop("event"):
            case "start":
                self._under_way = str(event["check"])
            case "verdict":
                verdict = Verdict.from_json(event)
                spec = self._open[verdict.check]
                if verdict.possible != spec.points or not 0 <= verdict.points <= spec.points:
                    raise ValueError(
                        f"{verdict.points} of {verdict.possible} points for {spec.name}, which has {spec.points}"
                    )
                self._record(verdict)
                del self._open[verdict.check]
                self._under_way = ""
            case "end":
                return True
            case other:
                raise ValueError(f"unknown event {other!r}")
        return False

    def close(self, why: str, output: str) -> None:
        """Gives every check that is still open the verdict `infra`: no score is taken from a broken grader."""
        during = f" while {self._under_way} was under way" if self._under_way else ""
        for spec in self._open.values():
            self._record(
                Verdict(
                    check=spec.name,
                    status=Status.INFRA,
                    points=0,
                    possible=spec.points,
                    seconds=0.0,
                    seed=0,
                    explanation=Explanation(f"No verdict: {why}{during}."),
                    output=output,
                )
            )
        self._open.clear()
