"""What the tests of batches share: twelve checks, and judges that play a part."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.batch.judge import Court, judge_environment
from grader.batch.submission import Submission
from grader.checking.spec import MODULES, CheckSpec
from grader.checking.verdict import Explanation, Status, Verdict

SCRIPT = Path(__file__).with_name("fake_judge.py")
CHECKS = tuple(
    CheckSpec(f"{module}.{kind}", module, 5, f"The {kind} check of {module} holds.", (2,), ("f",), True, bonus, hidden)
    for module in MODULES
    for kind, hidden, bonus in (("seen", False, module == "accounting"), ("unseen", True, module == "accounting"))
)


@dataclass(frozen=True)
class FakeCommand:
    """See `grader.batch.judge.Command`. log: a file that gets a line for each judge that is started."""

    log: Path | None = None

    def __call__(self, *, staged: Path, name: str, checks: Sequence[str], verdicts: int, lifeline: int) -> list[str]:
        task = {
            "staged": str(staged),
            "name": name,
            "checks": list(checks),
            "verdicts": verdicts,
            "lifeline": lifeline,
            "log": str(self.log) if self.log else "",
        }
        return [sys.executable, "-I", str(SCRIPT), json.dumps(task)]


def part(**fields: object) -> bytes:
    """The collectives.py of a submission for which the judge plays the given part; see fake_judge.main."""
    return json.dumps(fields).encode()


def plays(name: str, **fields: object) -> Submission:
    """A submission of that name and part."""
    return Submission(name, {"collectives.py": part(**fields)}, (), f"given/{name}")


def court(
    root: Path,
    *,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
    deadline: float = 60.0,
    grace: float = 10.0,
) -> Court:
    """A court of fake judges."""
    surroundings = judge_environment({"PATH": "/usr/bin:/bin", **(environment or {})}, "run-of-a-test")
    return Court(FakeCommand(log), root, surroundings, deadline, grace)


def verdict(check: str, status: Status = Status.PASS, points: int = 5, **fields: object) -> Verdict:
    """A verdict on one of CHECKS."""
    explanation = None if status is Status.PASS else Explanation(f"{check} is wrong", "one", "two", "here.py:1", "try")
    record = {
        "check": check,
        "status": status,
        "points": points if status is Status.PASS else 0,
        "possible": 5,
        "seconds": 0.5,
        "seed": 3,
        "explanation": explanation,
    }
    return Verdict(**{**record, **fields})  # type: ignore[arg-type]


class SilentView:
    """Shows nothing."""

    def fell(self) -> None:
        """See `grader.batch.clerk.View`."""

    def closed(self, line: str, *, broken: bool) -> None:
        """See `grader.batch.clerk.View`."""
