"""`grader draw`: the door of this room to the command line."""

from __future__ import annotations

from pathlib import Path

import click

MODULES = ("collectives", "benchmark", "data_parallel", "tensor_parallel", "pipeline_parallel")
MAX_RANKS = 16


@click.command(
    "draw",
    short_help="Draw what your ranks do, step by step.",
    epilog="""\b
Example:
  grader draw pipeline_parallel
  grader draw collectives --world 3 --out ring.svg""",
)
@click.argument("module", type=click.Choice(MODULES), metavar="MODULE")
@click.option(
    "--submission",
    type=click.Path(path_type=Path),
    default=Path("assignment"),
    show_default=True,
    help="The folder with your modules.",
)
@click.option("--world", type=click.IntRange(1, MAX_RANKS), metavar="N", help="How many ranks; default: the example's.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.svg", help="Default: timeline-NAME.svg, here.")
def draw(module: str, submission: Path, world: int | None, out: Path | None) -> int:
    """Run an example on your MODULE and draw a timeline of it: what each rank computes and sends, and where it waits.

    MODULE is collectives, benchmark, data_parallel, tensor_parallel or pipeline_parallel. A step in the picture is
    a unit of order, not of time. Several pictures of one module are written as FILE-NAME.svg. Exit code 1: your code
    did not get to the end (it is said why).
    """
    from grader.cluster.demos import DemoFailed
    from grader.cluster.demos import draw as draw_figures
    from grader.world import InfraError, Launcher, Submitted

    if out is not None and out.suffix != ".svg":
        raise click.UsageError(f"--out is {out}; expected a name that ends in .svg")
    path = submission / f"{module}.py"
    try:
        submitted = Submitted(module, path.read_bytes(), path.name)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with Launcher() as launcher:
            figures = draw_figures(module, submitted, launcher, ranks=world)
    except DemoFailed as failed:
        click.echo(str(failed), err=True)
        return 1
    except InfraError as error:
        raise click.UsageError(str(error)) from None
    for figure in figures:
        file = _file_of(figure.name, out, alone=len(figures) == 1)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(figure.picture.svg(), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"{file} cannot be written: {error.strerror}") from None
        click.echo(f"{file}: {figure.alt}")
    return 0


def _file_of(name: str, out: Path | None, *, alone: bool) -> Path:
    """Where a picture goes: "timeline-naive" to FILE-naive.svg; to FILE.svg where it is the only one."""
    if out is None:
        return Path(f"{name}.svg")
    return out if alone else out.with_name(f"{out.stem}-{name.removeprefix('timeline-')}.svg")
