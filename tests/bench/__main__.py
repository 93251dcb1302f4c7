"""`make bench`: prints a row for each ratio that the project promises."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from grader.world import Failure, Launcher, World
from tests.bench.measure import medians_in_turn, seconds_of
from tests.bench.programs import all_receive, all_reduce_once, time_all_reduces
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


def traced_operations() -> None:
    """An all-reduce of the traced group against gloo's own, in the same world of 4 and in turn."""
    with Launcher() as launcher:
        for elements, size, repeats in ((1, "1 element", 60), (2**18, "1 MiB", 12)):
            world = World(SIZE, launcher=launcher, deadline=None)
            outcome = world.run(time_all_reduces, elements=elements, repeats=repeats, rounds=7)
            if isinstance(outcome, Failure):
                raise RuntimeError(outcome.text())
            bare, traced, by_handle = (
                statistics.median(values[0][kind] for values in outcome.values) for kind in range(3)
            )
            aim = "2.5" if elements == 1 else "1.2"
            row(f"all-reduce of {size}, world of {SIZE}, gloo alone", f"{1e6 * bare:.0f} µs")
            row("  traced", f"{traced / bare:.2f} times it", f"at most {aim}")
            row("  traced, asynchronous, on copies", f"{by_handle / bare:.2f} times it", f"at most {aim}")


def deadlocks() -> None:
    """From the last rank's wait to the end of the world, message and all, idle and with both cores loaded."""
    with Launcher() as launcher:
        for load in (0, os.cpu_count() or 1):
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
            try:
                latencies = sorted(_deadlock_seconds(launcher) for _ in range(20))
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
            what = "deadlock of 4 ranks found, world ended" + (f", {load} busy loops beside" if load else "")
            row(
                what,
                f"{1000 * statistics.median(latencies):.0f} ms (worst {1000 * latencies[-1]:.0f})",
                "at most 100 ms",
            )


def _deadlock_seconds(launcher: Launcher) -> float:
    outcome = World(SIZE, launcher=launcher, deadline=None).run(all_receive)
    ended = time.monotonic()
    if not isinstance(outcome, Failure) or outcome.report is None:
        raise RuntimeError("a deadlock was not found")
    return ended - max(float(text) for text in outcome.output)


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
    click.echo(f"{what:<52} {figure:>22}   {aim}")


if __name__ == "__main__":
    worlds()
    traced_operations()
    deadlocks()
    checks()
