"""All timelines of a module of a submission."""

from __future__ import annotations

from grader.cluster.demos.every import DEMOS
from grader.cluster.svg import Figure
from grader.world import Launcher, Submitted


def draw(module: str, submission: Submitted, launcher: Launcher, *, ranks: int | None = None) -> list[Figure]:
    """Runs the demos of `module` and draws them, in their order. ranks: how many; None is each demo's own number.

    Raises DemoFailed where the submission's world failed, and ValueError for a module that has no demo.
    """
    if module not in DEMOS:
        raise ValueError(f"module is {module!r}; expected one of {', '.join(DEMOS)}")
    return [demo.figure(demo.run(submission, launcher, ranks=ranks)) for demo in DEMOS[module]]
