"""A submission in the jail can read, write and reach nothing but what a check needs."""

from __future__ import annotations

import os
import platform
import socket
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.jail.syscalls import ARCHITECTURES, FIRST_UNKNOWN, REFUSED
from grader.world import Launcher, World
from tests.harness import hostile
from tests.harness.jailing import launchers, one, works

CHECKOUT = Path(__file__).resolve().parents[2]
INSIDE = ["__init__.py", "given.py", "world"]  # of grader/, by name: nothing else may be added unseen
SECRET = f"the judge's own secret {uuid.uuid4()}"


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    os.environ["JUDGE_SECRET"] = SECRET
    yield from launchers()
    del os.environ["JUDGE_SECRET"]


def sentence(folder: str) -> str:
    """The longest line of a folder's Python files that no file in the jail holds; SECRET where it has none."""
    files = [CHECKOUT / "grader" / name for name in INSIDE]
    inside = [file for path in files for file in (path.rglob("*.py") if path.is_dir() else [path])]
    public = "\n".join(file.read_text() for file in inside)
    lines = (line.strip() for file in (CHECKOUT / folder).rglob("*.py") for line in file.read_text().splitlines())
    return max((line for line in lines if line not in public), key=len, default=SECRET)


def test_no_file_holds_a_sentence_of_what_is_hidden(launcher: Launcher, tmp_path: Path) -> None:
    gradebook = tmp_path / "gradebook.db"
    with sqlite3.connect(gradebook) as database:
        database.execute("create table verdict (student text)")
        database.execute("insert into verdict values (?)", (f"{SECRET} in the gradebook",))
    assert f"{SECRET} in the gradebook".encode() in gradebook.read_bytes()
    assert sentence("reference") != SECRET
    needles = [SECRET, *map(sentence, ("reference", "tests/hidden", "tests/public", "grader/checking"))]
    report = one(launcher, hostile.looks_for, needles=needles)
    assert report["found"] == []
    assert report["files"] > 5000  # it did read torch and the standard library


def test_a_known_sentence_would_be_found(launcher: Launcher) -> None:
    line = Path(CHECKOUT, "grader/world/jail.py").read_text().splitlines()[0]
    report = one(launcher, hostile.looks_for, needles=[line])
    assert {path for path, _ in report["found"]} == {"/harness/grader/world/jail.py"}


def test_what_it_sees_says_nothing_of_the_host(launcher: Launcher) -> None:
    seen = one(launcher, hostile.describes)
    assert SECRET not in str(seen)
    assert str(CHECKOUT) not in str(seen)
    assert str(Path.home()) not in str(seen)
    assert socket.gethostname() not in (seen["host"], *seen["environment"].values())
    assert seen["host"] == "jail"
    assert set(seen["root"]) <= {"dev", "harness", "lib", "lib64", "libs", "packages", "proc", "python", "tmp"}
    assert seen["proc"] == ["cpuinfo"]
    assert seen["devices"] == ["null", "random", "shm", "urandom"]
    assert seen["harness"] == INSIDE
    assert all(folder == [] for folder in seen["other_packages"])
    assert seen["shared_memory"] == []
    assert len(seen["tmp"]) == 1  # its world's own folder
    assert 0 not in seen["ids"]
    # An ordinary user cannot leave its further groups; they reach no file, since only the allow-list is there.
    assert os.getuid() != 0 or seen["groups"] in ([], [65534])


def test_nothing_can_be_written_but_its_own_tmp(launcher: Launcher) -> None:
    written = one(launcher, hostile.writes_everywhere)
    assert sorted(written) == ["/dev/shm", "/tmp"]


def test_a_world_finds_nothing_of_the_one_before(launcher: Launcher) -> None:
    assert one(launcher, hostile.leaves_files)
    seen = one(launcher, hostile.describes)
    assert (len(seen["tmp"]), seen["shared_memory"]) == (1, [])
    assert one(launcher, hostile.occupies_the_network, name="held")
    assert one(launcher, hostile.binds)


def test_it_can_name_no_process_but_its_own(launcher: Launcher) -> None:
    report = one(launcher, hostile.signals_everyone)
    assert report["others"] == []
    assert report["all"] == "nobody"
    works(launcher)


def test_the_judges_sockets_are_out_of_reach(launcher: Launcher) -> None:
    name = f"judge-{uuid.uuid4()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0{name}")
        named.listen()
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()  # from here it can be reached
        reached = one(launcher, hostile.connects, port=port, name=name)
    assert reached == {"loopback": "ECONNREFUSED", "abstract": "ECONNREFUSED", "outside": "ENETUNREACH"}


def test_what_it_does_to_its_descriptors_stays_in_its_world(launcher: Launcher) -> None:
    World(2, launcher=launcher, deadline=10.0).run(hostile.poisons_descriptors)
    works(launcher)


def test_no_privilege_is_left(launcher: Launcher) -> None:
    report = one(launcher, hostile.gives_up_privileges)
    assert report.pop("become root") in ("EPERM", "EINVAL")  # EINVAL: in this namespace there is no root
    assert report == {
        "held": [0] * 6,
        "bounding": [],
        "no new privileges": 1,
        "seccomp": 2,
        "device": "EPERM",
    }


def test_refused_system_calls_are_refused(launcher: Launcher) -> None:
    column = ARCHITECTURES[platform.machine()].column
    numbers = {name: pair[column] for name, pair in REFUSED.items() if pair[column] is not None}
    answers = one(launcher, hostile.calls, numbers=numbers)
    assert answers == dict.fromkeys(numbers, "EPERM")
    unknown = {str(number): number for number in (FIRST_UNKNOWN, FIRST_UNKNOWN + 1, 0x40000000 + 101)}
    answers = one(launcher, hostile.calls, numbers=unknown)
    assert answers == dict.fromkeys(unknown, "ENOSYS")


def test_calls_are_refused_by_their_arguments(launcher: Launcher) -> None:
    answers = one(launcher, hostile.calls_with_arguments)
    allowed = {"routes": "", "unix": "", "threads": ""}
    refused = ("user namespace", "raw", "kernel crypto", "internet 6", "netfilter")
    assert answers == {**dict.fromkeys(refused, "EPERM"), **allowed}
