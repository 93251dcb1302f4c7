"""`grader replay`: one check on one submission again, with the same inputs, and what its ranks did."""

from __future__ import annotations

import json
import os
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from grader.batch import check_set
from grader.batch.command import FAULT, NO_JAIL, PATH, below, project_root, require_jail
from grader.batch.gradebook import Graded
from grader.batch.lookup import NotFoundError, book_in, check_among, submission_in
from grader.batch.schema import GradebookError
from grader.batch.sources import contents_of
from grader.batch.submission import Submission
from grader.checking import catalog
from grader.checking.catalog import ListedCheck
from grader.checking.context import Grading, Ran, seed_of
from grader.checking.folding import WIDTH
from grader.checking.judging import judge
from grader.checking.submission import Submission as Held
from grader.checking.summary import explanation_text, shortened
from grader.checking.trace_record import trace_record
from grader.checking.trace_table import trace_table
from grader.checking.verdict import Status, Verdict
from grader.world import Launcher, NoJail

MAX_LINES = 200
MIN_WIDTH, MAX_WIDTH = 60, 160


@dataclass(frozen=True)
class Case:
    """What is judged again.

    name:    the student's, or the path. seed: of the inputs; None for the check's own.
    before:  the verdict in the gradebook. remarks: sentences for the user.
    """

    name: str
    submission: Submission
    listed: ListedCheck
    seed: int | None
    before: Verdict | None = None
    remarks: tuple[str, ...] = ()


@click.command(
    "replay",
    short_help="Run one check on one submission again, and show what its ranks did.",
    epilog="""\b
Example:
  grader replay ada collectives.broadcast --out grades
  grader replay --submission mended/ada collectives.broadcast --seed 7""",
)
@click.argument("words", metavar="[STUDENT] CHECK", nargs=-1, required=True)
@click.option("--out", type=PATH, help="The folder that `grader grade` wrote to, for STUDENT.")
@click.option("--submission", type=PATH, help="A folder or a zip instead of STUDENT; no gradebook is read.")
@click.option("--seed", type=int, help="Of the inputs  [default: as graded; with --submission the check's own]")
@click.option(
    "--jail",
    type=click.Choice(["bubblewrap", "none"]),
    default="bubblewrap",
    show_default=True,
    help="Where the submission runs. With none it can do whatever you can do.",
)
@click.option("--tests", multiple=True, type=PATH, help="Where the check is  [default: tests/public tests/hidden]")
@click.option("--all", "whole", is_flag=True, help=f"Show the whole trace, not about {MAX_LINES} lines of it.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict and the trace as JSON.")
def replay(
    words: tuple[str, ...],
    out: Path | None,
    submission: Path | None,
    seed: int | None,
    jail: str,
    tests: tuple[Path, ...],
    whole: bool,
    as_json: bool,
) -> None:
    """Run CHECK on a submission again with the inputs that it was graded with. The gradebook stays as it is.

    Prints the verdict, and for each world that ran a table: what each rank asked of its groups, in its order, at
    which line, and which ranks it waited for. A row holds what met. It comes from the submission's own processes.

    For staff: hidden checks are shown in full. Exit code 0: there is a verdict. 3: the grader failed. 2: wrong
    arguments, or no jail can be made here.
    """
    case = _case(words, out, submission, seed, tests)
    require_jail(jail)
    for line in (*((NO_JAIL,) if jail == "none" else ()), *(f"note: {remark}" for remark in case.remarks)):
        click.echo(line, err=True)
    verdict, ran = _judge(case, jail)
    click.echo(_json(case, verdict, ran) if as_json else _text(case, verdict, ran, whole=whole))
    if verdict.status is Status.INFRA:
        raise click.exceptions.Exit(FAULT)


