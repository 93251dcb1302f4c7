"""Markdown tokens that get a class, a name or a head: quotations, lists, tables. They are changed in place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from markdown_it.token import Token

LONG = 40  # characters; a table's cell with more is a sentence, and gets room for one
_LETTERED = re.compile(r"\([a-z]\) ")


def raw(html: str, kind: str = "html_block") -> Token:
    return Token(kind, "", 0, content=html)


def reachable(label: str) -> str:
    return f'tabindex="0" role="group" aria-label="{escape(label)}"'


def text_of(token: Token) -> str:
    """What a reader sees of an inline token or an image, without marks."""
    if token.children:
        return "".join(text_of(child) for child in token.children)
    return " " if token.type in ("softbreak", "hardbreak") else token.content


def is_picture(inline: Token) -> bool:
    return any(child.type == "image" for child in (inline.children or [])[:1])


def is_box(tokens: Sequence[Token], at: int) -> bool:
    """True for a blockquote whose first paragraph is bold from beginning to end: its title."""
    if tokens[at + 1].type != "paragraph_open":
        return False
    kinds = [child.type for child in tokens[at + 2].children or [] if child.content or child.type != "text"]
    return kinds[:1] == ["strong_open"] and kinds[-1:] == ["strong_close"] and kinds.count("strong_open") == 1


def is_lettered(tokens: Sequence[Token], at: int) -> bool:
    """True for a list whose items begin with (a), (b), ...: they need no bullets."""
    depth = tokens[at].level
    items = []
    for index in range(at + 1, len(tokens)):
        if tokens[index].level == depth:
            break
        if tokens[index].type == "list_item_open" and tokens[index].level == depth + 1:
            items.append(text_of(tokens[index + 2]))
    return all(_LETTERED.match(item) for item in items)


def make_box(tokens: Sequence[Token], at: int) -> None:
    closing = next(
        token for token in tokens[at:] if token.type == "blockquote_close" and token.level == tokens[at].level
    )
    tokens[at].tag = closing.tag = "div"
    tokens[at].attrs = {"class": "box", "role": "note"}
    tokens[at + 1].attrSet("class", "box-title")


def name_cells(tokens: Sequence[Token], at: int) -> str:
    """Says of each cell of a table what it heads, and returns the table's name.

    A column's head that is empty is no head. Where the first column has none, its cells head their rows.
    """
    end = next(index for index in range(at, len(tokens)) if tokens[index].type == "table_close")
    heads = [index for index in range(at, end) if tokens[index].type == "th_open"]
    texts = [text_of(tokens[index + 1]).strip() for index in heads]
    for index, text in zip(heads, texts, strict=True):
        if text:
            tokens[index].attrSet("scope", "col")
        else:
            tokens[index].tag = tokens[index + 2].tag = "td"
    for index in range(heads[-1] + 3, end):
        if tokens[index].type == "td_open" and len(text_of(tokens[index + 1])) > LONG:
            tokens[index].attrSet("class", "long")
    if not texts[0]:
        for index in range(heads[-1] + 3, end):
            if tokens[index].type == "tr_open" and text_of(tokens[index + 2]).strip():
                tokens[index + 1].tag = tokens[index + 3].tag = "th"
                tokens[index + 1].attrSet("scope", "row")
    return "Table: " + ", ".join(text for text in texts if text)
