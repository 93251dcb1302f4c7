"""The pictures of the handout, with values that came back from runs of the reference."""

from grader.handout.figures.drawing import draw_figures
from grader.handout.figures.running import FigureError

__all__ = ["FigureError", "draw_figures"]
