"""The sample submissions fit the reference, and grading some of them from end to end, on real processes in the jail."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from grader.jail import probe
from tests.harness.leftovers import processes_of
from tests.harness.mutation import ROOT
from tests.sample_edits.__main__ import files_of, write
from tests.sample_edits.samples import EVERYTHING, SAMPLES

BY_NAME = {sample.name: sample for sample in SAMPLES}
CHOSEN = ("exits", "nested", "syntax_error")
CHECKS = "tests/public/test_collectives.py"


@pytest.mark.parametrize("name", BY_NAME)
def test_every_edit_fits_the_reference(name: str) -> None:
    files = files_of(BY_NAME[name])
    assert set(files) == {f"{module}.py" for module in EVERYTHING if module not in BY_NAME[name].missing}


def test_the_class_is_complete() -> None:
    assert len(SAMPLES) >= 10
    assert len(BY_NAME) == len(SAMPLES)


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    folder = tmp_path / "handed_in"
    folder.mkdir()
    for name in CHOSEN:
        write(BY_NAME[name], folder)
    return folder


def command(handed_in: Path, out: Path) -> list[str]:
    words = ["grade", str(handed_in), "--out", str(out), "--tests", CHECKS, "--jobs", "2"]
    return [sys.executable, "-m", "grader.cli", *words]


def scores(out: Path) -> dict[str, dict[str, str]]:
    with (out / "gradebook.csv").open() as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.mark.skipif(sys.platform != "linux", reason="the jail needs Linux")
def test_a_batch_that_is_killed_goes_on_to_the_same_gradebook(handed_in: Path, tmp_path: Path) -> None:
    assert probe.missing() is None, "the jail must run where the tests run"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    run = str(uuid.uuid4())
    environment = {**os.environ, "GRADER_RUN": run, "TMPDIR": str(scratch)}
    subprocess.run(command(handed_in, whole), cwd=ROOT, env=environment, check=True, capture_output=True)

    first = subprocess.Popen(
        command(handed_in, killed), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert first.stdout is not None
    first.stdout.readline()  # the first submission is done
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    again = subprocess.run(command(handed_in, killed), cwd=ROOT, env=environment, check=True, capture_output=True)
    assert again.returncode == 0

    assert (killed / "gradebook.csv").read_text() == (whole / "gradebook.csv").read_text()
    assert processes_of(run) == []
    assert list(scratch.iterdir()) == []
    came = scores(whole)
    assert set(came) == set(CHOSEN)
    assert came["nested"]["worst"] == came["syntax_error"]["worst"] == "pass", "the syntax error is in another module"
    assert came["nested"]["total"] == came["nested"]["possible"]
    assert came["exits"]["worst"] == "crash"
    assert 0 < float(came["exits"]["total"]) < float(came["nested"]["total"])
