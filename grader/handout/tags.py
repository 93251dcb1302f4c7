"""The tags that hide a solution: a strict parser, and the stub that is left when the solutions are taken out.

    # BEGIN SOLUTION
    # STUB: raise NotImplementedError("add the pieces in rank order")
    ... the solution ...
    # END SOLUTION

The block becomes its STUB lines, at the block's indentation; without STUB lines it vanishes. Blanks inside
and after a tag do not matter. Everything else that resembles a tag is an error: a misspelt tag would
publish the solution.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

EDGE = re.compile(r"#\s*(BEGIN|END)\s+SOLUTION\s*")
STUB = re.compile(r"#\s*STUB:[ \t]?(?P<text>.*?)\s*")
ADVICE = "the tags are `# BEGIN SOLUTION`, `# STUB: text` and `# END SOLUTION`, each on a line of its own"


class SourceError(ValueError):
    """A tagged source is wrong. The message begins with FILE:LINE."""

    def __init__(self, filename: str, line: int, message: str) -> None:
        super().__init__(f"{filename}:{line}: {message}")
        self.filename = filename
        self.line = line


@dataclass(frozen=True)
class Block:
    """One tagged block: `begin` and `end` are the lines of its tags, from 1, `indent` their indentation."""

    begin: int
    end: int
    indent: int
    stub: tuple[str, ...]
    solution: tuple[str, ...]


@dataclass(frozen=True)
class _Tag:
    kind: str  # BEGIN, END or STUB
    line: int
    indent: int
    text: str = ""


def resembles_tag(comment: str) -> bool:
    """Whether a comment, or a line of a string that holds a `#`, could have been meant as a tag."""
    words = re.findall(r"[A-Za-z]+", comment)
    if not words:
        return False
    letters = "".join(words).lower()
    if any(SequenceMatcher(None, letters, tag).ratio() >= 0.8 for tag in ("beginsolution", "endsolution")):
        return True
    if words[0] in {"BEGIN", "END", "PROMPT"} or {"SOLUTION", "SOLUTIONS"} & set(words):
        return True
    head = re.match(r"[#\s]*([A-Za-z]+)\s*:", comment)
    misspelt = head is not None and SequenceMatcher(None, head[1].lower(), "stub").ratio() >= 0.75
    return misspelt or words[0].lower().startswith("stub")


def parse(source: str, filename: str) -> list[Block]:
    """The blocks of a module's source, in order. Pure; `filename` only names the file in errors.

    Raises SourceError for source that does not compile, for a tag that is unknown, misspelt, unbalanced,
    nested, not on a line of its own or inside a string or brackets, and for a block that is empty or does
    not hold whole statements of one suite.
    """
    _compile(source, filename)
    lines = source.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    starts = _statement_starts(tokens)
    blocks: list[Block] = []
    begin: _Tag | None = None
    stub: list[_Tag] = []
    for tag in _tags(tokens, filename):
        if tag.kind == "BEGIN":
            if begin is not None:
                raise SourceError(
                    filename, tag.line, f"BEGIN SOLUTION inside the block that begins at line {begin.line}"
                )
            begin, stub = tag, []
        elif begin is None:
            raise SourceError(filename, tag.line, f"{tag.kind} without a BEGIN SOLUTION above it")
        elif tag.kind == "STUB":
            stub.append(tag)
        else:
            inside = {line: column for line, column in starts.items() if begin.line < line < tag.line}
            _check_block(begin, stub, tag, inside, filename)
            hidden = lines[begin.line + len(stub) : tag.line - 1]
            blocks.append(Block(begin.line, tag.line, begin.indent, tuple(line.text for line in stub), tuple(hidden)))
            begin = None
    if begin is not None:
        raise SourceError(filename, begin.line, "BEGIN SOLUTION without an END SOLUTION below it")
    return blocks


def stub(source: str, filename: str) -> str:
    """The source with each block replaced by its STUB lines. Pure.

    Where a block vanishes, the blank lines around it become as many as the larger side had, two at most.
    Raises SourceError as `parse` does, and where the stub would not compile.
    """
    lines = list(enumerate(source.split("\n"), 1))
    kept: list[tuple[int, str]] = []  # each line of the stub with the line of the source that it came from
    position = 0
    for block in parse(source, filename):
        kept += lines[position : block.begin - 1]
        position = block.end
        if block.stub:
            kept += [(block.begin, " " * block.indent + text) for text in block.stub]
            continue
        before, after = _blank_count(reversed(kept)), _blank_count(lines[position:])
        kept = kept[: len(kept) - before] + [(block.begin, "")] * min(2, max(before, after))
        position += after
    kept += lines[position:]
    text = "\n".join(text for _, text in kept).rstrip("\n") + "\n"
    try:
        compile(text, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        line, _ = kept[min(error.lineno or 1, len(kept)) - 1]
        reason = re.sub(r" on line \d+", "", error.msg)  # a line of the stub would mislead
        raise SourceError(filename, line, f"the stub does not compile here: {reason}") from None
    return text


def outside(source: str, filename: str) -> str:
    """The source without its blocks and without their STUB lines: what students see in any case. Pure."""
    hidden = {line for block in parse(source, filename) for line in range(block.begin, block.end + 1)}
    return "\n".join(text for line, text in enumerate(source.split("\n"), 1) if line not in hidden)


def solved(source: str, filename: str) -> str:
    """The source without its tags: each block is its solution, and everything else as it was. Pure.

    Where a tag vanishes, the blank lines around it become as many as the larger side had.
    Raises SourceError as `parse` does.
    """
    blocks = parse(source, filename)
    tagged = {line for block in blocks for line in (*range(block.begin, block.begin + 1 + len(block.stub)), block.end)}
    kept: list[tuple[int, str]] = []
    allowed: int | None = None  # blank lines that may still come where a tag was; None: any number
    for line, text in enumerate(source.split("\n"), 1):
        if line in tagged:
            allowed = 0
        elif allowed is None or text.strip():
            kept.append((line, text))
            allowed = None
        else:  # a blank line below a tag takes the place of one above it
            allowed += 1
            if allowed > _blank_count(reversed(kept)):
                kept.append((line, text))
    return "\n".join(text for _, text in kept).rstrip("\n") + "\n"


def _compile(source: str, filename: str) -> None:
    try:
        ast.parse(source, filename)
    except SyntaxError as error:
        raise SourceError(filename, error.lineno or 1, f"not valid Python: {error.msg}") from None


def _tags(tokens: list[tokenize.TokenInfo], filename: str) -> Iterator[_Tag]:
    depth = 0
    for token in tokens:
        line, column = token.start
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.COMMENT:
            edge, text = EDGE.fullmatch(token.string), STUB.fullmatch(token.string)
            if edge is None and text is None:
                if resembles_tag(token.string):
                    raise SourceError(filename, line, f"{token.string!r} looks like a tag and is none; {ADVICE}")
                continue
            if token.line[:column].strip():
                raise SourceError(filename, line, f"a tag after code; {ADVICE}")
            if depth:
                raise SourceError(filename, line, "a tag inside brackets; a block holds whole statements")
            yield (_Tag(edge[1], line, column) if edge else _Tag("STUB", line, column, text["text"] if text else ""))
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)):
            for offset, text_line in enumerate(token.string.split("\n")):
                _, mark, rest = text_line.partition("#")
                if mark and resembles_tag(rest):
                    raise SourceError(filename, line + offset, f"a tag inside a string; {ADVICE}")


def _statement_starts(tokens: list[tokenize.TokenInfo]) -> dict[int, int]:
    """Line -> column of the first token of every logical line."""
    layout = {
        tokenize.NL,
        tokenize.COMMENT,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.NEWLINE,
        tokenize.ENDMARKER,
    }
    starts: dict[int, int] = {}
    fresh = True
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            fresh = True
        elif fresh and token.type not in layout:
            starts[token.start[0]] = token.start[1]
            fresh = False
    return starts


def _check_block(begin: _Tag, stub: list[_Tag], end: _Tag, starts: dict[int, int], filename: str) -> None:
    if end.indent != begin.indent:
        message = f"END SOLUTION is indented by {end.indent}, its BEGIN at line {begin.line} by {begin.indent}"
        raise SourceError(filename, end.line, message)
    for offset, tag in enumerate(stub, 1):
        if tag.line != begin.line + offset:
            raise SourceError(filename, tag.line, "STUB lines come straight after BEGIN SOLUTION, before the code")
        if not tag.text:
            raise SourceError(filename, tag.line, "a STUB line without text; without STUB lines the block vanishes")
    if not starts:
        raise SourceError(filename, begin.line, "a block without code hides nothing")
    for number, (line, column) in enumerate(starts.items()):
        if column < begin.indent or (number == 0 and column != begin.indent):
            message = f"code indented by {column} in a block whose tags are indented by {begin.indent}"
            raise SourceError(filename, line, message)


def _blank_count(lines: Iterable[tuple[int, str]]) -> int:
    return sum(1 for _ in takewhile(lambda line: not line[1].strip(), lines))
