"""Checks: what they are, how they are run on a submission, and what became of them."""

from grader.checking.context import Check
from grader.checking.differences import Slip, Slips
from grader.checking.failed import CheckFailed
from grader.checking.spec import CheckSpec, check
from grader.checking.verdict import Explanation, Status, Verdict
from grader.world.values import PerRank

__all__ = ["Check", "CheckFailed", "CheckSpec", "Explanation", "PerRank", "Slip", "Slips", "Status", "Verdict", "check"]
