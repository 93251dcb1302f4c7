"""Solution lines in what students see, found by tokens: spacing and the kind of file do not hide them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.handout import tags

SHORTEST = 6  # tokens; a shorter line (`return result`) says nothing by itself


@dataclass(frozen=True)
class HiddenLine:
    """A line of a solution: file and line of the tagged source, its text, and the token streams to look for."""

    filename: str
    line: int
    text: str
    needles: tuple[str, ...]


def hidden_lines(sources: Mapping[str, str]) -> list[HiddenLine]:
    """The lines inside the blocks of `sources` (filename -> tagged source) that nobody may see. Pure.

    A line counts if its code or its comment has at least SHORTEST tokens (words and punctuation marks) and does not
    stand outside the blocks of any source as well. What opens a bracket at its end (`CHOICES = {`) may also stand in
    a STUB line of its block (`CHOICES = {}`): it gives nothing of the contents away. Order: by file, then line.
    """
    open_to_all = "\n".join(_stream(tags.outside(source, filename)) for filename, source in sources.items())
    hidden = []
    for filename, source in sorted(sources.items()):
        for block in tags.parse(source, filename):
            stub = _stream("\n".join(block.stub))
            first = block.begin + 1 + len(block.stub)
            for line, text in enumerate(block.solution, first):
                streams = [_stream(part) for part in _code_and_comment(text)]
                needles = tuple(
                    stream
                    for stream in streams
                    if stream.count(" ") > SHORTEST
                    and stream not in open_to_all
                    and not (stream.endswith(("( ", "[ ", "{ ")) and stream in stub)
                )
                if needles:
                    hidden.append(HiddenLine(filename, line, text.strip(), needles))
    return hidden


def find_leaks(output: str, hidden: Sequence[HiddenLine]) -> list[HiddenLine]:
    """The hidden lines that can be read in `output`, text of any kind. Pure."""
    seen = _stream(output)
    return [line for line in hidden if any(needle in seen for needle in line.needles)]


def _stream(text: str) -> str:
    """The tokens of any text, each between single spaces, so that `in` finds whole tokens only."""
    return " " + "".join(f"{token} " for token in re.findall(r"\w+|[^\w\s]", text))


def _code_and_comment(line: str) -> tuple[str, str]:
    if line.lstrip().startswith("#"):
        return "", line.lstrip().lstrip("#")
    code, _, comment = line.partition("  # ")
    return code, comment
