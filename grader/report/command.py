"""`grader table`: the door of this room to the command line."""

from __future__ import annotations

from pathlib import Path

import click

from grader.batch.gradebook import FILE_NAME, read
from grader.batch.schema import GradebookError


@click.command(
    "table",
    short_help="Print the scores again.",
    epilog="""\b
Example:
  grader table grades""",
)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON instead of a table.")
def table(out: Path, as_json: bool) -> None:
    """Print the scores in the folder OUT that `grader grade` wrote, also while it is still at work."""
    from rich.console import Console

    from grader.report.summary import summary_json
    from grader.report.table import closing_text

    try:
        book = read(out / FILE_NAME)
    except GradebookError as error:
        raise click.UsageError(str(error)) from None
    click.echo(summary_json(book, out) if as_json else closing_text(book, out, terminal=Console()), nl=as_json)
