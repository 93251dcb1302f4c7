"""`grader explain`: the door of this room to the command line."""

from __future__ import annotations

from pathlib import Path

import click

from grader.batch.lookup import NotFoundError, book_in, check_among, submission_in
from grader.batch.schema import GradebookError


@click.command(
    "explain",
    short_help="Say why a submission lost its points.",
    epilog="""\b
Example:
  grader explain ada --out grades
  grader explain ada --out grades --check collectives.broadcast""",
)
@click.argument("student")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder that `grader grade` wrote to.")
@click.option("--check", metavar="NAME", help="Only this check; also when it passes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with what the ranks printed, instead of text.")
def explain(student: str, out: Path, check: str | None, as_json: bool) -> None:
    """Say for each point that STUDENT lost why, and how to see it again.

    For staff: hidden checks are shown in full, with what the submission printed and raised there. What a student may
    read is in OUT/STUDENT/feedback.md. Nothing is run: all is read from the gradebook.
    """
    from grader.report.explanation import check_text, explanation_json, submission_text

    try:
        book = book_in(out)
        graded = submission_in(book, student, out)
        names = [spec.name for spec in book.checks]
        only = None if check is None else book.checks[names.index(check_among(names, check))]
    except (NotFoundError, GradebookError) as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        text = explanation_json(book, graded, out=out, only=only)
    else:
        text = submission_text(book, graded, out=out) if only is None else check_text(only, graded, out=out)
    click.echo(text, nl=False)
