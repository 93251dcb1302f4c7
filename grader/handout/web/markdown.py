"""A page's Markdown as HTML. Its tokens are rewritten (boxes, figures, formulas, code, links), then rendered.

Everything wide (a table, code, an equation, a picture) lies in a box of its own that scrolls sideways, can be reached
with the keyboard and has a name, so that the page itself never scrolls sideways on a phone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Protocol

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from grader.handout.web.code import highlighted
from grader.handout.web.links import PageError, Target, read_link, slug_of
from grader.handout.web.mathematics import FormulaError, MathOutput, Typesetter
from grader.handout.web.tokens import (
    LONG,
    is_box,
    is_lettered,
    is_picture,
    make_box,
    name_cells,
    raw,
    reachable,
    text_of,
)

_FIGURE = re.compile(r"figures/([\w-]+)\.svg")
_BREAKABLE = re.compile(r"(?<=\w)([._/])(?=\w)")  # a long name may go on in the next line behind one of these


class Medium(Protocol):
    """What differs between the page set and the document for paper."""

    @property
    def math(self) -> MathOutput: ...

    def anchor(self, place: Target) -> str:
        """The id of a heading."""

    def address(self, place: Target, page: str) -> str:
        """The href of a link on `page` to a place of the handout."""

    def image(self, name: str, alt: str) -> str:
        """The <img> of the figure `name`. Raises KeyError if there is no such figure."""


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 or more: its slug, and its contents as HTML without links."""

    level: int
    slug: str
    html: str


@dataclass(frozen=True)
class Rendered:
    """A page: its level-1 heading as text and as HTML, what follows it, the headings there, and its links' targets."""

    title: str
    title_html: str
    body: str
    headings: tuple[Heading, ...]
    targets: tuple[Target, ...]


def render(text: str, page: str, medium: Medium, typesetter: Typesetter) -> Rendered:
    """The Markdown `text` of the page with the stem `page`. Pure, apart from KaTeX's own state.

    Raises PageError for a formula that KaTeX refuses, a picture without a caption, a link of an unknown form, code in
    an unknown language, and headings out of order (one of level 1, first; no level left out).
    """
    parser = _parser()
    writer = _Writer(parser, page, medium, typesetter)
    try:
        tokens = writer.blocks(parser.parse(text))
    except FormulaError as error:
        raise PageError(page, str(error)) from error
    if writer.title is None:
        raise PageError(page, "it has no heading of level 1")
    body = parser.renderer.render(tokens, parser.options, {})
    return Rendered(*writer.title, body, tuple(writer.headings), tuple(writer.targets))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    # With the defaults, "$5 and $6" would be a formula.
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_labels=False, double_inline=True)
    return parser


