"""Code in colour: `xcode` in light and on paper, `monokai` in dark, the pair whose colours all can be read."""

from __future__ import annotations

from functools import lru_cache
from html import escape

from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

LIGHT = "xcode"
DARK = "monokai"
PLAIN = ("", "text")


@lru_cache(maxsize=1024)
def highlighted(source: str, language: str) -> str:
    """The source as HTML spans with Pygments' class names, escaped, without <pre>. Pure.

    language: what stands behind the fence; "" and "text" stay plain. Raises ValueError for one unknown to Pygments.
    """
    if language in PLAIN:
        return escape(source, quote=False)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        raise ValueError(f"code in {language!r}, a language that Pygments does not know") from None
    return str(highlight(source, lexer, HtmlFormatter(nowrap=True)))


def screen_rules() -> str:
    """CSS for the colours of code on screen and when a page is printed from the browser.

    The two sets of rules exclude each other: one laid over the other would leak bold and italics.
    """
    return (
        "@media print, (prefers-color-scheme: light) {\n"
        + _rules(LIGHT)
        + "\n}\n@media screen and (prefers-color-scheme: dark) {\n"
        + _rules(DARK)
        + "\n}\n"
    )


def paper_rules() -> str:
    """CSS for the colours of code in the PDF."""
    return _rules(LIGHT) + "\n"


def _rules(style: str) -> str:
    """One rule for each kind of token but two.

    A docstring is a contract here, and is read as text. What the lexer does not know stays as it is: `monokai` would
    make it too dark to read.
    """
    formatter = HtmlFormatter(style=style)
    rules = formatter.get_token_style_defs(".code")
    return "\n".join(sorted(rule for rule in rules if not rule.startswith((".code .sd ", ".code .err "))))
