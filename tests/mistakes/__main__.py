"""`make mistakes`: grades each classic mistake and shows the first line that its student reads."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from tests.mistakes.rows import missing, numbers_of, tasks_of
from tests.mistakes.running import run
from tests.mistakes.titles import TITLES
from tests.mistakes.views import as_json, as_markdown, as_text


def _numbers(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    try:
        return numbers_of(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    help="Grade each classic mistake as a submission. Exit code 1 if one has no submission, or is not caught.",
    epilog="""\b
Example:
  python -m tests.mistakes --rows 1-15,25 --markdown""",
)
@click.option(
    "--rows",
    "numbers",
    default=f"{min(TITLES)}-{max(TITLES)}",
    callback=_numbers,
    show_default=True,
    help="Numbers of mistakes.",
)
@click.option("--every", is_flag=True, help="All checks that a submission must fail, not the first alone.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Worlds at a time.")
@click.option("--markdown", "view", flag_value="markdown", help="A table to paste.")
@click.option("--json", "view", flag_value="json", help="For programs.")
def main(numbers: list[int], every: bool, jobs: int, view: str | None) -> None:
    """Prints the table."""
    tasks = tasks_of(numbers, every=every)
    bar = (
        click.progressbar(run(tasks, jobs=jobs), length=len(tasks), label="mistakes", file=sys.stderr)
        if sys.stderr.isatty()
        else nullcontext(run(tasks, jobs=jobs))
    )
    with bar as rows:
        done = {row.task: row for row in rows}
    ordered = [done[task] for task in tasks]
    without = missing(numbers, tasks)
    show = {"markdown": as_markdown, "json": as_json}.get(view or "", as_text)
    click.echo(show(ordered, without), nl=False)
    sys.exit(1 if without or not all(row.caught for row in ordered) else 0)


if __name__ == "__main__":
    main()
