"""A trace that was not kept whole passes no check, whatever the check looks for in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.checking import Check, CheckFailed
from grader.checking.context import Grading, Ran
from grader.checking.submission import Submission
from grader.world import Launcher, Trace
from tests.harness.mutation import checks


def test_a_check_cannot_read_a_trace_of_which_some_is_lost() -> None:
    spec = checks()["collectives.all_reduce"].spec
    check = Check(spec, Grading(Submission({}, {}), Launcher()), seed=1, programs=[Path()])
    check.ran = [Ran(2, "collectives.call", (), Trace(), None)]
    assert list(check.trace) == []
    check.ran.append(Ran(2, "collectives.call", (), Trace(complete=False), None))
    with pytest.raises(CheckFailed, match="more operations than can be counted"):
        _ = check.trace
