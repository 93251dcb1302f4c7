"""What staff get and students must not: the solutions without tags, and the questions with their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import Environment

from grader.handout import tags
from grader.handout.questions import Answer


def plan_staff(
    sources: Mapping[str, str], answers: Sequence[Answer], environment: Environment, modules: Sequence[str]
) -> dict[str, str]:
    """The files of built/staff/ but for its notebooks: solutions/MODULE.py and answers.md. Pure."""
    given = [answer for answer in answers if answer.question.module in modules]
    files = {f"solutions/{module}.py": tags.solved(sources[f"{module}.py"], f"{module}.py") for module in modules}
    return files | {"answers.md": environment.get_template("answers.md.j2").render(answers=given, modules=modules)}
