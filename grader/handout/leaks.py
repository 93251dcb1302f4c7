"""Solution lines in what students see, found by tokens: spacing and the kind of file do not hide them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from grader.handout import notebook, pdf, tags

SHORTEST = 6  # tokens; a shorter line (`return result`) says nothing by itself
PASSAGE = 3  # lines in a row


@dataclass(frozen=True)
class HiddenLine:
    """A line of a solution: file and line of the tagged source, its text, and the token streams to look for."""

    filename: str
    line: int
    text: str
    needles: tuple[str, ...]


def hidden_lines(sources: Mapping[str, str], given: Sequence[str] = ()) -> list[HiddenLine]:
    """The lines inside the blocks of `sources` (filename -> tagged source) that nobody may see. Pure.

    A line counts if its code or its comment has at least SHORTEST tokens (words and punctuation marks) and does not
    stand outside the blocks of any source as well. What opens a bracket at its end (`CHOICES = {`) may also stand in
    a STUB line of its block (`CHOICES = {}`): it gives nothing of the contents away. Order: by file, then line.

    given: texts that students have anyway, such as grader/given.py; what stands in them is not hidden.
    """
    open_to_all = _open_to_all(sources, given)
    hidden = []
    for filename, block, lines in _blocks(sources):
        stub = _stream("\n".join(block.stub))
        for line, text in lines:
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


def hidden_passages(sources: Mapping[str, str], given: Sequence[str] = ()) -> list[HiddenLine]:
    """Every PASSAGE lines of code in a row inside a block, as one needle: what may not stand in the harness's own code.

    Two programs on one subject share single lines (`super().__init__()`) without telling each other anything; a row of
    lines is a solution. Comments and blank lines do not part a row. Pure; see `hidden_lines`.
    """
    open_to_all = _open_to_all(sources, given)
    hidden = []
    for filename, _, lines in _blocks(sources):
        codes = [(line, text, _stream(_code_and_comment(text)[0])) for line, text in lines]
        codes = [row for row in codes if row[2].strip()]
        for start in range(len(codes) - PASSAGE + 1):
            rows = codes[start : start + PASSAGE]
            needle = " " + "".join(code.removeprefix(" ") for _, _, code in rows)
            if needle.count(" ") > PASSAGE * SHORTEST and needle not in open_to_all:
                line, text, _ = rows[0]
                hidden.append(HiddenLine(filename, line, text.strip(), (needle,)))
    return hidden


def _blocks(sources: Mapping[str, str]) -> Iterator[tuple[str, tags.Block, list[tuple[int, str]]]]:
    """Each block with its file and the lines of its solution, numbered; by file, then line."""
    for filename, source in sorted(sources.items()):
        for block in tags.parse(source, filename):
            yield filename, block, list(enumerate(block.solution, block.begin + 1 + len(block.stub)))


def _open_to_all(sources: Mapping[str, str], given: Sequence[str]) -> str:
    outside = [tags.outside(source, filename) for filename, source in sources.items()]
    return "\n".join(map(_stream, [*outside, *given]))


def find_leaks(output: str, hidden: Sequence[HiddenLine]) -> list[HiddenLine]:
    """The hidden lines that can be read in `output`, text of any kind. Pure."""
    seen = _stream(output)
    return [line for line in hidden if any(needle in seen for needle in line.needles)]


def text_of(name: str, content: str | bytes) -> str:
    """What can be read in a generated file, by its kind: HTML without its tags, a notebook's cells.

    Pictures, fonts and other bytes that are no text hold nothing to read. Pure.
    """
    suffix = PurePosixPath(name).suffix
    if suffix == ".pdf" and isinstance(content, bytes):
        return "\n".join(pdf.text_of(content))
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    if suffix == ".html":
        return html.unescape(re.sub(r"<[^>]*>", "", text))
    if suffix == ".ipynb":
        return notebook.readable_text(text)
    return text


def _stream(text: str) -> str:
    """The tokens of any text, each between single spaces, so that `in` finds whole tokens only."""
    return " " + "".join(f"{token} " for token in re.findall(r"\w+|[^\w\s]", text))


def _code_and_comment(line: str) -> tuple[str, str]:
    if line.lstrip().startswith("#"):
        return "", line.lstrip().lstrip("#")
    code, _, comment = line.partition("  # ")
    return code, comment
