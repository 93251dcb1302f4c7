"""Right programs that few would write are not blamed; each of these once was."""

from __future__ import annotations

import pytest

from grader.world import Launcher, World, world
from tests.harness import programs_unusual
from tests.harness.traced import failed, returned

ONES = [1.0, 1.0, 1.0]


@pytest.mark.parametrize("threaded", [[], [0], [1], [0, 1]])
def test_a_receive_from_any_rank_beside_threads(threaded: list[int], launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs_unusual.receives_from_any, threaded=threaded))
    assert outcome.values == [[[1, ONES]], [[0, ONES]]]


@pytest.mark.parametrize("threaded", [[], [0], [1], [0, 1]])
def test_asking_beside_threads(threaded: list[int], launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs_unusual.asks_and_sends_meanwhile, threaded=threaded))
    assert outcome.values[0] == [ONES]


def test_orders_wait_for_a_rank_that_computes(launcher: Launcher) -> None:
    count = 1000  # more than its socket holds
    outcome = returned(World(2, launcher=launcher).run(programs_unusual.computes_meanwhile, count=count))
    assert outcome.values == [[[2.0 * number for number in range(count)]]] * 2


def test_futures_of_several_operations(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs_unusual.waits_for_futures))
    sums = [[2.0 * number] * 2 for number in range(3)]
    assert outcome.values == [[(sums, [[2 * each for each in row] for row in sums])]] * 2
    assert returned(World(1, launcher=launcher).run(programs_unusual.futures_of_errors)).values == [["of a future"]]


def test_a_send_that_a_thread_waits_for_in_vain(launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher).run(programs_unusual.leaves_a_send_to_a_thread))
    assert failure.report is not None
    assert failure.report.sentence == (
        "all ranks have returned, and the send to rank 1 of rank 0 has never met its other side"
    )


def test_a_world_that_ends_a_moment_after_its_deadline(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "SETTLE_SECONDS", 10.0)
    outcome = returned(World(1, launcher=launcher, deadline=0.5).run(programs_unusual.ends_late, seconds=1.0))
    assert outcome.values == [[True]]
