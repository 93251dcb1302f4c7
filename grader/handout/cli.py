"""The command line of the handouts: `python -m grader.handout stubs|pages [--check]`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from jinja2 import TemplateError, TemplateSyntaxError

from grader.checking import catalog
from grader.handout import build

ROOT = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="The checkout; the current folder by default.",
)
CHECK = click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not as it would be built.")


@click.group()
def handout() -> None:
    """Make what students get from the tagged reference, the checks and the templates."""


@handout.command("stubs")
@ROOT
@CHECK
def stubs_command(root: Path, check: bool) -> None:
    """Write assignment/*.py from reference/*.py."""
    try:
        files = build.plan_stubs(root)
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    _publish(files, root / "assignment", check, "stubs")


@handout.command("pages")
@ROOT
@CHECK
def pages_command(root: Path, check: bool) -> None:
    """Write a page and a notebook for each module to handouts/built."""
    try:
        listed = catalog.load([Path("tests/public"), Path("tests/hidden")], root=root)
        files = build.plan_pages(root, [check.spec for check in listed])
    except TemplateSyntaxError as error:
        raise click.ClickException(f"{error.filename}:{error.lineno}: {error.message}") from None
    except (ValueError, OSError, TemplateError) as error:
        raise click.ClickException(str(error)) from None
    _publish(files, root / "handouts" / "built", check, "pages")


def _publish(files: Mapping[str, str], folder: Path, check: bool, command: str) -> None:
    if not check:
        changed = build.write(files, folder)
        click.echo(f"{folder}: {len(changed)} of {len(files)} files written, the others were up to date")
        return
    different = build.differing(files, folder)
    for name in different:
        click.echo(f"{folder / name} is not what its sources make", err=True)
    if different:
        raise click.ClickException(f"run `python -m grader.handout {command}` and commit what it writes")
