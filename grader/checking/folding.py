"""Text in lines of a bounded width, in which tables and lists keep their lines."""

from __future__ import annotations

import textwrap

WIDTH = 80  # columns of what is shown in a terminal


def folded(text: str, width: int, *, hang: str = "", cut_words: bool = True) -> str:
    """Lines of at most `width`, each folded by itself: a line that fits, such as a row of a table, stays as it is.

    hang:      how far the rest of a folded line is set back, from where the line itself begins.
    cut_words: a word that is longer than a line is cut; otherwise it stays whole, as a path has to.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())][: width // 2]
        kept = [line] if len(line) <= width else _wrapped(line, width, indent + hang, cut_words)
        lines += kept or [""]
    return "\n".join(lines)


def _wrapped(line: str, width: int, indent: str, cut_words: bool) -> list[str]:
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=cut_words)
