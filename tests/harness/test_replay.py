"""`grader replay`: one check again, with the inputs of the gradebook, on real processes; and what its trace shows."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader import cli
from grader.batch import check_set, replay_command, sources
from grader.batch.gradebook import FILE_NAME, Gradebook, Run
from grader.checking import catalog
from grader.checking.context import Grading
from grader.checking.judging import judge
from grader.checking.submission import Submission
from grader.checking.verdict import Explanation, Status, Verdict
from grader.world import Launcher
from tests.harness.batch_parts import verdict
from tests.harness.mutation import ROOT
from tests.sample_edits.__main__ import write
from tests.sample_edits.samples import SAMPLES

TESTS = Path("tests/public/test_collectives_rings.py")
CHECK = "collectives.all_to_all"
SEED = 7  # no check's own


@dataclass(frozen=True)
class Classroom:
    """One student's folder, the gradebook's folder, and what the gradebook says of CHECK."""

    student: Path
    out: Path
    verdict: Verdict

    def replay(self, *options: str) -> int:
        """The exit code of `grader replay` on CHECK."""
        words = ["replay", "deadlocks", CHECK, "--out", str(self.out), "--tests", str(ROOT / TESTS)]
        return cli.main([*words, *options])


@pytest.fixture(scope="module", name="graded")
def graded_fixture(tmp_path_factory: pytest.TempPathFactory, launcher: Launcher) -> Classroom:
    """A real gradebook of one check on one submission, in which every rank sends first and nobody receives."""
    folder = tmp_path_factory.mktemp("class")
    write(next(sample for sample in SAMPLES if sample.name == "deadlocks"), folder)
    listed = {one.spec.name: one for one in catalog.load([TESTS], root=ROOT)}
    specs = [one.spec for one in listed.values()]
    held = Submission.read(folder / "deadlocks")
    came = judge(listed[CHECK], Grading(held, launcher), seed=SEED, root=ROOT)
    (folder / "grades").mkdir()
    digest = check_set.digest(specs, [ROOT / TESTS])
    run = Run("a run", "none", 600.0, "0")
    with Gradebook.open(folder / "grades" / FILE_NAME, specs, digest=digest, run=run) as gradebook:
        (submission,) = sources.find([folder / "deadlocks"]).submissions
        gradebook.register(submission)
        gradebook.record("deadlocks", came)
    return Classroom(folder / "deadlocks", folder / "grades", came)


@pytest.fixture(name="mended")
def mended_fixture(graded: Classroom) -> Iterator[Path]:
    """The student's folder, to be changed; it is put back afterwards."""
    kept = graded.student.with_name("kept")
    shutil.copytree(graded.student, kept)
    yield graded.student
    shutil.rmtree(graded.student, ignore_errors=True)
    kept.rename(graded.student)


