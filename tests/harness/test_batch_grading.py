"""A batch from end to end with judges that play a part: resumption, death half way, interruption, clean-up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grader.batch.clerk import View, outcome
from grader.batch.gradebook import FILE_NAME, Book, Run, read
from grader.batch.grading import Batch, grade
from grader.batch.queue import Case
from grader.batch.schema import GradebookError
from grader.batch.submission import Submission
from grader.checking.verdict import Status
from tests.harness.batch_parts import CHECKS, SilentView, court, part, plays, verdict

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = [spec.name for spec in CHECKS]


class Recorder:
    """A view that remembers."""

    def __init__(self) -> None:
        self.verdicts = 0
        self.lines: list[tuple[str, bool]] = []

    def fell(self) -> None:
        self.verdicts += 1

    def closed(self, line: str, *, broken: bool) -> None:
        self.lines.append((line, broken))


def batch(folder: Path, submissions: Sequence[Submission], *, jobs: int = 2, **options: float) -> Batch:
    return Batch(
        submissions,
        CHECKS,
        "set-1",
        folder / "out",
        court(folder, log=folder / "log", **options),  # type: ignore[arg-type]
        Run("run-1", "none", 600.0, "0.1.0"),
        jobs,
    )


def graded(folder: Path, submissions: Sequence[Submission], *, view: View | None = None, **options: float) -> Book:
    seen = view if view is not None else SilentView()
    return grade(
        batch(folder, submissions, **options),  # type: ignore[arg-type]
        watch=lambda _: contextlib.nullcontext(seen),
        publish=lambda _: None,
    )


def judged(folder: Path) -> list[tuple[str, list[str]]]:
    """Which judges were started: the submission and the checks."""
    if not (folder / "log").exists():
        return []
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    (folder / "log").unlink()
    return [(line["name"], line["checks"]) for line in lines]


def statuses(book: Book) -> dict[str, list[Status]]:
    return {one.name: [one.verdicts[name].status for name in NAMES] for one in book.submissions}


def test_every_submission_gets_every_verdict(tmp_path: Path) -> None:
    parts = [
        plays("ada"),
        plays("bob", act="die", at=NAMES[3]),
        Submission("eve", {}, ("it is empty",), ""),
        plays("joe", status={NAMES[0]: "fail", NAMES[1]: "crash"}),
    ]
    view = Recorder()
    book = graded(tmp_path, parts, view=view)
    assert statuses(book) == {
        "ada": [Status.PASS] * 12,
        "bob": [Status.PASS] * 3 + [Status.INFRA] * 9,
        "eve": [Status.PASS] * 12,
        "joe": [Status.FAIL, Status.CRASH] + [Status.PASS] * 10,
    }
    assert view.verdicts == 48
    assert sorted(line.split(" (")[0] for line, _ in view.lines) == [
        "ada: 12 pass",
        "bob: 3 pass, 9 infra: No verdict: the judge ended",
        "eve: 12 pass",
        "joe: 10 pass, 1 fail, 1 crash",
    ]
    assert [broken for line, broken in view.lines if line.startswith("bob")] == [True]


def test_no_more_judges_at_a_time_than_jobs(tmp_path: Path) -> None:
    busy: list[int] = []

    class Counter(Recorder):
        def closed(self, line: str, *, broken: bool) -> None:
            super().closed(line, broken=broken)
            (stage,) = (tmp_path / "tmp").glob("grader-batch-*")
            busy.append(len(list(stage.iterdir())))

    with private_tmp(tmp_path):
        graded(tmp_path, [plays(name) for name in "abcdefg"], view=Counter(), jobs=3)
    assert max(busy) <= 3
    assert len(busy) == 7


@contextlib.contextmanager
def private_tmp(folder: Path) -> Iterator[None]:
    """Temporary folders of this process go below `folder`."""
    (folder / "tmp").mkdir(exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(folder / "tmp")
    try:
        yield
    finally:
        tempfile.tempdir = before


def test_a_second_run_judges_only_what_is_open(tmp_path: Path) -> None:
    parts = [plays("ada"), plays("bob", act="exit", at=NAMES[10]), plays("eve")]
    graded(tmp_path, parts)
    assert sorted(judged(tmp_path)) == [("ada", NAMES), ("bob", NAMES), ("eve", NAMES)]
    parts[1] = replace(parts[1], origin="moved")
    parts[2] = replace(parts[2], files={"collectives.py": part(), "benchmark.py": b"new"})
    parts.append(plays("joe"))
    book = graded(tmp_path, parts)
    assert sorted(judged(tmp_path)) == [("bob", NAMES[10:]), ("eve", NAMES), ("joe", NAMES)]
    assert [one.name for one in book.submissions] == ["ada", "bob", "eve", "joe"]


def test_when_nothing_is_open_no_judge_is_called(tmp_path: Path) -> None:
    first = graded(tmp_path, [plays("ada")])
    judged(tmp_path)

    def watch(_: Sequence[Case]) -> contextlib.AbstractContextManager[View]:
        pytest.fail("there is nothing to watch")

    assert grade(batch(tmp_path, [plays("ada")]), watch=watch, publish=lambda _: None) == first
    assert judged(tmp_path) == []


def test_fresh_judges_all_anew(tmp_path: Path) -> None:
    graded(tmp_path, [plays("ada"), plays("bob")])
    judged(tmp_path)
    anew = replace(batch(tmp_path, [plays("ada")]), fresh=True, digest="set-2")
    book = grade(anew, watch=lambda _: contextlib.nullcontext(SilentView()), publish=lambda _: None)
    assert judged(tmp_path) == [("ada", NAMES)]
    assert [one.name for one in book.submissions] == ["ada"]


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path) -> None:
    with private_tmp(tmp_path):
        graded(tmp_path, [plays("ada"), plays("bob", act="die", at=NAMES[0])])
        assert not list((tmp_path / "tmp").iterdir())


def test_a_gradebook_that_fails_stops_the_judges_and_is_told(tmp_path: Path) -> None:
    class Broken(Recorder):
        def fell(self) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        graded(tmp_path, [plays("ada", act="hang", at=NAMES[1]), plays("bob", act="hang", at=NAMES[1])], view=Broken())
    pids = [json.loads(line)["pid"] for line in (tmp_path / "log").read_text().splitlines()]
    assert pids
    assert not any(alive(pid) for pid in pids)


# The grader as a process of its own


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Returns when the condition holds; fails if it does not in time."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.02)


HANGING: Mapping[str, Mapping[str, object]] = {
    "ada": {"status": {NAMES[2]: "fail"}},
    "bob": {"act": "hang", "at": NAMES[5], "status": {NAMES[7]: "timeout"}},
    "eve": {"act": "hang", "at": NAMES[0]},
    "joe": {"status": {NAMES[1]: "crash"}},
}


def started(folder: Path, *, gate: str = "gate") -> subprocess.Popen[bytes]:
    (folder / "tmp").mkdir(exist_ok=True)
    environment = os.environ | {
        "GRADER_RUN": "run-of-a-test",
        "FAKE_GATE": str(folder / gate),
        "TMPDIR": str(folder / "tmp"),
    }
    command = [sys.executable, "-m", "tests.harness.fake_grader", folder / "out", folder / "log", json.dumps(HANGING)]
    # A shell that runs the tests in its background has them ignore Ctrl-C, and what they start with them.
    return subprocess.Popen(command, cwd=ROOT, env=environment, preexec_fn=heed_ctrl_c)


def heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def hangs(folder: Path) -> Callable[[], bool]:
    """Whether `bob` has all the verdicts that come before he hangs, and `eve`'s judge is there."""

    def condition() -> bool:
        try:
            found = {one.name: one.verdicts for one in read(folder / "out" / FILE_NAME).submissions}
        except GradebookError:
            return False
        return len(found.get("bob", {})) == 5 and '"eve"' in (folder / "log").read_text()

    return condition


