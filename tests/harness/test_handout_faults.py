"""Faults seeded into a copy of the sources: each stops the build, before anything is written, and names the place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = (
    "reference",
    "assignment",
    "handouts/templates",
    "handouts/course.toml",
    "handouts/messages.json",
    "tests/public",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of what a handout is built from, with the facts of the last build."""
    for name in (*SOURCES, "tests/hidden", "tests/__init__.py", "handouts/built/student/handout.json"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    return tmp_path


def build(root: Path) -> str:
    """What a build that must fail says."""
    command = [sys.executable, "-m", "grader.cli", "handout", "build", "--root", "."]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert result.returncode not in (0, 3), result.stdout
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in (root / "handouts/built/student").iterdir()) == ["handout.json"]
    return " ".join(result.stderr.split())


def edit(path: Path, old: str, new: str) -> int:
    """Replaces the first `old`; returns its line."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


def test_a_misspelt_tag(root: Path) -> None:
    line = edit(root / "reference/benchmark.py", "# BEGIN SOLUTION", "# BEGIN SOLUTON")
    assert f"benchmark.py:{line}: " in build(root)


def test_a_line_of_a_solution_outside_its_tag(root: Path) -> None:
    path = root / "reference/benchmark.py"
    last = re.search(r"^( +return [^\n]+\n)( +# END SOLUTION\n)", path.read_text(), re.MULTILINE)
    assert last is not None
    line = edit(path, last[0], last[2] + last[1])
    assert f"benchmark.py:{line + 1}: a line of " in build(root)


def test_a_removed_check(root: Path) -> None:
    edit(root / "tests/public/test_benchmark.py", "def test_bus_bandwidth(", "def bus_bandwidth(")
    said = build(root)
    assert "bus_bandwidth" in said


def test_a_check_without_its_mark(root: Path) -> None:
    path = root / "tests/public/test_benchmark.py"
    text = path.read_text()
    name = "test_bus_bandwidth"
    begin = text.rindex("@check(", 0, text.index(f"def {name}("))
    path.write_text(text[:begin] + text[text.index(f"def {name}(") :])
    said = build(root)
    assert "tests/public/test_benchmark.py" in said
    assert "the check benchmark.bus_bandwidth is gone" in said


def test_a_changed_point(root: Path) -> None:
    edit(root / "tests/public/test_benchmark.py", "points=1", "points=2")
    said = build(root)
    assert re.search(r"tests/public/test_benchmark\.py::test_\w+ is worth 2, and was worth 1", said)
    assert "points.modules.benchmark.full in course.toml says 10" in said


def test_a_key_of_the_course(root: Path) -> None:
    edit(root / "handouts/course.toml", "term =", "trem =")
    assert "handouts/course.toml: term: this key is missing" in build(root)
