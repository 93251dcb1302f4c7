"""Judging: one check on one submission, from the import of its module to the verdict."""

from __future__ import annotations

import shlex
import time
import traceback
from dataclasses import asdict, replace
from pathlib import Path

from grader.checking.catalog import ListedCheck
from grader.checking.context import Check, Grading, Ran, joined_output, story
from grader.checking.explain import explain
from grader.checking.failed import CheckFailed
from grader.checking.spec import CheckSpec
from grader.checking.suspects import suspects
from grader.checking.verdict import Explanation, Status, Verdict
from grader.world import Failure, InfraError, Program, World
from grader.world.failure import printable

MAX_OUTPUT = 32 * 1024
MAX_TEXT = 8000  # of one field of an explanation
PUBLIC_PROGRAMS = Path("tests/public/programs")
IMPORTED = Program(
    b"def names(here):\n    return sorted(name for name in vars(here.submission) if not name.startswith('__'))\n",
    "names",
    "programs/names.py",
)


def judge(
    listed: ListedCheck,
    grading: Grading,
    *,
    seed: int,
    root: Path,
    shown_as: str = "",
    ran: list[Ran] | None = None,
) -> Verdict:
    """Runs one check and says what became of it; never raises for anything that a submission does.

    root:     the folder that holds `tests/`. shown_as: the submission's path in the replay command.
    ran:      gets the worlds that the check runs, one after the other.
    """
    spec = listed.spec
    programs = [root / listed.path.parent / "programs", root / PUBLIC_PROGRAMS]
    check = Check(spec, grading, seed=seed, programs=programs)
    if ran is not None:
        check.ran = ran
    began = time.monotonic()

    def verdict(status: Status, failed: CheckFailed | None, output: str) -> Verdict:
        return Verdict(
            check=spec.name,
            status=status,
            points=spec.points if status is Status.PASS else 0,
            possible=spec.points,
            seconds=round(time.monotonic() - began, 3),
            seed=seed,
            explanation=_printable(failed.explanation) if failed else None,
            unwritten=printable(failed.unwritten, MAX_TEXT) if failed else "",
            output=printable(output[:MAX_OUTPUT], MAX_OUTPUT),
            replay=replay_command(listed, seed, shown_as),
        )

    try:
        _require(spec, grading)
        listed.function(check)
    except CheckFailed as failed:
        _point_at_suspects(failed, check, grading)
        return verdict(failed.status, failed, story(failed.output, check.output))
    except InfraError as error:
        return verdict(Status.INFRA, CheckFailed(f"the grader itself failed: {error}"), "")
    except Exception as error:  # the check's own code: never the submission's fault, and never a zero
        told = _found_before(error)
        if told is not None:
            return verdict(told.status, told, story(told.output, check.output, traceback.format_exc()))
        broken = CheckFailed(f"the check itself failed: {type(error).__name__}: {error}")
        return verdict(Status.INFRA, broken, traceback.format_exc())
    return verdict(Status.PASS, None, check.output)


def _printable(explanation: Explanation) -> Explanation:
    """Bounded, and without control characters, whatever a check has put into it of what came."""
    return Explanation(**{name: printable(text, MAX_TEXT) for name, text in asdict(explanation).items()})


def _found_before(error: Exception) -> CheckFailed | None:
    """What the check had found when it broke: looking for better words for it, which what came may defeat."""
    before = error.__context__
    while before is not None and not isinstance(before, CheckFailed):
        before = before.__context__
    return before


def _point_at_suspects(failed: CheckFailed, check: Check, grading: Grading) -> None:
    """Where values were wrong, adds the operations that are worth a look."""
    explanation = failed.explanation
    if not failed.wrong_values or explanation.where or not check.ran or check.ran[-1].failure is not None:
        return
    submitted = grading.submission.module(check.spec.module)
    lines = suspects(check.ran[-1].trace, submitted, read_too_early="NaN" in explanation.help)
    failed.explanation = replace(explanation, where="\n".join(lines))


def replay_command(listed: ListedCheck, seed: int, shown_as: str) -> str:
    """The command that runs this check again with the same inputs."""
    words = ["pytest", listed.node_id, "--seed", str(seed)]
    if shown_as:
        words += ["--submission", shown_as]
    return shlex.join(words)


def _require(spec: CheckSpec, grading: Grading) -> None:
    """Raises the module's own failure, without a world, where it is missing or does not import."""
    module = spec.module
    if module not in grading.names:
        grading.names[module] = _names_of(module, grading)
    found = grading.names[module]
    if isinstance(found, CheckFailed):
        raise found
    missing = [name for name in spec.needs if name not in found]
    if missing:
        raise CheckFailed(
            f"{module}.py does not define {', '.join(missing)}",
            status=Status.SKIPPED,
            help="keep the names of the stub: this check cannot run without them",
        )


def _names_of(module: str, grading: Grading) -> frozenset[str] | CheckFailed:
    submission = grading.submission
    if module in submission.problems:
        return CheckFailed(submission.problems[module])
    if module not in submission.files:
        return CheckFailed(f"{module}.py was not handed in")
    left = grading.time_left()
    if left <= 0:
        return CheckFailed("the time for this submission was spent before this check", status=Status.TIMEOUT)
    world = World(
        1,
        submission=submission.module(module),
        launcher=grading.launcher,
        joined=False,
        deadline=left,
    )
    outcome = world.run(IMPORTED)
    if isinstance(outcome, Failure):
        failed = explain(outcome, world_size=1)
        failed.output = story(failed.output, joined_output(outcome.output))
        return failed
    # A module may have spoken for the program while it was imported, and so have said anything, or nothing.
    names = outcome.values[0][0] if outcome.values[0] else None
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
