"""What a program of ours does beside the submission on the traced group: marks, holds, threads; and slow ranks."""

from __future__ import annotations

import torch

from grader.checking.explain import explain
from grader.world import Doing, Launcher, World
from tests.harness import programs_held
from tests.harness.traced import failed, plain, returned, same


def test_a_held_rank_goes_on_when_the_other_has_come_so_far(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher, deadline=None).run(programs_held.holds, blocks=False))
    assert same([plain(values[0]) for values in outcome.values], [torch.ones(2)] * 2)
    told = [event.doing for event in outcome.trace.of(0)]
    assert told == [Doing.FORM, Doing.ISSUE, Doing.MARK, Doing.WAIT]
    assert [event.name for event in outcome.trace.of(1) if event.doing is Doing.HOLD] == ["computed"]


def test_who_waits_before_it_has_come_so_far_is_found_at_once(launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher, deadline=None).run(programs_held.holds, blocks=True))
    told = explain(failure, world_size=2).explanation
    assert told.rationale.startswith("rank 0 waits in all_reduce of the check's own before it has computed; rank 1 ")
    assert "async_op=True" in told.help
    assert failure.seconds < 10


def test_handles_may_be_excused(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher, deadline=None).run(programs_held.interrupted, excused=True))
    assert same(plain(outcome.values[1][0]), torch.ones(2))
    failure = failed(World(2, launcher=launcher, deadline=None).run(programs_held.interrupted, excused=False))
    assert failure.report is not None
    assert failure.report.sentence == "rank 0 never waits for the handle of its isend to rank 1"


def test_threads_of_a_rank_may_use_a_group_each(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs_held.threads))
    for values in outcome.values:
        assert [tensor.tolist() for tensor in plain(values[0])] == [[16.0] * 2, [48.0] * 2]


def test_two_threads_may_wait_for_one_handle(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs_held.waits_in_two_threads))
    for values in outcome.values:
        assert [tensor.tolist() for tensor in plain(values[0])] == [[1.0] * 2] * 2


def test_a_slow_rank_is_never_called_stuck(launcher: Launcher) -> None:
    outcome = returned(World(4, launcher=launcher, deadline=None).run(programs_held.slow, seconds=1.0))
    assert outcome.values == [[rank] for rank in range(4)]
    assert outcome.seconds > 1.0
