"""One judge: whatever becomes of it, each check gets exactly one verdict, and no process is left."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from grader.batch.judge import MAX_OUTPUT_BYTES, Court, PytestCommand, judge, judge_environment
from grader.batch.submission import Submission
from grader.checking.selection import Selection
from grader.checking.verdict import Status, Verdict
from tests.harness.batch_parts import CHECKS, court, part, plays

FIRST, SECOND = CHECKS[0].name, CHECKS[1].name


def judged(submission: Submission, folder: Path, **options: float) -> list[Verdict]:
    """All verdicts of one fake judge, in the order in which they fell; afterwards the judge is gone."""
    log = folder / "log"
    work = folder / "work"
    work.mkdir()
    verdicts: list[Verdict] = []
    asyncio.run(
        judge(
            submission,
            CHECKS,
            folder=work,
            court=court(folder, log=log, **options),  # type: ignore[arg-type]
            record=verdicts.append,
        )
    )
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(log.read_text())["pid"], 0)
    return verdicts


def test_each_verdict_arrives_as_the_judge_gave_it(tmp_path: Path) -> None:
    verdicts = judged(plays("ada", status={SECOND: "timeout"}), tmp_path)
    assert [verdict.check for verdict in verdicts] == [spec.name for spec in CHECKS]
    assert [verdict.status for verdict in verdicts[:3]] == [Status.PASS, Status.TIMEOUT, Status.PASS]
    assert verdicts[1].explanation is not None
    assert (verdicts[1].explanation.rationale, verdicts[1].seed) == (f"{SECOND} says timeout", 2**63 + 7)


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        ("die", f"the judge ended (killed by SIGKILL) while {SECOND} was under way"),
        ("exit", f"the judge ended (exit code 7) while {SECOND} was under way"),
        ("torn", f"the judge ended (exit code 1) while {SECOND} was under way"),
        ("garble", "the judge said what cannot be understood (JSONDecodeError"),
        ("lie", "the judge said what cannot be understood (KeyError"),
        ("endless_line", "the judge said what cannot be understood (ValueError"),
    ],
)
def test_a_judge_that_breaks_leaves_the_rest_to_be_judged_again(act: str, reason: str, tmp_path: Path) -> None:
    verdicts = judged(plays("ada", act=act, at=SECOND), tmp_path, grace=0.5)
    assert [verdict.check for verdict in verdicts] == [spec.name for spec in CHECKS]
    assert [verdict.status for verdict in verdicts] == [Status.PASS] + [Status.INFRA] * 11
    explanation = verdicts[1].explanation
    assert explanation is not None
    assert reason in explanation.rationale
    assert (verdicts[1].points, verdicts[1].possible) == (0, 5)


def test_the_last_words_of_a_broken_judge_are_kept(tmp_path: Path) -> None:
    verdicts = judged(plays("ada", act="die", at=SECOND), tmp_path)
    assert verdicts[1].output == "the judge's last words\n"
    assert verdicts[0].output == ""


def test_verdicts_stand_where_only_the_last_word_is_missing(tmp_path: Path) -> None:
    verdicts = judged(plays("ada", act="mute"), tmp_path)
    assert {verdict.status for verdict in verdicts} == {Status.PASS}, "every check has its verdict all the same"


def test_a_judge_that_lingers_after_its_last_word_is_ended(tmp_path: Path) -> None:
    began = time.monotonic()
    verdicts = judged(plays("ada", act="linger"), tmp_path, grace=0.2)
    assert {verdict.status for verdict in verdicts} == {Status.PASS}
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("act", ["hang", "stubborn"])
def test_a_judge_past_its_deadline_says_where_it_is_and_is_killed(act: str, tmp_path: Path) -> None:
    verdicts = judged(plays("ada", act=act, at=SECOND), tmp_path, deadline=1.5, grace=0.5)
    assert [verdict.status for verdict in verdicts] == [Status.PASS] + [Status.INFRA] * 11
    explanation = verdicts[1].explanation
    assert explanation is not None
    assert "still at work after 1.5 seconds" in explanation.rationale
    assert ("fake_judge.py" in verdicts[1].output) == (act == "hang"), "the stack of one that can tell"
    assert not list(tmp_path.glob("core*"))


def test_a_flood_is_read_and_bounded(tmp_path: Path) -> None:
    verdicts = judged(plays("ada", act="flood", at=FIRST), tmp_path)
    assert {verdict.status for verdict in verdicts} == {Status.PASS}
    assert 16 * MAX_OUTPUT_BYTES < 2000 * 1024, "more than a pipe holds, so an unread one would block"


def test_a_child_that_outlives_the_judge_does_not_hold_up_the_batch(tmp_path: Path) -> None:
    began = time.monotonic()
    verdicts = judged(plays("ada", act="leak", at=SECOND), tmp_path, grace=0.3)
    assert [verdict.status for verdict in verdicts] == [Status.PASS] + [Status.INFRA] * 11
    assert time.monotonic() - began < 30


def test_a_judge_that_cannot_start_is_the_graders_fault(tmp_path: Path) -> None:
    def nothing(**_: object) -> list[str]:
        return [str(tmp_path / "no-such-program")]

    verdicts: list[Verdict] = []
    broken = Court(nothing, tmp_path, {}, 10.0)  # type: ignore[arg-type]
    asyncio.run(judge(plays("ada"), CHECKS, folder=tmp_path, court=broken, record=verdicts.append))
    assert {verdict.status for verdict in verdicts} == {Status.INFRA}


def test_a_cancelled_judge_is_gone_and_records_no_more(tmp_path: Path) -> None:
    log = tmp_path / "log"
    (tmp_path / "work").mkdir()
    verdicts: list[Verdict] = []

    async def cancel_at_the_first_verdict() -> None:
        fell = asyncio.Event()

        def record(verdict: Verdict) -> None:
            verdicts.append(verdict)
            fell.set()

        running = asyncio.create_task(
            judge(
                plays("ada", act="hang", at=SECOND),
                CHECKS,
                folder=tmp_path / "work",
                court=court(tmp_path, log=log),
                record=record,
            )
        )
        await fell.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel_at_the_first_verdict())
    assert [verdict.check for verdict in verdicts] == [FIRST]
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(log.read_text())["pid"], 0)


def test_the_judge_gets_the_expected_files_alone(tmp_path: Path) -> None:
    """Seen from inside: which files are staged, which descriptors are open, and what the environment holds."""
    look = """
