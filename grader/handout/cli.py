"""`grader handout build|check|diff|stubs`."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # `grader --help` imports this file, and need not wait for what only a build uses
    from grader.handout.build import Handout
    from grader.handout.compare import Content
    from grader.handout.facts import Facts

PATH = click.Path(path_type=Path)
ROOT = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The checkout; the current folder by default.",
)
TERM = click.option("--term", type=PATH, help="A file whose values take the place of those in handouts/course.toml.")
BUILT = Path("handouts/built")


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Example:
  grader handout build --term handouts/terms/fall.toml --out site""",
)
def handout() -> None:
    """Make what students get from the tagged reference, the checks, course.toml and the templates."""


@handout.command(
    "build",
    epilog="""\b
Example:
  grader handout build --term handouts/terms/fall.toml --out site""",
)
@TERM
@click.option("--out", type=PATH, help="Where to  [default: handouts/built]")
@ROOT
def build_command(term: Path | None, out: Path | None, root: Path) -> None:
    """Write pages, notebooks, pictures, PDF and student.zip to OUT/student, and solutions to OUT/staff.

    OUT/staff holds the solutions: publish OUT/student alone. The first thing that does not fit stops the build
    before anything is written, with one line that names the place.
    """
    from grader.handout import facts, publish

    folder = out if out is not None else root / BUILT
    planned = _planned(root, term, folder)
    for name, files in (("student", planned.student), ("staff", planned.staff)):
        target = folder / name
        if target.is_dir() and any(target.iterdir()) and not (folder / "student" / facts.FILE_NAME).is_file():
            raise click.UsageError(f"{target} holds files that no build has made: choose another folder")
        changed = publish.write(files, target)
        removed = publish.remove_strays(files, target)
        gone = f", {len(removed)} removed" if removed else ""
        click.echo(f"{target}: {len(changed)} of {len(files)} files written{gone}, the others were up to date")
    for line in planned.left_out:
        click.echo(f"note: {line}", err=True)


@handout.command(
    "check",
    epilog="""\b
Example:
  grader handout check""",
)
@TERM
@ROOT
def check_command(term: Path | None, root: Path) -> None:
    """Build everything anew, write nothing, and exit with 1 if a file is not as it would be built.

    A PDF or zip that is there is compared by what it holds. It is not committed, so an old one is said and no more.
    """
    planned = _planned(root, term, root / BUILT)
    different = _report(_stubs(root), root / "assignment", strays=False)
    for name, files in (("student", planned.student), ("staff", planned.staff)):
        different += _report(files, root / BUILT / name, strays=True)
    for line in planned.left_out:
        click.echo(f"note: {line}", err=True)
    if different:
        raise click.ClickException("run `make handouts` and commit what it writes")
    click.echo("stubs and handout are what their sources make")


@handout.command(
    "diff",
    epilog="""\b
Example:
  grader handout diff HEAD~5 handouts/built""",
)
@click.argument("old")
@click.argument("new")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a difference.")
def diff_command(old: str, new: str, exit_code: bool) -> None:
    """Say what a student would notice between OLD and NEW: contracts, points, dates, checks, questions.

    Each is a folder that a build wrote, a student.zip, or a revision of this repository.
    """
    from grader.handout import facts

    try:
        lines = facts.differences(_facts(old), _facts(new))
    except (KeyError, TypeError, ValueError) as error:
        raise click.UsageError(f"no facts of a handout there: {error}") from None
    for line in lines:
        click.echo(line)
    if exit_code and lines:
        raise click.exceptions.Exit(1)


@handout.command("stubs")
@ROOT
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not as it would be built.")
def stubs_command(root: Path, check: bool) -> None:
    """Write assignment/*.py from reference/*.py."""
    from grader.handout import publish

    files = _stubs(root)
    if not check:
        changed = publish.write(files, root / "assignment")
        click.echo(f"assignment: {len(changed)} of {len(files)} files written, the others were up to date")
    elif _report(files, root / "assignment", strays=False):
        raise click.ClickException("run `grader handout stubs` and commit what it writes")


def _stubs(root: Path) -> dict[str, str]:
    from grader.handout import build

    try:
        return build.plan_stubs(root)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None


def _planned(root: Path, term: Path | None, folder: Path) -> Handout:
    """Runs the reference for the pictures and plans everything. What does not fit is one clear error."""
    from jinja2 import TemplateError, TemplateSyntaxError

    from grader.checking import catalog
    from grader.checking.course import COURSE, read_course
    from grader.handout import build
    from grader.handout.figures import draw_figures
    from grader.world import Launcher

    try:
        course = read_course(root / COURSE, term)
        listed = catalog.load(catalog.FOLDERS, root=root)
        _stubs(root)  # a wrong tag is said before the worlds run
        with _status("running the reference for the pictures"), Launcher() as launcher:
            figures = draw_figures(root, launcher)
        with _status("pages, notebooks, PDF and zip"):
            return build.plan_handout(root, course, listed, figures, before=_before(folder))
    except TemplateSyntaxError as error:
        raise click.ClickException(f"{error.filename}:{error.lineno}: {error.message}") from None
    except (ValueError, OSError, TemplateError) as error:
        raise click.ClickException(str(error)) from None


def _status(words: str) -> Any:
    from rich.console import Console

    console = Console(stderr=True)
    return console.status(words)  # shows nothing where there is no terminal


def _before(folder: Path) -> list[Mapping[str, Any]]:
    """The checks of the last build in the folder; none where there was none."""
    from grader.handout import facts

    path = folder / "student" / facts.FILE_NAME
    try:
        checks: list[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["checks"]
    except (OSError, ValueError, KeyError):
        return []  # only a message would have used them
    return checks


def _facts(place: str) -> Facts:
    """The facts at a folder, a zip or a revision."""
    from grader.handout.compare import members
    from grader.handout.facts import FILE_NAME

    path = Path(place)
    if path.is_dir():
        for candidate in (path / below / FILE_NAME for below in ("", "student", BUILT / "student")):
            if candidate.is_file():
                return _parsed(candidate.read_bytes())
        raise click.UsageError(f"{place} holds no {FILE_NAME}")
    if path.is_file():
        try:
            inside = [data for name, data in members(path.read_bytes()).items() if name.endswith(FILE_NAME)]
        except zipfile.BadZipFile:
            raise click.UsageError(f"{place} is no zip") from None
        if not inside:
            raise click.UsageError(f"{place} holds no {FILE_NAME}")
        return _parsed(inside[0])
    revision = f"{place}:{(BUILT / 'student' / FILE_NAME).as_posix()}"
    shown = subprocess.run(["git", "show", revision], capture_output=True, check=False)
    if shown.returncode:
        raise click.UsageError(f"{place} is no folder, no zip, and no revision with {BUILT}/student/{FILE_NAME}")
    return _parsed(shown.stdout)


def _parsed(data: bytes) -> Facts:
    value: Facts = json.loads(data)
    return value


def _report(files: Mapping[str, Content], folder: Path, *, strays: bool) -> list[str]:
    """Says which files are not as planned, and returns the names of those that are committed."""
    from grader.handout import compare

    different = compare.differing(files, folder)
    for name in different:
        click.echo(f"{folder / name} is not what its sources make", err=True)
    different = [name for name in different if not name.endswith(compare.BUILT_ONLY)]
    stray = compare.strays(files, folder) if strays else []
    for name in stray:
        click.echo(f"{folder / name} is made by nothing", err=True)
    return different + stray
