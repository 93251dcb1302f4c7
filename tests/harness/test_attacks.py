"""A hostile submission loses its own check and nothing else: no points, no `infra`, and the next verdict as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.checking.catalog import ListedCheck, load
from grader.checking.context import Grading
from grader.checking.judging import judge
from grader.checking.submission import Submission
from grader.checking.verdict import Status, Verdict
from grader.world import Launcher
from tests.harness.jailing import launchers

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/attacks"
ATTACKS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "lines"))
LONGEST_VERDICT = 64 * 1024  # characters


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    yield from launchers()


@pytest.fixture(scope="module")
def broadcast() -> ListedCheck:
    found = load([Path("tests/public/test_collectives.py")], root=ROOT)
    return next(listed for listed in found if listed.spec.name == "collectives.broadcast")


def judged(source: bytes, listed: ListedCheck, launcher: Launcher, deadline: float) -> Verdict:
    submission = Submission({"collectives": source}, {})
    return judge(listed, Grading(submission, launcher, deadline=deadline), seed=1, root=ROOT)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_fails_its_own_check(name: str, launcher: Launcher, broadcast: ListedCheck) -> None:
    attack = (FOLDER / f"{name}.py").read_bytes().replace(b"ESCAPES", b"\x1b[2J\x01" * 180_000)
    verdict = judged((FOLDER / "lines.py").read_bytes() + attack, broadcast, launcher, 4.0)
    assert verdict.status in (Status.FAIL, Status.CRASH, Status.SKIPPED), verdict
    assert verdict.points == 0
    text = repr(verdict.to_json())
    assert "LookupError" not in text, "the attack did not come to its point"
    assert "\\x1b[" not in text.replace("\\\\x1b", "")
    assert len(text) < LONGEST_VERDICT


def test_the_jail_still_judges_as_ever(launcher: Launcher, broadcast: ListedCheck) -> None:
    verdict = judged((ROOT / "reference/collectives.py").read_bytes(), broadcast, launcher, 20.0)
    assert verdict.status is Status.PASS, verdict
