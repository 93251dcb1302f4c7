"""The whole handout as one HTML document, from which WeasyPrint makes the PDF. It needs no other file."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

from grader.handout.web.code import paper_rules
from grader.handout.web.links import Target
from grader.handout.web.mathematics import MathOutput, Typesetter
from grader.handout.web.site import ASSETS, Site, assets, render_all, sections
from grader.handout.web.template import html_environment

_FONT = re.compile(r"url\((fonts/[\w-]+\.woff2)\)")


@dataclass(frozen=True)
class Paper:
    """The medium of the PDF: places are anchors of one document, and pictures lie in it."""

    figures: Mapping[str, str]
    math: MathOutput = "html"

    def anchor(self, place: Target) -> str:
        return f"{place.stem}--{place.slug}" if place.slug else place.stem

    def address(self, place: Target, page: str) -> str:
        del page  # all places lie in the same document
        return f"#{self.anchor(place)}"

    def image(self, name: str, alt: str) -> str:
        data = base64.b64encode(self.figures[name].encode("utf-8")).decode("ascii")
        return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'


def print_document(pages: Mapping[str, str], figures: Mapping[str, str], site: Site, *, root: Path) -> str:
    """One HTML document of all pages in the order of `site.nav`, with its fonts and pictures inside. Pure.

    pages: Markdown by stem. figures: SVG by name without CSS variables or media queries (Picture.plain), which
    WeasyPrint does not know. root: the checkout. The fonts "DejaVu Sans", "DejaVu Serif" and "DejaVu Sans Mono" must be
    installed where the PDF is made. The same arguments give the same bytes.

    Raises PageError as build_site does, and for a figure that is missing.
    """
    medium = Paper(figures)
    rendered = render_all(pages, site, medium, Typesetter(root))
    chapters = [
        {
            "id": medium.anchor(Target(stem, "")),
            "title": page.title,
            "title_html": Markup(page.title_html),  # from our own Markdown, where HTML is off
            "body": Markup(page.body),
            "sections": [(medium.anchor(Target(stem, slug)), html) for slug, html, _ in sections(page.headings)],
        }
        for stem, page in rendered.items()
    ]
    style = _katex_css(root) + (root / ASSETS / "print.css").read_text(encoding="utf-8") + "\n" + paper_rules()
    return (
        html_environment(root)
        .get_template("print.html.j2")
        .render(
            site=site,
            chapters=chapters,
            style=Markup(style),
        )
    )


def _katex_css(root: Path) -> str:
    files = assets(root)

    def inside(match: re.Match[str]) -> str:
        font = files[f"assets/katex/{match[1]}"]
        assert isinstance(font, bytes)
        return f"url(data:font/woff2;base64,{base64.b64encode(font).decode('ascii')})"

    return _FONT.sub(inside, str(files["assets/katex/katex.min.css"])) + "\n"
