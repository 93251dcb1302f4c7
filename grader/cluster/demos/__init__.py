"""Small programs that run a submission on its ranks, and the timelines that they make."""

from grader.cluster.demos.demo import DemoFailed
from grader.cluster.demos.drawing import draw
from grader.cluster.demos.every import DEMOS

__all__ = ["DEMOS", "DemoFailed", "draw"]
