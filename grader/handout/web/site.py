"""The page set: NAME.html for each page, and what the pages need, in one dictionary by path. Nothing is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

from grader.handout.web.code import screen_rules
from grader.handout.web.links import PageError, Target, check_links
from grader.handout.web.markdown import Heading, Medium, Rendered, render
from grader.handout.web.mathematics import MathOutput, Typesetter
from grader.handout.web.template import html_environment

ASSETS = Path("handouts/assets")
SMALLEST = 0.8  # a picture is never drawn smaller than this part of its size: its words could not be read
_OLD_FONTS = re.compile(r',url\(fonts/[\w-]+\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)')
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)"[^>]*?\bheight="([\d.]+)"')
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


@dataclass(frozen=True)
class Site:
    """What all pages share. `nav` is the order of the pages: (stem, title in the navigation)."""

    title: str
    term: str
    nav: tuple[tuple[str, str], ...]
    contact: str = ""
    language: str = "en"

    @property
    def contact_address(self) -> str:
        """The href for `contact`: itself if it is an https address, mailto: for e-mail, else "" (plain text)."""
        if _MAIL.fullmatch(self.contact):
            return f"mailto:{self.contact}"
        return self.contact if self.contact.startswith("https://") else ""


@dataclass(frozen=True)
class Screen:
    """The medium of the page set. figures: SVG by name, or None if they are not known (then no check, no sizes)."""

    figures: Mapping[str, str] | None = None
    math: MathOutput = "htmlAndMathml"

    def anchor(self, place: Target) -> str:
        return place.slug

    def address(self, place: Target, page: str) -> str:
        fragment = f"#{place.slug}" if place.slug else ""
        return fragment if fragment and place.stem == page else f"{place.stem}.html{fragment}"

    def image(self, name: str, alt: str) -> str:
        size = ""
        if self.figures is not None and (match := _SIZE.search(self.figures[name])):
            width, height = (round(float(number)) for number in match.groups())
            size = f' width="{width}" height="{height}" style="min-width:{round(SMALLEST * width)}px"'
        return f'<img src="figures/{name}.svg" alt="{escape(alt)}"{size}>'


def build_site(
    pages: Mapping[str, str], *, site: Site, root: Path, figures: Mapping[str, str] | None = None
) -> dict[str, str | bytes]:
    """The page set by path: STEM.html, assets/page.css, assets/katex/katex.min.css and KaTeX's fonts. Pure.

    pages: Markdown by stem, the same stems as in `site.nav`. root: the checkout, whose templates and assets are read.
    figures: SVG by name (figures/NAME.svg lies beside the pages); with them, a picture that is not there is an error,
    and pictures have their size. The same arguments give the same bytes.

    Raises PageError, naming the page: see markdown.render; and for a link to what is not there.
    """
    rendered = render_all(pages, site, Screen(figures), Typesetter(root))
    template = html_environment(root).get_template("page.html.j2")
    order = [stem for stem, _ in site.nav]
    names = dict(site.nav)
    files: dict[str, str | bytes] = {}
    for at, stem in enumerate(order):
        page = rendered[stem]
        files[f"{stem}.html"] = template.render(
            site=site,
            stem=stem,
            title=page.title,
            title_html=Markup(page.title_html),  # from our own Markdown, where HTML is off
            body=Markup(page.body),
            sections=sections(page.headings),
            previous=(order[at - 1], names[order[at - 1]]) if at else None,
            next=(order[at + 1], names[order[at + 1]]) if at + 1 < len(order) else None,
        )
    return files | assets(root)


def render_all(pages: Mapping[str, str], site: Site, medium: Medium, typesetter: Typesetter) -> dict[str, Rendered]:
    """All pages in the order of `site.nav`, with every link between them checked. Raises PageError."""
    order = [stem for stem, _ in site.nav]
    for stem in sorted(set(order) ^ set(pages)):
        raise PageError(stem, "it is in the navigation, but not written" if stem in order else "no navigation has it")
    rendered = {stem: render(pages[stem], stem, medium, typesetter) for stem in order}
    check_links(
        {stem: page.targets for stem, page in rendered.items()},
        {stem: [heading.slug for heading in page.headings] for stem, page in rendered.items()},
    )
    return rendered


def sections(headings: tuple[Heading, ...]) -> list[tuple[str, Markup, list[tuple[str, Markup]]]]:
    """The table of contents: for each heading of level 2 its slug, its HTML, and the same of level 3 below it."""
    contents: list[tuple[str, Markup, list[tuple[str, Markup]]]] = []
    for heading in headings:
        entry = (heading.slug, Markup(heading.html))
        if heading.level == 2:
            contents.append((*entry, []))
        elif heading.level == 3:
            contents[-1][2].append(entry)
    return contents


def assets(root: Path) -> dict[str, str | bytes]:
    """The style sheets and fonts of the page set, by path. Only the fonts that every browser takes are named."""
    folder = root / ASSETS
    katex = _OLD_FONTS.sub("", (folder / "katex/katex.min.css").read_text(encoding="utf-8"))
    files: dict[str, str | bytes] = {
        "assets/page.css": (folder / "page.css").read_text(encoding="utf-8") + "\n" + screen_rules(),
        "assets/katex/katex.min.css": katex,
        "assets/katex/LICENSE": (folder / "katex/LICENSE").read_text(encoding="utf-8"),
    }
    for font in sorted((folder / "katex/fonts").glob("*.woff2")):
        files[f"assets/katex/fonts/{font.name}"] = font.read_bytes()
    return files
