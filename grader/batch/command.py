"""`grader grade`: the door of this room to the command line."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import click

import grader
from grader.batch import check_set, grading, sources
from grader.batch.gradebook import FILE_NAME, Run
from grader.batch.grading import Batch, Stopped
from grader.batch.judge import Court, PytestCommand, judge_environment
from grader.batch.schema import GradebookError
from grader.checking import catalog
from grader.checking.selection import Selection
from grader.report.scores import is_complete

MARGIN_SECONDS = 120.0  # a judge keeps its budget by itself; one that does not is killed this much later
FAULT = 3  # exit code: the grader itself failed somewhere
PATH = click.Path(path_type=Path)
NO_JAIL = (
    "WARNING: --jail none: submissions run with your rights and can read, change and delete whatever you can."
    " Grade only code that you trust."
)


@click.command(
    "grade",
    short_help="Grade every submission in a folder.",
    epilog="""\b
Example:
  grader grade submissions/ late/ada.zip --out grades
  grader grade submissions/ --out grades            (again: goes on where it was stopped)""",
)
@click.argument("paths", metavar="SOURCE...", nargs=-1, required=True, type=PATH)
@click.option("--out", required=True, type=PATH, help="Folder for the gradebook and all results; made if missing.")
@click.option("--jobs", type=click.IntRange(min=1), help="Submissions judged at a time  [default: one per core]")
@click.option(
    "--jail",
    type=click.Choice(["bubblewrap", "none"]),
    default="bubblewrap",
    show_default=True,
    help="Where submissions run. With none they can do whatever you can do.",
)
@click.option(
    "--budget",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Time for one submission; the checks that it does not reach are timeouts.",
)
@click.option("--course", type=PATH, help="What the course gives  [default: handouts/course.toml, if it is there]")
@click.option("--term", type=PATH, help="A file whose values take the place of the course's, as for the handout.")
@click.option("--tests", multiple=True, type=PATH, help="Checks to grade by  [default: tests/public tests/hidden]")
@click.option("--fresh", is_flag=True, help="Set an earlier gradebook in the folder aside and grade all anew.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON instead of a table.")
def grade(
    paths: tuple[Path, ...],
    out: Path,
    jobs: int | None,
    jail: str,
    budget: float,
    course: Path | None,
    term: Path | None,
    tests: tuple[Path, ...],
    fresh: bool,
    as_json: bool,
) -> None:
    """Grade every submission at SOURCE: folders, zips and notebooks, or folders of them.

    Verdicts go to OUT/gradebook.db as they fall. Run again, it keeps them, and judges what is missing, what has
    changed and where the grader failed. At the end it writes OUT/gradebook.csv and, for each submission,
    results.json (Gradescope) and feedback.md.

    Exit code 0: every check of every submission has a verdict. 3: the grader failed on some. 2: wrong arguments,
    or no jail can be made here.
    """
    from rich.console import Console

    from grader.batch.progress import watching
    from grader.report.files import write_views
    from grader.report.summary import summary_json
    from grader.report.table import closing_text

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    found, batch = _plan(paths, out, tests, jail, budget, jobs or usable_cores(), fresh, course, term)
    require_jail(jail)
    if jail == "none":
        console.print(NO_JAIL, style="bold red")
    for sentence in found.sentences():
        console.print(f"note: {sentence}")
    try:
        book = grading.grade(
            batch,
            watch=lambda cases: watching(console, cases),
            publish=lambda book: write_views(book, out),
        )
    except GradebookError as error:
        raise click.UsageError(str(error)) from None
    except Stopped as stopped:
        console.print(f"grader: stopped; the verdicts so far are in {out / FILE_NAME}")
        console.print("grader: the same command goes on from there")
        raise click.exceptions.Exit(stopped.exit_code) from None
    except (sqlite3.Error, OSError) as error:
        console.print(f"grader: {error}; the verdicts so far are in {out / FILE_NAME}")
        raise click.exceptions.Exit(FAULT) from None
    click.echo(summary_json(book, out) if as_json else closing_text(book, out, terminal=Console()), nl=as_json)
    if not is_complete(book):
        raise click.exceptions.Exit(FAULT)


def _plan(
    paths: Sequence[Path],
    out: Path,
    tests: Sequence[Path],
    jail: str,
    budget: float,
    jobs: int,
    fresh: bool,
    course: Path | None,
    term: Path | None,
) -> tuple[sources.Found, Batch]:
    """Everything that can be wrong with the arguments is found here, before anything is written."""
    try:
        root = project_root()
        found = sources.find(paths, exclude=[out])
        folders = tuple(below(root, path) for path in tests) or catalog.FOLDERS
        selection = _selection(root, course, term)
        checks = selection.given(listed.spec for listed in catalog.load(folders, root=root))
        digest = check_set.digest(checks, [root / folder for folder in folders])
    except (sources.SourceError, ValueError, ImportError, SyntaxError, OSError) as error:
        raise click.UsageError(str(error)) from None
    if not checks:
        raise click.UsageError(f"no checks in {', '.join(map(str, folders))}")
    run = Run(os.environ.get("GRADER_RUN") or uuid.uuid4().hex, jail, budget, version("allgrade"))
    court = Court(
        command=PytestCommand(folders, jail, budget, selection),
        root=root,
        environment=judge_environment(os.environ, run.run),
        deadline_seconds=budget + MARGIN_SECONDS,
    )
    return found, Batch(found.submissions, checks, digest, out, court, run, jobs, fresh)


def _selection(root: Path, course: Path | None, term: Path | None) -> Selection:
    """Which checks the course gives: all where there is no course. Raises ValueError for a faulty file."""
    from grader.checking.course import COURSE, read_course

    usual = root / COURSE
    if course is None and term is None and not usual.is_file():
        return Selection()
    return read_course(course if course is not None else usual, term).selection


def require_jail(jail: str) -> None:
    """Raises UsageError where the jail cannot run; going on without one is for the user to decide."""
    if jail == "none":
        return
    from grader.jail import probe

    reason = probe.missing()
    if reason is not None:
        raise click.UsageError(f"no jail can be made here: {reason} (--jail none grades code that you trust without)")


def project_root() -> Path:
    """The folder that holds tests/: the checkout that this package belongs to, or where we stand."""
    checkout = Path(grader.__file__).resolve().parent.parent
    return checkout if (checkout / "tests").is_dir() else Path.cwd()


def below(root: Path, path: Path) -> Path:
    """`path` as seen from `root`; raises ValueError if it lies elsewhere, where pytest would find no package."""
    absolute = path.resolve()
    if not absolute.is_relative_to(root):
        raise ValueError(f"{path} is not in {root}: checks belong to the checkout")
    return absolute.relative_to(root)


def usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
