"""The command line: exit codes, one clear line for a wrong argument, and what is printed where."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from grader import cli
from grader.batch import command
from grader.batch.progress import watching
from grader.batch.queue import Case
from grader.jail import probe
from tests.harness.batch_parts import CHECKS, FakeCommand, part, plays

NAMES = [spec.name for spec in CHECKS]
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(name="classroom")
def classroom_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two submissions, fake judges and twelve checks; a jail can be made."""
    for name, role in (("ada", part()), ("bob", part(status={NAMES[0]: "fail"}))):
        (tmp_path / "class" / name).mkdir(parents=True)
        (tmp_path / "class" / name / "collectives.py").write_bytes(role)
    monkeypatch.setattr(command, "PytestCommand", lambda *_: FakeCommand())
    monkeypatch.setattr(command.catalog, "load", lambda *_, **__: [SimpleNamespace(spec=spec) for spec in CHECKS])
    monkeypatch.setattr(probe, "missing", lambda: None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def play(folder: Path, name: str, **fields: object) -> None:
    (folder / "class" / name).mkdir(exist_ok=True)
    (folder / "class" / name / "collectives.py").write_bytes(part(**fields))


def test_a_class_is_graded(classroom: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grade", "class", "--out", "grades"]) == 0
    shown = capsys.readouterr()
    assert "ada" in shown.out
    assert "gradebook   grades/gradebook.db" in shown.out
    assert "\x1b" not in shown.out + shown.err
    lines = shown.err.splitlines()
    assert sorted(line.split("] ")[1].split(" (")[0] for line in lines) == ["ada: 12 pass", "bob: 11 pass, 1 fail"]
    files = {str(path.relative_to(classroom / "grades")) for path in (classroom / "grades").rglob("*.*")}
    assert files >= {"gradebook.db", "gradebook.csv", "ada/results.json", "bob/feedback.md"}


def test_the_table_again(classroom: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["grade", "class", "--out", "grades"])
    first = capsys.readouterr().out
    assert cli.main(["table", "grades"]) == 0
    assert capsys.readouterr().out == first
    assert cli.main(["table", str(classroom)]) == 2
    assert (
        capsys.readouterr().err == f"grader: no gradebook at {classroom / 'gradebook.db'} (see grader table --help)\n"
    )


def test_json_is_all_that_is_on_stdout(classroom: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grade", "class", "--out", "grades", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] is True
    assert [(one["name"], one["total"], one["worst"]) for one in told["submissions"]] == [
        ("ada", 60, "pass"),
        ("bob", 55, "fail"),
    ]
    assert cli.main(["table", "grades", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert classroom.exists()


def test_a_broken_grader_is_exit_code_three_until_it_is_mended(
    classroom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play(classroom, "joe", act="die", at=NAMES[4])
    monkeypatch.setenv("FAKE_GATE", str(classroom / "gate"))
    assert cli.main(["grade", "class", "--out", "grades"]) == 3
    shown = capsys.readouterr()
    assert "GRADER FAILED: joe: 4 pass, 8 infra: No verdict: the judge ended (killed by SIGKILL)" in shown.err
    assert "no score yet for 1 of 3 submissions (joe)" in shown.out
    (classroom / "gate").touch()
    assert cli.main(["grade", "class", "--out", "grades"]) == 0
    assert "joe: 8 pass" in capsys.readouterr().err


def test_what_was_mended_or_left_out_is_said_first(classroom: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (classroom / "class" / "=cmd").mkdir()
    (classroom / "class" / "grades.csv").touch()
    assert cli.main(["grade", "class", "--out", "grades"]) == 0
    err = capsys.readouterr().err
    assert "note: _cmd: it is empty\n" in err
    assert "note: _cmd: graded under the name '_cmd', because '=cmd' is not safe as a file name\n" in err
    assert "note: 'grades.csv' in class is neither a folder nor a zip nor a notebook: left out\n" in err


def test_grading_without_a_jail_is_loud(classroom: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["grade", "class", "--out", "grades", "--jail", "none"]) == 0
    assert "WARNING: --jail none" in capsys.readouterr().err
    assert classroom.exists()


def test_where_no_jail_can_be_made_nothing_is_graded(
    classroom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "missing", lambda: "bubblewrap is not installed.")
    assert cli.main(["grade", "class", "--out", "grades"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("grader: no jail can be made here: bubblewrap is not installed.")
    assert err.count("\n") == 1
    assert not (classroom / "grades").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade"], "Missing argument 'SOURCE...'"),
        (["grade", "class"], "Missing option '--out'"),
        (["grade", "nowhere", "--out", "grades"], "nowhere does not exist"),
        (["grade", "class", "--out", "grades", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["grade", "class", "--out", "grades", "--budget", "0"], "Invalid value for '--budget'"),
        (["grade", "class", "--out", "grades", "--jail", "docker"], "Invalid value for '--jail'"),
        (["grade", "class", "--out", "class/ada/collectives.py"], "cannot write to class/ada/collectives.py"),
        (["grade", "class", "--out", "grades", "--tests", "/"], "/ is not in"),
        (["grade", "class", "--out", "class"], "class is where the results go"),
        (["grade", "class", "--nonsense"], "No such option"),
        (["mark"], "No such command 'mark'"),
    ],
)
@pytest.mark.usefixtures("classroom")
def test_wrong_arguments_are_one_clear_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("grader: ")
    assert said in shown.err


def test_other_checks_need_another_folder_or_a_fresh_start(
    classroom: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["grade", "class", "--out", "grades"]) == 0
    fewer = [SimpleNamespace(spec=spec) for spec in CHECKS[:4]]
    monkeypatch.setattr(command.catalog, "load", lambda *_, **__: fewer)
    capsys.readouterr()
    assert cli.main(["grade", "class", "--out", "grades"]) == 2
    assert (
        "was made with other checks (files or points have changed); use another --out, or --fresh"
        in capsys.readouterr().err
    )
    assert cli.main(["grade", "class", "--out", "grades", "--fresh"]) == 0
    assert (classroom / "grades" / "gradebook.previous.db").exists()


@pytest.mark.parametrize("arguments", [["--help"], *([name, "-h"] for name in cli.COMMANDS)])
def test_every_help_has_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert "  Example:\n    grader " in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("grader, version ")


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "Usage: grader" in capsys.readouterr().err


def test_a_room_that_is_not_installed_has_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "fly", "grader.no_such_room.command:fly")
    monkeypatch.setitem(cli.COMMANDS, "swim", "grader.batch.no_such_module:swim")
    assert cli.main(["fly"]) == 2
    assert cli.main(["swim"]) == 2
    assert cli.main(["--help"]) == 0


def test_help_needs_neither_torch_nor_rich() -> None:
    look = "import sys; from grader.cli import main; main(['grade', '--help']); print(*sorted(sys.modules))"
    told = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = told.stdout.split("\n")[-2].split()
    assert not {"torch", "rich", "numpy"} & set(loaded)
    assert "grader.batch.command" in loaded


def test_a_bar_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, markup=False, highlight=False)
    cases = [Case(plays("ada"), CHECKS), Case(plays("[/red]"), CHECKS)]
    with watching(console, cases) as view:
        for case in cases:
            for _ in case.checks:
                view.fell()
            view.closed(f"{case.submission.name}: told", broken=case is cases[1])
    shown = file.getvalue()
    assert "submissions 2/2" in shown
    assert "24/24" in shown
    assert "GRADER FAILED: [/red]: told" in shown
    assert "ada: told" not in shown


def test_cores_are_counted() -> None:
    assert 1 <= command.usable_cores() <= (os.cpu_count() or 1)
