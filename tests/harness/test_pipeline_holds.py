"""The overlap of a pipeline is proved by stages that are held: where one waits too early, the world is stuck.

The order of events is what the ranks claim; here nobody looks at it.
"""

from __future__ import annotations

import pytest

from grader.checking import Check, CheckFailed, PerRank
from grader.checking.context import Grading
from grader.world import Launcher
from grader.world.report import Finding
from tests.harness import mutation
from tests.mutants.mutant import Mutant, Variant
from tests.public.runs.pipeline_overlap import watched

SPEC = mutation.checks()["pipeline_parallel.overlap"].spec
PROGRAMS = [mutation.ROOT / "tests/public/programs"]
MUTANTS = {one.name: one for one in mutation.mutants_of("pipeline_parallel")}
EARLY = [
    "no_overlap",
    "prefetch_after_the_computation",
    "no_prefetch_backward",
    "prefetch_waited_for_at_once",
    "send_waited_for_at_once",
    "gradient_send_waited_for_at_once",
    "sends_after_the_next_computation",
]


def made(launcher: Launcher, one: Mutant | Variant) -> Check:
    """The check of overlap, before it runs."""
    return Check(SPEC, Grading(mutation.edited("pipeline_parallel", one), launcher), seed=1, programs=PROGRAMS)


def run(check: Check, size: int) -> None:
    """Its world, and nothing compared."""
    pipelines = watched(check, size)
    sent = [[pipeline.for_rank(rank) for pipeline in pipelines] for rank in range(size)]
    check.run(size, "pipeline_parallel.run", pipelines=PerRank(sent))


@pytest.mark.parametrize("name", EARLY)
def test_who_waits_too_early_is_stuck(name: str, launcher: Launcher) -> None:
    check = made(launcher, MUTANTS[name])
    with pytest.raises(CheckFailed):
        run(check, 2)
    failure = check.ran[-1].failure
    assert failure is not None
    assert failure.report is not None
    assert failure.report.finding is Finding.DEADLOCK


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("variant", mutation.variants_of("pipeline_parallel"), ids=lambda one: one.name)
def test_right_ones_are_not_stuck(variant: Variant, size: int, launcher: Launcher) -> None:
    check = made(launcher, variant)
    run(check, size)
    assert check.ran[-1].failure is None