def _case(words: Sequence[str], out: Path | None, place: Path | None, seed: int | None, tests: Sequence[Path]) -> Case:
    """Everything that can be wrong with the arguments is found here, before anything runs."""
    if place is not None and (len(words) != 1 or out is not None):
        raise click.UsageError("with --submission there is one word, the CHECK, and no --out")
    if place is None and (len(words) != 2 or out is None):
        raise click.UsageError("it takes a STUDENT, a CHECK and --out, or --submission and a CHECK")
    try:
        root = project_root()
        folders = tuple(below(root, path) for path in tests) or catalog.FOLDERS
        found = {listed.spec.name: listed for listed in catalog.load(folders, root=root)}
        listed = found[check_among(list(found), words[-1])]
        if place is not None:
            return _handed_in(place, listed, seed)
        assert out is not None
        book = book_in(out)
        digest = check_set.digest([one.spec for one in found.values()], [root / folder for folder in folders])
        changed = ("the gradebook was made with other checks than these; was --tests the same?",)
        return _graded(submission_in(book, words[0], out), listed, seed, changed if digest != book.digest else ())
    except (NotFoundError, GradebookError, ValueError, ImportError, SyntaxError, OSError) as error:
        raise click.UsageError(str(error)) from None


def _handed_in(place: Path, listed: ListedCheck, seed: int | None) -> Case:
    if not place.exists():
        raise NotFoundError(f"{place} does not exist")
    contents = contents_of(place.resolve())
    return Case(str(place), Submission(place.name, contents.files, (), str(place)), listed, seed, None, contents.notes)


def _graded(graded: Graded, listed: ListedCheck, seed: int | None, remarks: tuple[str, ...]) -> Case:
    spec, before = listed.spec, graded.verdicts.get(listed.spec.name)
    if seed is None:  # a verdict that no judge gave holds none
        judged = before is not None and before.status is not Status.INFRA
        seed = before.seed if before and judged else seed_of(spec.name, hidden=spec.hidden, salt=graded.name)
    if not os.path.lexists(graded.origin):
        raise NotFoundError(
            f"{graded.origin}, from which {graded.name} was graded, is no longer there:"
            f" name its new place with --submission, and --seed {seed}"
        )
    submission = Submission(graded.name, contents_of(Path(graded.origin)).files, graded.notes, graded.origin)
    if submission.digest != graded.digest:
        remarks = (*remarks, f"the files in {graded.origin} have changed since they were graded; these run now")
    return Case(graded.name, submission, listed, seed, before, remarks)


def _judge(case: Case, jail: str) -> tuple[Verdict, list[Ran]]:
    if jail == "none":
        launcher = Launcher(NoJail())
    else:
        from grader.jail import Bubblewrap

        launcher = Launcher(Bubblewrap())
    spec = case.listed.spec
    seed = case.seed if case.seed is not None else seed_of(spec.name, hidden=spec.hidden, salt="")
    ran: list[Ran] = []
    held = Held({Path(name).stem: data for name, data in case.submission.files.items()}, {})
    with launcher:
        verdict = judge(case.listed, Grading(held, launcher), seed=seed, root=project_root(), ran=ran)
    return verdict, ran


def _text(case: Case, verdict: Verdict, ran: Sequence[Ran], *, whole: bool) -> str:
    spec = case.listed.spec
    width = min(max(shutil.get_terminal_size().columns, MIN_WIDTH), MAX_WIDTH)
    lines = [f"{spec.name} on {case.name}, seed {verdict.seed}: {_outcome(verdict)}"]
    if case.before is not None and (case.before.status, case.before.points) != (verdict.status, verdict.points):
        lines.append(f"in the gradebook: {_outcome(case.before)}")
    lines.append(textwrap.fill(f"claim: {spec.statement}", WIDTH))
    if verdict.explanation is not None:
        lines += ["", explanation_text(replace(verdict, replay=""))]
    if verdict.output:
        lines += ["", "where the ranks were, and what they printed:"]
        lines += [f"  {line}" for line in shortened(verdict.output.splitlines())]
    table = trace_table(ran, own_file=f"{spec.module}.py", width=width, max_lines=None if whole else MAX_LINES)
    return "\n".join([*lines, "", *(table or ["no world of this check ran"])])


def _outcome(verdict: Verdict) -> str:
    return f"{verdict.status}, {verdict.points} of {verdict.possible} {'point' if verdict.possible == 1 else 'points'}"


def _json(case: Case, verdict: Verdict, ran: Sequence[Ran]) -> str:
    told = {
        "submission": case.name,
        "claim": case.listed.spec.statement,
        "verdict": verdict.to_json(),
        "graded": case.before.to_json() if case.before is not None else None,
        "notes": list(case.remarks),
        "worlds": [trace_record(one) for one in ran],
    }
    return json.dumps(told, indent=1)