@pytest.mark.skipif(sys.platform != "linux", reason="the jail needs Linux")
def test_a_deadlock_in_the_jail(
    graded: Classroom, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert graded.replay() == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "\x1b" not in shown.out
    lines = shown.out.splitlines()
    assert lines[0] == f"{CHECK} on deadlocks, seed {SEED}: fail, 0 of 1 point"
    assert not any(line.startswith("in the gradebook") for line in lines)
    assert lines[lines.index("") + 1].startswith("ranks 0 and 1 wait for each other: rank 0 waits in send to rank 1,")
    line = next(
        number
        for number, text in enumerate((graded.student / "collectives.py").read_text().splitlines(), 1)
        if "dist.send(outgoing[peer]" in text
    )
    assert lines[-3].split("  ")[0].startswith("send to rank 1 of float32")
    assert "  send to rank 0 of float32" in lines[-3]
    table = " ".join(" ".join(part[:39] for part in lines[-2:]).split())
    assert table == f"line {line}, waits for rank 1, never starts"
    table = " ".join(" ".join(part[41:] for part in lines[-2:]).split())
    assert table == f"line {line}, waits for rank 0, never starts"
    start = next(number for number, text in enumerate(lines) if text.endswith("in a world of 2, which failed"))
    assert lines[start + 1].split() == ["rank", "0", "rank", "1"]
    assert lines[start + 3].startswith("-- case 1 of ")


def test_the_same_inputs_give_the_same_words(graded: Classroom, capsys: pytest.CaptureFixture[str]) -> None:
    assert graded.replay("--jail", "none", "--json") == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("WARNING: --jail none")
    told = json.loads(shown.out)
    assert (told["verdict"]["seed"], told["graded"]) == (SEED, graded.verdict.to_json())
    assert told["verdict"]["explanation"] == graded.verdict.to_json()["explanation"]
    world = told["worlds"][-1]
    assert (world["world_size"], world["failed"]) == (2, True)
    last = {event["rank"]: event for event in world["events"]}
    assert [(last[rank]["doing"], last[rank]["operation"]["name"]) for rank in (0, 1)] == [("wait", "send")] * 2
    met = {tuple(one) for group in world["met"] for one in group}
    assert not {(rank, last[rank]["operation"]["seq"]) for rank in (0, 1)} & met


def test_files_that_have_changed_are_said(graded: Classroom, mended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mended / "collectives.py").write_text("def broadcast(tensor, src, group=None):\n    return tensor\n")
    assert graded.replay("--jail", "none") == 0
    shown = capsys.readouterr()
    assert f"note: the files in {mended} have changed since they were graded; these run now\n" in shown.err
    lines = shown.out.splitlines()
    assert lines[:2] == [
        f"{CHECK} on deadlocks, seed {SEED}: skipped, 0 of 1 point",
        "in the gradebook: fail, 0 of 1 point",
    ]
    assert lines[-1] == "no world of this check ran"


def test_files_that_are_gone(graded: Classroom, mended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(mended)
    assert graded.replay() == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"no longer there: name its new place with --submission, and --seed {SEED}" in err


def test_other_checks_are_said(graded: Classroom, mended: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mended / "collectives.py").unlink()
    assert graded.replay("--jail", "none", "--tests", str(ROOT / "tests/public/test_collectives_setup.py")) == 0
    shown = capsys.readouterr()
    assert "note: the gradebook was made with other checks than these; was --tests the same?\n" in shown.err
    assert "\ncollectives.py was not handed in\n" in shown.out


def test_a_folder_without_a_gradebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").touch()
    words = ["replay", "--submission", str(tmp_path), "all_to_all", "--seed", "5", "--jail", "none"]
    assert cli.main([*words, "--tests", str(ROOT / TESTS)]) == 0
    shown = capsys.readouterr()
    assert "note: no module file in it; it holds 'notes.txt'\n" in shown.err
    assert shown.out.startswith(f"{CHECK} on {tmp_path}, seed 5: fail, 0 of 1 point\n")
    assert "collectives.py was not handed in" in shown.out


def test_the_grader_own_fault_is_exit_code_three(
    graded: Classroom, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = verdict(CHECK, Status.INFRA, explanation=Explanation("the grader itself failed: no room"))
    monkeypatch.setattr(replay_command, "judge", lambda *_, **__: broken)
    assert graded.replay("--jail", "none") == 3
    assert "the grader itself failed: no room" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["deadlock", CHECK, "--out", "grades"], "no submission 'deadlock' in grades; did you mean deadlocks?"),
        (["deadlocks", CHECK, "--out", "grade"], "no gradebook in grade; did you mean grades?"),
        (["deadlocks", "all_to_al", "--out", "grades"], f"no check 'all_to_al'; did you mean {CHECK}"),
        (["deadlocks", CHECK], "it takes a STUDENT, a CHECK and --out, or --submission and a CHECK"),
        ([CHECK, "--out", "grades"], "it takes a STUDENT, a CHECK and --out, or --submission and a CHECK"),
        (["deadlocks", CHECK, "--submission", "deadlocks"], "with --submission there is one word"),
        (["--submission", "nowhere", CHECK], "nowhere does not exist"),
        (["--submission", "deadlocks", CHECK, "--seed", "x"], "Invalid value for '--seed'"),
        (["deadlocks", CHECK, "--out", "grades", "--tests", "/"], "/ is not in"),
        ([], "Missing argument '[STUDENT] CHECK'"),
    ],
)
def test_wrong_arguments_are_one_clear_line(
    words: list[str],
    said: str,
    graded: Classroom,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(graded.out.parent)
    assert cli.main(["replay", *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("grader: ")
    assert said in shown.err
