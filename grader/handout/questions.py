"""The multiple-choice questions of the accounting module, without their answers."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass


class QuestionError(ValueError):
    """The file of questions is malformed; the message names the file, the question and the field."""


@dataclass(frozen=True)
class Question:
    """A question as students see it: its id (the key in CHOICES), its text, and its options by letter."""

    id: str
    text: str
    options: tuple[tuple[str, str], ...]


def read_questions(text: str, filename: str) -> list[Question]:
    """The questions of a TOML file in its order: one table each, with question, options, answer and why.

    Pure. The answer is checked to be one of the letters and then dropped, with the explanation: no template
    can show what it never gets. Raises QuestionError.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QuestionError(f"{filename}: {error}") from None
    questions = []
    for key, table in tables.items():
        where = f"{filename}: [{key}]"
        if not isinstance(table, dict) or set(table) != {"question", "options", "answer", "why"}:
            raise QuestionError(f"{where} needs exactly the fields question, options, answer and why")
        options = table["options"]
        if not isinstance(options, dict) or len(options) < 2:
            raise QuestionError(f"{where} options is a table of at least two letters")
        if table["answer"] not in options:
            raise QuestionError(f"{where} answer is {table['answer']!r}, not one of {', '.join(options)}")
        questions.append(Question(key, table["question"].strip(), tuple(options.items())))
    return questions
