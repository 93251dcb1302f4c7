"""What became of a check on a submission: the one record that plugin, gradebook and views share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """The verdicts of design section 4, from best to worst."""

    PASS = "pass"
    NOT_RUN = "not_run"  # this machine lacks the GPUs: out of score and possible
    SKIPPED = "skipped"  # it cannot run without something that failed
    FAIL = "fail"
    TIMEOUT = "timeout"
    CRASH = "crash"
    INFRA = "infra"  # the grader's own fault: never scored as zero

    @property
    def severity(self) -> int:
        """0 for pass, rising to infra."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Explanation:
    """Why a check did not pass. Every field is bounded, printable text (no control characters but newline).

    rationale: one sentence, first thing that is read; where the submission raised, it holds its message.
    expected, actual: what was expected and what came; several lines at most.
    where:     "collectives.py:41 in broadcast: dist.send(tensor, dst)", a line per frame.
    help:      one thing to try.
    """

    rationale: str
    expected: str = ""
    actual: str = ""
    where: str = ""
    help: str = ""


@dataclass(frozen=True)
class Verdict:
    """One check on one submission.

    points:    got; possible is the check's.
    unwritten: the function of the stub that is not written yet ("broadcast"), or "".
    output:    what the ranks printed and their full tracebacks, bounded: for staff, and for the student if public.
    replay:    the command that runs this check again with the same inputs.
    """

    check: str
    status: Status
    points: int
    possible: int
    seconds: float
    seed: int
    explanation: Explanation | None = None
    unwritten: str = ""
    output: str = ""
    replay: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` inverts it."""
        return {**asdict(self), "status": str(self.status)}

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Verdict:
        """Inverts `to_json`; raises TypeError or ValueError where fields are missing, unknown or wrong."""
        explanation = fields["explanation"]
        return Verdict(
            **{
                **fields,
                "status": Status(fields["status"]),
                "explanation": Explanation(**explanation) if explanation is not None else None,
            }
        )
