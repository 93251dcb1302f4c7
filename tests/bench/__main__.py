"""`make bench`: prints a row for each ratio that the project promises."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from grader.world import Failure, Launcher, World
from tests.bench.measure import medians_in_turn, seconds_of
from tests.bench.programs import all_reduce_once
from tests.bench.spawning import BareForks, spawn_world

ROOT = Path(__file__).resolve().parents[2]
SIZE = 4


def worlds() -> None:
    """A world of 4 that does one all-reduce: ours, a bare fork, and torch's spawn."""
    with Launcher() as launcher, BareForks(SIZE) as bare_forks:

        def ours() -> None:
            outcome = World(SIZE, launcher=launcher).run(all_reduce_once)
            if isinstance(outcome, Failure):
                raise RuntimeError(outcome.text())

        own, bare = medians_in_turn([ours, bare_forks], rounds=30)
        spawn, own_again = medians_in_turn([lambda: spawn_world(SIZE), ours], rounds=3)
    row("world of 4, one all-reduce", f"{1000 * own:.0f} ms")
    row("  against a bare fork with gloo init", f"{own / bare:.2f} of it", "at most 1.50")
    row("  against torch.multiprocessing.spawn", f"{spawn / own_again:.0f} times faster", "at least 30")


def checks() -> None:
    """All checks on the reference in the jail, against `import torch`, two at a time."""
    importing = min(seconds_of(lambda: command([sys.executable, "-c", "import torch"])) for _ in range(3))
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--submission", "reference"]
    folders = ["tests/public", "tests/hidden"]
    jailed = seconds_of(lambda: command([*pytest, *folders, "--jail", "bubblewrap", "-n", "2"]))
    row("all checks on the reference, in the jail", f"{jailed:.1f} s")
    row("  against `import torch`", f"{jailed / importing:.1f} times it", "below 15")
    blank = seconds_of(lambda: command([*pytest[:-1], "assignment", *folders], expected=1))
    row("all checks on the stubs", f"{blank:.1f} s", "below 60 s")


def command(words: list[str], *, expected: int = 0) -> None:
    """Runs a command from the project's root; raises where it ends with another code than expected."""
    with tempfile.TemporaryFile() as output:
        code = subprocess.run(words, cwd=ROOT, stdout=output, stderr=output, env={**os.environ}, check=False).returncode
        if code != expected:
            output.seek(0)
            raise RuntimeError(f"{words} ended with {code}:\n{output.read().decode(errors='replace')[-3000:]}")


def row(what: str, figure: str, aim: str = "") -> None:
    """One line of the table."""
    click.echo(f"{what:<44} {figure:>18}   {aim}")


if __name__ == "__main__":
    worlds()
    checks()
