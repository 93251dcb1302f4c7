"""Solution lines in what students see, found by tokens: spacing and the kind of file do not hide them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from grader.handout import tags

SHORTEST = 6  # tokens; a shorter line (`return result`) says nothing by itself


@dataclass(frozen=True)
class Leak:
    """A line of a solution (file and line of the tagged source) that an output shows."""

    filename: str
    line: int
    text: str


def find_leaks(output: str, sources: Mapping[str, str]) -> list[Leak]:
    """The lines inside the blocks of `sources` (filename -> tagged source) that occur in `output`. Pure.

    A line counts if it has at least SHORTEST tokens (words and punctuation marks; comments apart from code)
    and does not stand outside the blocks of any source as well. Order: by file, then line.
    """
    seen = _stream(output)
    open_to_all = [_stream(tags.outside(source, filename)) for filename, source in sources.items()]
    leaks = []
    for filename, source in sorted(sources.items()):
        for block in tags.parse(source, filename):
            first = block.begin + 1 + len(block.stub)
            for line, text in enumerate(block.solution, first):
                needles = [_stream(part) for part in _code_and_comment(text)]
                if any(
                    needle.count(" ") > SHORTEST
                    and needle in seen
                    and not any(needle in stream for stream in open_to_all)
                    for needle in needles
                ):
                    leaks.append(Leak(filename, line, text.strip()))
    return leaks


def _stream(text: str) -> str:
    """The tokens of any text, each between single spaces, so that `in` finds whole tokens only."""
    return " " + "".join(f"{token} " for token in re.findall(r"\w+|[^\w\s]", text))


def _code_and_comment(line: str) -> tuple[str, str]:
    code, _, comment = line.partition("  # ")
    return (code, comment) if code.strip() else ("", comment)
