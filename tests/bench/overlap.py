"""`python -m tests.bench.overlap`: whether wrappers that overlap keep their points, whatever else the cores do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import click

from grader.checking import Status
from grader.checking.spec import MODULES
from grader.checking.submission import Submission
from grader.world import Launcher
from tests.harness import mutation
from tests.mutants.data_parallel_texts import IN_FLIGHT


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute, while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def solutions() -> dict[str, Submission]:
    """The reference, and the right solutions written differently that the checks of overlap can see."""
    files = {name: (mutation.ROOT / "reference" / f"{name}.py").read_bytes() for name in MODULES}
    variants = [one for one in mutation.variants_of("data_parallel") if set(IN_FLIGHT) <= {*(one.checks or IN_FLIGHT)}]
    return {"reference": Submission(files, {}), **{one.name: mutation.edited("data_parallel", one) for one in variants}}


@click.command(help="Run the checks of overlap on right solutions again and again, beside busy loops; 1 if one loses.")
@click.option("--runs", type=click.IntRange(min=1), default=200, show_default=True, help="Of each check and solution.")
@click.option("--load", type=click.IntRange(min=0), default=os.cpu_count() or 1, show_default=True, help="Busy loops.")
def main(runs: int, load: int) -> None:
    """Prints, for each solution and check, how many runs kept the points."""
    checks = mutation.checks()
    kept: Counter[tuple[str, str]] = Counter()
    tried = solutions()
    bar = click.progressbar(range(runs), label="runs", file=sys.stderr)  # it is seen on a terminal alone
    with busy_loops(load), Launcher() as launcher, bar as numbers:
        for number in numbers:
            for (name, submission), check in ((one, check) for one in tried.items() for check in IN_FLIGHT):
                verdict = mutation.verdict_of(checks[check], submission, launcher)
                kept[name, check] += verdict.status is Status.PASS
                if verdict.status is not Status.PASS:
                    click.echo(f"run {number}, {name}, {check}: {verdict.status}\n{verdict.explanation}", err=True)
    click.echo(f"{load} busy loops on {os.cpu_count()} cores")
    for name in tried:
        for check in IN_FLIGHT:
            click.echo(f"{name:<40} {check:<40} {kept[name, check]:>4} of {runs}")
    sys.exit(0 if all(kept[name, check] == runs for name in tried for check in IN_FLIGHT) else 1)


if __name__ == "__main__":
    main()
