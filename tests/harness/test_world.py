"""Worlds on real processes: what they return, how they fail, and that nothing of them is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from grader.world import Failure, Foreign, Kind, Launcher, PerRank, Returned, Submitted, World
from grader.world.launcher import run_id
from grader.world.record import MAX_OUTPUT
from tests.harness import programs
from tests.harness.leftovers import processes_of

SHORT = 4.0


def returned(outcome: Returned | Failure) -> Returned:
    assert isinstance(outcome, Returned), str(outcome)
    return outcome


def failed(outcome: Returned | Failure) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_values_come_back_by_rank(size: int, launcher: Launcher) -> None:
    own = PerRank([10.0 * rank for rank in range(size)])
    outcome = returned(World(size, launcher=launcher).run(programs.sum_of_ranks, own=own))
    ranks = sum(range(size))
    for rank in range(size):
        total, rest = outcome.values[rank]
        assert torch.equal(total.tensor, torch.tensor([float(ranks), 10.0 * ranks]))
        assert rest == {"size": size, "nested": [(1, None, True), "text", 0.5, float("inf")]}
        assert outcome.output[rank] == f"rank {rank} is done\n"


def test_a_world_needs_a_rank() -> None:
    with pytest.raises(ValueError, match="at least one rank"):
        World(0)


def test_the_rank_that_raises_is_the_cause_and_the_others_are_named(launcher: Launcher) -> None:
    failure = failed(World(3, launcher=launcher).run(programs.raises_on_last))
    assert (failure.cause.rank, failure.cause.error_type, failure.stuck) == (2, "ValueError", False)
    assert failure.cause.frames[-1].function == "raises_on_last"
    assert [(one.rank, one.kind) for one in failure.others] == [(0, Kind.UNFINISHED), (1, Kind.UNFINISHED)]
    assert all(one.frames for one in failure.others), "a rank that waits shows where"


def test_a_failure_tells_the_case_that_was_under_way(launcher: Launcher) -> None:
    assert failed(World(2, launcher=launcher).run(programs.raises_in_second_case)).cause.finished == 1


@pytest.mark.parametrize(
    ("how", "headline"),
    [
        ("os._exit", "rank 1 left the interpreter with exit code 7"),
        ("sys.exit", "rank 1 raised SystemExit: 3"),
        ("SIGSEGV", "rank 1 was killed by SIGSEGV"),
        ("SIGABRT", "rank 1 was killed by SIGABRT"),
        ("SIGKILL", "rank 1 was killed by SIGKILL"),
    ],
)
def test_the_rank_that_leaves_is_the_cause_whoever_is_heard_first(how: str, headline: str, launcher: Launcher) -> None:
    failure = failed(World(4, launcher=launcher).run(programs.leaves, rank=1, how=how))
    assert failure.cause.headline() == headline
    assert not failure.stuck
    if how != "SIGKILL":
        assert any(frame.function == "leaves" for frame in failure.cause.frames), "the line is known"


def test_shapes_that_differ_never_reach_gloo_which_would_abort(launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher, deadline=None).run(programs.aborts_by_shapes))
    assert failure.cause.headline() == (
        "ranks 0 and 1 disagree on the shape of all_reduce: (1,) on rank 0, (1000,) on rank 1"
    )


def test_ranks_that_wait_for_each_other_need_no_deadline(launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher, deadline=None).run(programs.both_send_first))
    assert failure.cause.message.startswith("ranks 0 and 1 wait for each other: rank 0 waits in send to rank 1")


def test_a_world_that_never_ends_is_ended_by_its_deadline_and_says_where_each_rank_is(launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher, deadline=SHORT).run(programs.never_ends))
    assert failure.stuck
    waiting = (failure.cause, *failure.others)
    assert sorted(one.rank for one in waiting) == [0, 1]
    for one in waiting:
        assert any(frame.function == "never_ends" for frame in one.frames), failure.text(everything=True)


def test_a_slow_rank_is_not_stuck(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs.is_slow, seconds=1.0))
    assert outcome.values == [[0], [1]]


def test_output_is_bounded_and_printable(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs.prints, lines=5000))
    for text in outcome.output:
        assert len(text) < MAX_OUTPUT + 100
        assert text.endswith("more bytes)")
    short = returned(World(1, launcher=launcher).run(programs.prints, lines=1)).output[0]
    assert "\\x1b[31mred\\x07" in short
    assert "\x1b" not in short


def test_endless_output_is_stopped(launcher: Launcher) -> None:
    failure = failed(World(1, launcher=launcher).run(programs.prints, lines=10**9))
    assert "printed more than" in failure.cause.message


def test_only_the_frames_of_the_submission_are_shown(launcher: Launcher) -> None:
    source = b"import torch\n\n\ndef sum_of_ranks(here):\n    raise KeyError(torch.zeros(2).sum())\n"
    world = World(1, launcher=launcher, submission=Submitted("mine", source, "work/mine.py"))
    failure = failed(world.run(programs.calls_submission))
    assert failure.text().splitlines()[1:] == [
        "  work/mine.py:5 in sum_of_ranks: raise KeyError(torch.zeros(2).sum())",
    ]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (b"import sys\nsys.exit(0)\n", "SystemExit"),
        (b"def broken(:\n", "SyntaxError"),
        (b"x = '\xff'\n", "SyntaxError"),
        (b"x = 1 / 0\n", "ZeroDivisionError"),
        (b"import assignment.collectives\n", "ModuleNotFoundError"),
        (b"x = '\0'\n", "SyntaxError"),
    ],
)
def test_a_module_that_does_not_import(source: bytes, kind: str, launcher: Launcher) -> None:
    world = World(1, launcher=launcher, submission=Submitted("mine", source, "mine.py"), joined=False)
    failure = failed(world.run(programs.unjoined))
    assert (failure.cause.phase, failure.cause.error_type) == ("import", kind)


def test_an_import_that_never_ends(launcher: Launcher) -> None:
    mine = Submitted("mine", b"import time\ntime.sleep(600)\n", "mine.py")
    failure = failed(World(1, launcher=launcher, submission=mine, deadline=1.0).run(programs.unjoined))
    assert failure.stuck
    assert failure.cause.phase == "import"
    assert failure.cause.frames[-1].line == 2


def test_unjoined_ranks_may_meet_by_themselves(launcher: Launcher) -> None:
    assert returned(World(2, launcher=launcher, joined=False).run(programs.unjoined)).values == [[False], [False]]
    outcome = returned(World(3, launcher=launcher, joined=False).run(programs.own_group))
    assert all(torch.equal(values[0].tensor, torch.tensor([3])) for values in outcome.values)


def test_sub_groups(launcher: Launcher) -> None:
    outcome = returned(World(4, launcher=launcher).run(programs.sub_group))
    assert [values[0] is None for values in outcome.values] == [True, False, True, False]
    assert torch.equal(outcome.values[3][0].tensor, torch.tensor([4]))


@pytest.mark.parametrize("how", ["noise", "huge", "no object", "unknown event", "malformed values", "malformed error"])
def test_what_no_rank_says_is_refused(how: str, launcher: Launcher) -> None:
    failure = failed(World(1, launcher=launcher, deadline=SHORT).run(programs.writes_garbage, how=how))
    assert failure.cause.kind is Kind.RAISED if how == "malformed error" else Kind.REFUSED


def test_a_tensor_subclass_does_not_cross(launcher: Launcher) -> None:
    outcome = returned(World(1, launcher=launcher).run(programs.returns_a_liar))
    assert outcome.values == [[Foreign("program.Liar")]]


def test_messages_of_errors_are_bounded_and_printable(launcher: Launcher) -> None:
    assert "cannot be read" in failed(World(1, launcher=launcher).run(programs.raises_unprintable)).cause.message
    huge = failed(World(1, launcher=launcher).run(programs.raises_huge)).cause.message
    assert len(huge) < 3000
    deep = failed(World(1, launcher=launcher).run(programs.recurses)).cause
    assert deep.error_type == "RecursionError"
    assert len(deep.frames) <= 30


@pytest.mark.parametrize("program", [programs.closes_everything, programs.stops_itself])
def test_a_rank_that_cannot_answer_is_ended_all_the_same(program, launcher: Launcher) -> None:
    failure = failed(World(2, launcher=launcher, deadline=1.5).run(program))
    assert failure.cause.rank in (0, 1)


def test_attempt_takes_errors_as_values(launcher: Launcher) -> None:
    wrong, right = returned(World(1, launcher=launcher).run(programs.attempts)).values[0][0]
    assert wrong["raised"][:2] == ["KeyError", "LookupError"]
    assert right == {"value": 7}


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to count processes")
def test_nothing_of_a_world_is_left() -> None:
    others = set(processes_of(run_id()))
    with Launcher() as launcher:
        run, _, threads = returned(World(1, launcher=launcher).run(programs.environment)).values[0][0]
        assert threads == 1
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  a count of descriptors
        for program in (
            programs.leaves_a_daemon,
            programs.leaves_files,
            programs.never_ends,
            programs.closes_everything,
        ):
            World(2, launcher=launcher, deadline=1.5).run(program)
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
        assert set(processes_of(run)) - others == {launcher.pid}
    assert set(processes_of(run)) - others == set()


def test_files_of_a_world_are_removed(launcher: Launcher) -> None:
    outcome = returned(World(2, launcher=launcher).run(programs.leaves_files))
    assert not any(Path(values[0]).parent.exists() for values in outcome.values)


def test_a_closed_launcher_starts_again() -> None:
    launcher = Launcher()
    for _ in range(2):
        assert returned(World(1, launcher=launcher).run(programs.unjoined)).values
        launcher.close()
