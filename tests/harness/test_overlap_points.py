"""Whoever computes right gradients without any overlap loses the points of overlap, and no others."""

from __future__ import annotations

import pytest

from grader.checking import Status
from grader.world import Launcher
from tests.harness import mutation
from tests.mutants.data_parallel_texts import IN_FLIGHT

CHECKS = {name: listed for name, listed in mutation.checks().items() if listed.spec.module == "data_parallel"}
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("data_parallel")}


@pytest.mark.parametrize("mutant", ["waits_in_the_hook", "only_fakes_asynchrony", "sends_everything_after_backward"])
def test_exactly_the_points_of_overlap_are_lost(mutant: str, launcher: Launcher) -> None:
    submission = mutation.edited("data_parallel", MUTANTS[mutant])
    verdicts = {name: mutation.verdict_of(listed, submission, launcher) for name, listed in CHECKS.items()}
    lost = {name: verdict.status for name, verdict in verdicts.items() if verdict.status is not Status.PASS}
    assert lost == dict.fromkeys(IN_FLIGHT, Status.FAIL), {name: verdicts[name].explanation for name in lost}
    assert sum(CHECKS[name].spec.points for name in lost) == 4