@dataclass
class _Writer:
    """Rewrites the tokens of one page, and collects its headings and links."""

    parser: MarkdownIt
    page: str
    medium: Medium
    typesetter: Typesetter
    title: tuple[str, str] | None = None
    headings: list[Heading] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def blocks(self, tokens: Sequence[Token]) -> list[Token]:
        """The page's tokens without its level-1 heading, with ready HTML where Markdown's own is not enough."""
        written: list[Token] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            used = 1
            match token.type:
                case "heading_open":
                    used = 3
                    written += self._heading(tokens[at], tokens[at + 1], tokens[at + 2])
                case "paragraph_open" if is_picture(tokens[at + 1]):
                    used = 3
                    written.append(raw(self._figure(tokens[at + 1])))
                case "blockquote_open" if is_box(tokens, at):
                    make_box(tokens, at)
                    written.append(token)
                case "bullet_list_open" if is_lettered(tokens, at):
                    token.attrSet("class", "lettered")
                    written.append(token)
                case "table_open":
                    label = name_cells(tokens, at)
                    written += [raw(f'<div class="scroll table" {reachable(label)}>\n'), token]
                case "table_close":
                    written += [token, raw("</div>\n")]
                case "fence" | "code_block":
                    written.append(raw(self._code(token)))
                case "math_block":
                    formula = self._formula(token, display=True)
                    written.append(raw(f'<div class="scroll equation" {reachable("Equation")}>{formula}</div>\n'))
                case "inline":
                    token.children = self._inline(token.children or [])
                    written.append(token)
                case _:
                    written.append(token)
            at += used
        return written

    def _heading(self, opening: Token, inline: Token, closing: Token) -> list[Token]:
        level = int(opening.tag[1:])
        text = text_of(inline)
        inline.children = self._inline(inline.children or [])
        # A heading in a table of contents lies in a link already, and links do not nest.
        html = self._inline_html([child for child in inline.children if child.type not in ("link_open", "link_close")])
        if level == 1:
            if self.title is not None or self.headings:
                raise PageError(self.page, f"the heading {text!r} is a second one of level 1, or not the first")
            self.title = (text, html)
            return []
        above = self.headings[-1].level if self.headings else 1
        if self.title is None or level > above + 1:
            raise PageError(self.page, f"the heading {text!r} of level {level} follows one of level {above}")
        slug = slug_of(text, [heading.slug for heading in self.headings])
        self.headings.append(Heading(level, slug, html))
        opening.attrSet("id", self.medium.anchor(Target(self.page, slug)))
        return [opening, inline, closing]

    def _figure(self, inline: Token) -> str:
        picture, *rest = inline.children or []
        source = str(picture.attrs["src"])
        match = _FIGURE.fullmatch(source)
        alt = text_of(picture)
        if match is None or not alt:
            raise PageError(self.page, f"the picture {source!r} is not ![what it shows](figures/NAME.svg)")
        if [token.type for token in rest[:2]] != ["softbreak", "em_open"] or rest[-1].type != "em_close":
            raise PageError(self.page, f"under the picture {source!r} a line in *italics* is missing, its caption")
        caption = self._inline_html(self._inline(rest[2:-1]))
        try:
            image = self.medium.image(match[1], alt)
        except KeyError:
            raise PageError(self.page, f"there is no figure {match[1]!r}") from None
        return (
            f'<figure>\n<div class="scroll picture" {reachable("Figure")}>{image}</div>\n'
            f"<figcaption>{caption}</figcaption>\n</figure>\n"
        )

    def _code(self, token: Token) -> str:
        language = token.info.strip()
        try:
            html = highlighted(token.content, language)
        except ValueError as error:
            raise PageError(self.page, str(error)) from error
        label = "Text" if language in ("", "text") else f"Code, {language}"
        return f'<div class="scroll code" {reachable(label)}><pre><code>{html}</code></pre></div>\n'

    def _inline(self, children: Sequence[Token]) -> list[Token]:
        written: list[Token] = []
        for child in children:
            match child.type:
                case "math_inline":
                    formula = self._formula(child, display=False)
                    written.append(raw(f'<span class="math">{formula}</span>', "html_inline"))
                case "math_inline_double":
                    formula = self._formula(child, display=True)
                    box = f'<span class="scroll equation" {reachable("Equation")}>{formula}</span>'
                    written.append(raw(box, "html_inline"))
                case "link_open":
                    place = read_link(str(child.attrs["href"]), self.page)
                    if place is not None:
                        self.targets.append(place)
                        child.attrSet("href", self.medium.address(place, self.page))
                    written.append(child)
                case "code_inline" if len(child.content) > LONG // 2:
                    code = _BREAKABLE.sub(r"\1<wbr>", escape(child.content, quote=False))
                    written.append(raw(f"<code>{code}</code>", "html_inline"))
                case "image":
                    source = child.attrs["src"]
                    raise PageError(self.page, f"the picture {source!r} stands within a line; give it one of its own")
                case _:
                    written.append(child)
        return written

    def _formula(self, token: Token, *, display: bool) -> str:
        return self.typesetter.html(token.content.strip(), display=display, output=self.medium.math)

    def _inline_html(self, children: Sequence[Token]) -> str:
        inline = Token("inline", "", 0, children=list(children))
        return str(self.parser.renderer.render([inline], self.parser.options, {}))
