"""A submission in the jail can use up no more than its share, and leaves nothing running."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.jail.bubblewrap import LIMITS
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


def test_wait_returns_when_all_inside_is_gone() -> None:
    jail = working_jail()
    form = next(trial.form for trial in jail.trials if trial.works)
    reader, writer = os.pipe()
    run = "jail-test-wait"
    # Fifty daemons in sessions of their own; the pipe ends when the last of them has gone.
    code = (
        "import os, time\n"
        "for _ in range(50):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(60)\n"
        "        os._exit(0)\n"
        f"os.write({writer}, b'started')\n"
        "time.sleep(60)\n"
    )
    process = jail.launch(form, code, keep=[writer], run_id=run)
    with process:
        os.close(writer)
        assert os.read(reader, 100) == b"started"
        process.kill()
        process.wait(timeout=20)
        os.set_blocking(reader, False)
        assert os.read(reader, 100) == b""
        assert processes_of(run) == []
    assert not process.command_ran
    os.close(reader)


def test_wait_can_give_up() -> None:
    jail = working_jail()
    form = next(trial.form for trial in jail.trials if trial.works)
    with jail.launch(form, "import time; time.sleep(60)", run_id="jail-test-timeout") as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.05)
        process.kill()


JUDGE = """
import os, time
from grader.jail import Bubblewrap
jail = Bubblewrap()
form = next(trial.form for trial in jail.trials if trial.works)
jail.launch(form, "import os, time; os.write({writer}, b'inside'); time.sleep(60)", keep=[{writer}], run_id="{run}")
time.sleep(60)
"""


def test_a_jail_dies_with_the_judge() -> None:
    working_jail()
    run = "jail-test-judge"
    reader, writer = os.pipe()
    code = JUDGE.format(writer=writer, run=run)
    with subprocess.Popen([sys.executable, "-c", code], pass_fds=[writer]) as judge:
        os.close(writer)
        assert os.read(reader, 100) == b"inside"
        assert processes_of(run)
        judge.kill()
    assert os.read(reader, 100) == b""
    assert settles(run, [])
    os.close(reader)


def test_the_kernel_takes_the_jail_first(launcher: Launcher) -> None:
    for pid in jail_alone(launcher, run_id()):
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) == 1000
