"""Whose line asks for an operation: found by walking up the stack, a microsecond a call."""

from __future__ import annotations

import sys
from types import FrameType

from grader.world.operation import NOWHERE, Place


class Places:
    """Knows the files of this rank: the submission's, the program's, and grader.given."""

    def __init__(self, *, submission: str, program: str, given: str = "") -> None:
        self._askers = {program: "program", given: "given", submission: "submission"}
        self._askers.pop("", None)

    def caller(self) -> Place:
        """The innermost line of the submission, and who asked torch: the innermost of the files known.

        The program's innermost line, where the submission has none on the stack.
        """
        frame: FrameType | None = sys._getframe(1)
        asker = ""
        outer: Place = NOWHERE
        while frame is not None:
            code = frame.f_code
            kind = self._askers.get(code.co_filename)
            if kind is not None:
                asker = asker or kind
                here = Place(code.co_filename, frame.f_lineno, code.co_qualname, asker)
                if kind == "submission":
                    return here
                if outer is NOWHERE or (kind == "program" and outer.file != here.file):
                    outer = here
            frame = frame.f_back
        return outer