import json, os, sys
print(json.dumps({
    "files": sorted(os.listdir(sys.argv[3])),
    "tmp": os.environ["TMPDIR"],
    "run": os.environ["GRADER_RUN"],
    "cwd": os.getcwd(),
    "stdin": sys.stdin.read(),
    "fds": [fd for fd in range(64) if os.path.exists(f"/dev/fd/{fd}")],
    "session": os.getsid(0) == os.getpid(),
}))
sys.exit(1)
"""

    def command(*, staged: Path, verdicts: int, lifeline: int, **_: object) -> list[str]:
        return [sys.executable, "-I", "-c", look, str(verdicts), str(lifeline), str(staged)]

    verdicts: list[Verdict] = []
    submission = Submission("ada", {"collectives.py": part(), "benchmark.py": b""}, (), "")
    work = tmp_path / "work"
    work.mkdir()
    look_around = Court(command, tmp_path, judge_environment(os.environ, "run-7"), 30.0)  # type: ignore[arg-type]
    asyncio.run(judge(submission, CHECKS, folder=work, court=look_around, record=verdicts.append))
    seen = json.loads(verdicts[0].output)
    assert seen["files"] == ["benchmark.py", "collectives.py"]
    assert (seen["run"], seen["cwd"], seen["stdin"], seen["session"]) == ("run-7", str(tmp_path), "", True)
    assert seen["tmp"] == str(work / "tmp")
    assert len(seen["fds"]) <= 6, "0, 1, 2, the two it was given, and the one that lists them"


def test_the_real_command_names_the_plugins_options() -> None:
    command = PytestCommand((Path("tests/public"), Path("tests/hidden")), "bubblewrap", 600.0, Selection())
    words = command(staged=Path("/t/0/submission"), name="ada", checks=["a.b", "c.d"], verdicts=5, lifeline=6)
    assert words[:5] == [sys.executable, "-m", "pytest", "tests/public", "tests/hidden"]
    options = dict(zip(words[8::2], words[9::2], strict=True))
    options.pop("-o")
    assert options == {
        "--submission": "/t/0/submission",
        "--jail": "bubblewrap",
        "--budget": "600.0",
        "--verdicts": "5",
        "--lifeline": "6",
        "--seed-salt": "ada",
        "--checks": "a.b,c.d",
    }


def test_the_judge_is_told_what_the_course_gives() -> None:
    selection = Selection(("benchmark",), "core", (1, 2), 3)
    command = PytestCommand((Path("tests/public"),), "none", 600.0, selection)
    words = command(staged=Path("/t"), name="ada", checks=["a.b"], verdicts=5, lifeline=6)
    settings = dict(word.split("=") for flag, word in pairwise(words) if flag == "-o")
    assert settings == selection.to_ini()


def test_no_setting_of_another_pytest_reaches_the_judge() -> None:
    surroundings = {"PYTEST_ADDOPTS": "-x", "PYTEST_XDIST_WORKER": "gw0", "HOME": "/home/ta"}
    assert judge_environment(surroundings, "run-7") == {"HOME": "/home/ta", "GRADER_RUN": "run-7"}
