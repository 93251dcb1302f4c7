"""The questions of the pages: graded ones with letters, open ones without; and their answers, which staff alone get."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from grader.checking.spec import MODULES

FIELDS = {"choices": {"module", "question", "options", "answer", "why"}, "open": {"module", "question", "answer"}}


class QuestionError(ValueError):
    """The file of questions is malformed; the message names the file, the question and the field."""


@dataclass(frozen=True)
class Question:
    """A question as students see it. options: by letter; none for an open question. id: the key in CHOICES."""

    id: str
    module: str
    text: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def graded(self) -> bool:
        """Whether its letter counts, in accounting.CHOICES."""
        return bool(self.options)


@dataclass(frozen=True)
class Answer:
    """A question with its answer, for staff. letter: of the right option, "" for an open question."""

    question: Question
    letter: str
    text: str


def read_answers(text: str, filename: str) -> list[Answer]:
    """The questions and answers of a TOML file, in its order: tables [choices.ID] and [open.ID]. Pure.

    Raises QuestionError.
    """
    try:
        kinds = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QuestionError(f"{filename}: {error}") from None
    if unknown := sorted(set(kinds) - set(FIELDS)):
        raise QuestionError(f"{filename}: [{unknown[0]}] is neither [choices.ID] nor [open.ID]")
    return [_answer(kind, key, table, filename) for kind, tables in kinds.items() for key, table in tables.items()]


def _answer(kind: str, key: str, table: Any, filename: str) -> Answer:
    where = f"{filename}: [{kind}.{key}]"
    if not isinstance(table, dict) or set(table) != FIELDS[kind]:
        raise QuestionError(f"{where} needs exactly the fields {', '.join(sorted(FIELDS[kind]))}")
    if table["module"] not in MODULES:
        raise QuestionError(f"{where} module is {table['module']!r}, not one of {', '.join(MODULES)}")
    if kind == "open":
        return Answer(Question(key, table["module"], table["question"].strip()), "", table["answer"].strip())
    options = table["options"]
    if not isinstance(options, dict) or len(options) < 2:
        raise QuestionError(f"{where} options is a table of at least two letters")
    if table["answer"] not in options:
        raise QuestionError(f"{where} answer is {table['answer']!r}, not one of {', '.join(options)}")
    question = Question(key, table["module"], table["question"].strip(), tuple(options.items()))
    return Answer(question, table["answer"], table["why"].strip())
