"""Each notebook from top to bottom in a small bundle: with the solution every public point, with the stub none."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from grader.checking.spec import MODULES
from tests.harness.notebooks import ROOT, notebook_of, solutions, stubs


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The part of a student's bundle that notebooks need; `grader` comes from the environment."""
    top = tmp_path / "parallel-training"
    shutil.copytree(ROOT / "tests" / "public", top / "tests" / "public", ignore=shutil.ignore_patterns("__pycache__"))
    (top / "tests" / "__init__.py").touch()
    (top / "assignment").mkdir()
    for file, text in stubs().items():
        (top / "assignment" / file).write_text(text)
    (top / "notebooks").mkdir()
    return top


def execute(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookNode:
    """The notebook with its outputs; raises CellExecutionError where a cell raises."""
    monkeypatch.setenv("IPYTHONDIR", str(folder.parent / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder.parent / "runtime"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider --color=no")
    for name in ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    notebook = nbformat.reads(text, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", record_timing=False, resources=place).execute()
    return notebook


def outputs(notebook: NotebookNode, beginning: str) -> list[NotebookNode]:
    """What the code cell printed and showed in which this line stands."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and beginning in cell.source]
    return list(cell.outputs)


def printed(shown: list[NotebookNode]) -> str:
    return "".join(output.text for output in shown if output.output_type == "stream")


def counts(notebook: NotebookNode, kind: str) -> tuple[int, int]:
    """How many checks the checks cell says were `kind` ("passed", "not written yet"), and how many it ran."""
    text = printed(outputs(notebook, "-m pytest"))
    (ran,) = re.findall(r"(\d+) selected", text)
    found = re.findall(rf"(\d+) {kind}\b.* in [\d.]+s", text)
    return sum(map(int, found)), int(ran)


@pytest.mark.parametrize("module", MODULES)
def test_the_solved_notebook_earns_every_point_and_draws(
    module: str, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = execute(notebook_of(module, solved=True), bundle / "notebooks", monkeypatch)
    passed, ran = counts(notebook, "passed")
    assert passed == ran > 0, printed(outputs(notebook, "-m pytest"))
    assert (bundle / "out" / "solved" / f"{module}.py").read_text() == solutions()[f"{module}.py"]
    assert (bundle / "assignment" / f"{module}.py").read_text() == stubs()[f"{module}.py"], "left as it was"
    if module != "accounting":
        shown = outputs(notebook, "subprocess.run")
        assert [output.output_type for output in shown] == ["display_data"] * len(shown)
        pictures = [output.data["image/svg+xml"] for output in shown]
        assert pictures
        assert all(picture.startswith("<svg") and "</svg>" in picture for picture in pictures)


# One with a timeline and one without: all six differ from the solved ones in the module's text alone.
@pytest.mark.parametrize("module", ["benchmark", "accounting"])
def test_the_students_notebook_runs_before_anything_is_written(
    module: str, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bundle / "assignment" / f"{module}.py"
    before.write_text("# written in an editor\n")
    notebook = execute(notebook_of(module), bundle / "notebooks", monkeypatch)
    unwritten, ran = counts(notebook, "not written yet")
    assert unwritten == ran > 0
    assert re.search(r"= 0 (of \d+ public|bonus) points =", printed(outputs(notebook, "-m pytest")))
    assert before.read_text() == stubs()[f"{module}.py"]
    (kept,) = (bundle / "out" / "kept").iterdir()
    assert kept.read_text() == "# written in an editor\n"
    if module != "accounting":
        (told,) = outputs(notebook, "subprocess.run")
        assert "not written yet" in told.text
        assert len(told.text.splitlines()) == 1
