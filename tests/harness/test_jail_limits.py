"""A submission in the jail can use up no more than its share, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from grader.jail.bubblewrap import LIMITS
from grader.jail.process import JailedProcess
from grader.world import Failure, Launcher, World
from grader.world.launcher import run_id
from tests.harness import hostile
from tests.harness.jailing import jail_alone, launchers, one, processes_of, settles, values, working_jail, works


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    yield from launchers()


def test_processes_and_threads_are_bounded(launcher: Launcher) -> None:
    report = one(launcher, hostile.forks_and_threads)
    assert report["forks"]["error"] == "EAGAIN"
    assert 64 < report["forks"]["count"] < LIMITS["NPROC"]
    assert 64 < report["threads"] < LIMITS["NPROC"]


def test_every_way_to_memory_is_bounded(launcher: Launcher) -> None:
    assert one(launcher, hostile.allocates) == {
        "tensor": "RuntimeError",
        "bytes": "MemoryError",
        "shared": "EPERM",
        "memory file": "EPERM",
        "disk": "ENOSPC",
        "shared memory": "ENOSPC",
        "many files": "ENOSPC",
        "descriptors": "EMFILE",
        "raise a limit": "ValueError",
        "limit the warden": "EPERM",
        "zeros": False,
    }


def test_one_file_is_bounded(launcher: Launcher) -> None:
    assert one(launcher, hostile.writes_a_large_file) in ("EFBIG", "ENOSPC")


def test_a_fork_bomb_ends_with_its_world(launcher: Launcher) -> None:
    before = jail_alone(launcher, run_id())
    outcome = World(2, launcher=launcher, joined=False, deadline=3.0).run(hostile.bombs)
    assert isinstance(outcome, Failure)
    assert outcome.stuck
    assert settles(run_id(), before)
    works(launcher)


def test_daemons_die_with_their_world(launcher: Launcher) -> None:
    before = jail_alone(launcher, run_id())
    assert values(World(2, launcher=launcher).run(hostile.stays_behind, seconds=60))
    assert settles(run_id(), before)


# Fifty daemons in sessions of their own; the pipe ends when the last of them has gone.
DAEMONS = """
import os, time
for _ in range(50):
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
os.write({writer}, b"started")
time.sleep(60)
"""


@pytest.mark.parametrize("whole", [True, False], ids=["kill", "bubblewrap alone is killed"])
def test_wait_returns_when_all_inside_is_gone(whole: bool) -> None:
    run = f"jail-test-wait-{whole}"
    reader, writer = os.pipe()
    with launched(DAEMONS.format(writer=writer), keep=[writer], run=run) as process:
        os.close(writer)
        assert os.read(reader, 100) == b"started"
        assert len(processes_of(run)) > 50
        if whole:
            process.kill()
        else:
            os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=20)
        os.set_blocking(reader, False)
        assert os.read(reader, 100) == b""
        assert processes_of(run) == []
    assert not process.command_ran
    os.close(reader)


def launched(code: str, *, run: str, keep: Sequence[int] = ()) -> JailedProcess:
    jail = working_jail()
    form = next(trial.form for trial in jail.trials if trial.works)
    return jail.launch(form, code, keep=keep, run_id=run)


def test_wait_can_give_up_and_kill_works_at_once() -> None:
    run = "jail-test-timeout"
    with launched("import time; time.sleep(60)", run=run) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)
        process.kill()
        assert settles(run, [])
        process.wait(timeout=20)


def test_an_exit_code_comes_out() -> None:
    with launched("sys.exit(7)", run="jail-test-exit") as process:
        assert process.wait(timeout=20) == 7
    assert process.command_ran


# A judge that is killed so many milliseconds after it began to start a jail; None: as soon as the jail is there.
JUDGE = """
import os, signal, time
from grader.jail import Bubblewrap
jail = Bubblewrap()
form = next(trial.form for trial in jail.trials if trial.works)
for delay in (None, 0, 2, 4, 6, 8, 10, 15, 20, 30, 50):
    reader, writer = os.pipe()
    judge = os.fork()
    if judge == 0:
        jail.launch(form, "import time; time.sleep(60)", run_id="{run}")
        os.write(writer, b"there")
        time.sleep(60)
    if delay is None:
        os.read(reader, 10)
    else:
        time.sleep(delay / 1000)
    os.kill(judge, signal.SIGKILL)
    os.waitpid(judge, 0)
"""


def test_a_jail_ends_with_the_judge_at_whatever_moment() -> None:
    working_jail()
    run = "jail-test-judge"
    subprocess.run([sys.executable, "-c", JUDGE.format(run=run)], check=True)
    assert settles(run, [])


def test_a_jail_outlives_the_thread_that_made_it() -> None:
    made: list[JailedProcess] = []
    thread = threading.Thread(
        target=lambda: made.append(launched("import time; time.sleep(60)", run="jail-test-thread"))
    )
    thread.start()
    thread.join()
    with made[0] as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.3)
        process.kill()


def test_the_kernel_takes_the_jail_first(launcher: Launcher) -> None:
    for pid in jail_alone(launcher, run_id()):
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == 1000
