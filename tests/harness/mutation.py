"""Running checks on edited references: what the tests of mutants and of single checks share."""

from __future__ import annotations

import importlib
from pathlib import Path

from grader.checking.catalog import ListedCheck, load
from grader.checking.context import Grading, seed_of
from grader.checking.judging import judge
from grader.checking.spec import MODULES
from grader.checking.submission import Submission
from grader.checking.verdict import Status, Verdict
from grader.world import Launcher
from tests.mutants.mutant import Mutant, Variant, apply

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [Path("tests/public"), Path("tests/hidden")]
STUCK_DEADLINE = 3.0  # for mutants that hang: soon enough, and a false alarm cannot make them pass


def checks() -> dict[str, ListedCheck]:
    """Every check there is, by name."""
    return {listed.spec.name: listed for listed in load(FOLDERS, root=ROOT)}


def mutants_of(module: str) -> list[Mutant]:
    """The wrong solutions of one module."""
    return list(importlib.import_module(f"tests.mutants.{module}").MUTANTS)


def variants_of(module: str) -> list[Variant]:
    """The right solutions of one module that are written differently."""
    return list(importlib.import_module(f"tests.mutants.{module}").VARIANTS)


def edited(module: str, one: Mutant | Variant) -> Submission:
    """The reference with one module edited."""
    files = {name: (ROOT / "reference" / f"{name}.py").read_bytes() for name in MODULES}
    files[module] = apply(files[module].decode(), one.edits).encode()
    return Submission(files, {})


def verdict_of(listed: ListedCheck, submission: Submission, launcher: Launcher, *, stuck: bool = False) -> Verdict:
    """One check on one submission, with the check's own seed. stuck: the world is expected to hang."""
    grading = Grading(submission, launcher)
    if stuck:
        grading.deadline = STUCK_DEADLINE
    seed = seed_of(listed.spec.name, hidden=listed.spec.hidden, salt="mutants")
    return judge(listed, grading, seed=seed, root=ROOT)


def expects_hang(one: Mutant) -> bool:
    """Whether the mutant's verdict is a timeout, so that a short deadline will do."""
    return one.status is Status.TIMEOUT