def views(folder: Path) -> dict[str, bytes]:
    """Everything that is derived from the gradebook."""
    out = folder / "out"
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.suffix in (".csv", ".md", ".json")
    }


@pytest.fixture(name="undisturbed", scope="module")
def undisturbed_fixture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The views of a run in which nothing hangs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "gate").touch()
    assert started(folder).wait(60) == 0
    return views(folder)


def test_killed_half_way_and_started_again_is_as_undisturbed(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    grader = started(tmp_path)
    until(hangs(tmp_path))
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    until(lambda: not any(alive(line["pid"]) for line in log))  # their lifeline is gone
    assert views(tmp_path) == {}
    (tmp_path / "gate").touch()
    (tmp_path / "log").unlink()
    assert started(tmp_path).wait(60) == 0
    again = dict(judged(tmp_path))
    assert again["bob"] == NAMES[5:], "at most the check under way is lost"
    assert "ada" not in again
    assert views(tmp_path) == undisturbed
    assert not list((tmp_path / "tmp").iterdir()), "what the killed one had staged is gone too"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_judges_and_keeps_what_is_there(
    number: signal.Signals, code: int, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    grader = started(tmp_path)
    until(hangs(tmp_path))
    grader.send_signal(number)
    assert grader.wait(60) == code
    log = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert not any(alive(line["pid"]) for line in log)
    assert not list((tmp_path / "tmp").iterdir())
    (tmp_path / "gate").touch()
    assert started(tmp_path).wait(60) == 0
    assert views(tmp_path) == undisturbed


def test_a_second_grader_is_turned_away(tmp_path: Path) -> None:
    grader = started(tmp_path)
    until(hangs(tmp_path))
    with pytest.raises(GradebookError, match=f"process {grader.pid}"):
        graded(tmp_path, [plays("ada")])
    grader.send_signal(signal.SIGTERM)
    grader.wait(60)


def test_the_line_of_a_submission() -> None:
    assert outcome([verdict(NAMES[0]), verdict(NAMES[1], Status.TIMEOUT), verdict(NAMES[2])]) == "2 pass, 1 timeout"
