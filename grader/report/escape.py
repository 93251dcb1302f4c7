"""Text that others wrote, made harmless for each place where it is shown. Pure functions."""

from __future__ import annotations

import re

MARKDOWN_SIGNS = re.compile(r"[\\`*_\[\]|~$]|^[#+=-]")  # the second part: what is markup at the start of a line
NUMBERED_ITEM = re.compile(r"^(\d{1,9})([.)])")
FORMULA_STARTS = ("=", "+", "-", "@")


def plain(text: str) -> str:
    """Lines of printable characters. Anything else (escape sequences, controls that turn the direction of writing,
    half surrogates) is spelled out as in Python: \\x1b, \\u202e. A tab becomes four blanks."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return "".join(sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in text)


def one_line(text: str) -> str:
    """As `plain`, in one line without blanks at its ends or in a row."""
    return " ".join(plain(text).split())


def clipped(text: str, *, lines: int, signs: int) -> str:
    """The start of a long text, and a last line that says that it was cut."""
    kept = "\n".join(text.split("\n")[:lines])[:signs]
    return text if kept == text else f"{kept}\n[cut here]"


def markdown(text: str) -> str:
    """One line of Markdown that shows exactly `one_line(text)`: no markup, link, image, HTML, formula or list."""
    escaped = MARKDOWN_SIGNS.sub(r"\\\g<0>", one_line(text))
    escaped = NUMBERED_ITEM.sub(r"\1\\\2", escaped)
    # As entities and not with a backslash: renderers that know no backslash before < would pass HTML on.
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # GitHub and others turn addresses and names into links and notices.
    return escaped.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


def code(text: str) -> str:
    """A Markdown code span that shows `one_line(text)`."""
    body = one_line(text)
    mark = "`" * (1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{mark} {body} {mark}" if "`" in body else f"{mark}{body}{mark}"


def fenced(text: str, language: str = "text") -> str:
    """A Markdown code block that shows `plain(text)`; no run of backquotes in it can close the block."""
    body = plain(text).strip("\n")
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def spreadsheet(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    text = plain(text)
    return "'" + text if text.lstrip().startswith(FORMULA_STARTS) else text
