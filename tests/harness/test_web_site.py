"""The page set and the document for paper as a whole."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from grader.cluster.svg import Picture
from grader.handout.web import PageError, Site, build_site, print_document

ROOT = Path(__file__).parents[2]
SITE = Site(
    "Parallel <training>", "Spring", (("index", "Overview"), ("rings", "Rings"), ("end", "End")), "ta@example.edu"
)
PAGES = {
    "index": "# Parallel training\n\nSee [rings](rings.md) and [its words](rings.md#words).\n",
    "rings": (
        "# Rings\n\n![Two boxes](figures/ring.svg)\n*A ring.*\n\n## Words\n\nHere $W = 2$, see [below](#more).\n\n"
        "### `all_reduce`\n\n```python\nx = 1  # one\n```\n\n## More\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    ),
    "end": "# End\n\n## Words\n\n$$\nx^2\n$$\n",
}


def picture() -> Picture:
    drawn = Picture(400, 100, title="Ring", description="Two boxes")
    drawn.rect(10, 10, 100, 40, fill="rank0", label="rank 0")
    return drawn


@pytest.fixture(scope="module")
def files() -> dict[str, str | bytes]:
    return build_site(PAGES, site=SITE, root=ROOT, figures={"ring": picture().svg()})


@pytest.fixture(scope="module")
def document() -> str:
    return print_document(PAGES, {"ring": picture().plain()}, SITE, root=ROOT)


class Reader(HTMLParser):
    """Ids, addresses, tags in order, and tags that are not closed in the order in which they were opened."""

    EMPTY = frozenset({"meta", "link", "img", "br", "hr", "wbr", "path"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(html)
        self.unbalanced += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name in ("href", "src") and value:
                self.addresses.append(value)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.EMPTY:
            return
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.unbalanced.append(tag)


def html_of(files: dict[str, str | bytes]) -> dict[str, Reader]:
    return {name: Reader(str(content)) for name, content in files.items() if name.endswith(".html")}


def test_same_arguments_give_the_same_bytes(files, document) -> None:
    assert build_site(PAGES, site=SITE, root=ROOT, figures={"ring": picture().svg()}) == files
    assert print_document(PAGES, {"ring": picture().plain()}, SITE, root=ROOT) == document


def test_every_address_is_there(files) -> None:
    there = {*files, "figures/ring.svg", "mailto:ta@example.edu"}
    pages = html_of(files)
    assert set(pages) == {"index.html", "rings.html", "end.html"}
    for name, page in pages.items():
        assert page.addresses
        for address in page.addresses:
            path, _, fragment = address.partition("#")
            assert (path or name) in there, f"{name} -> {address}"
            if fragment:
                assert fragment in pages[path or name].ids, f"{name} -> {address}"


def test_no_style_sheet_names_what_is_not_there(files) -> None:
    for name in ("assets/page.css", "assets/katex/katex.min.css"):
        for address in re.findall(r"url\(([^)]*)\)", str(files[name])):
            assert f"assets/katex/{address}" in files


def test_pages_need_no_network_and_no_script(files) -> None:
    for name, content in files.items():
        if name.endswith((".html", ".css")):
            assert "<script" not in str(content)
            assert "@import" not in str(content)
            assert not re.findall(r'(?:src|href)="(?:https?:)?//', str(content))


def test_every_page_is_well_formed_with_ids_that_differ(files, document) -> None:
    for name, page in [*html_of(files).items(), ("print", Reader(document))]:
        assert page.unbalanced == [], name
        assert len(page.ids) == len(set(page.ids)), name


def test_every_page_has_one_title_and_the_landmarks(files) -> None:
    for page in html_of(files).values():
        for tag in ("h1", "main", "title"):
            assert page.tags.count(tag) == 1
        assert page.tags.index("header") < page.tags.index("main") < page.tags.index("h1")
        assert page.addresses[2] == "#content"  # behind the style sheets, the first link skips the navigation
        levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert all(after <= before + 1 for before, after in pairwise(levels))


def test_navigation_marks_the_page_and_leads_on(files) -> None:
    page = str(files["rings.html"])
    assert re.findall(r'<a href="([^"]*)" aria-current="page">', page) == ["rings.html"]
    assert 'rel="prev" href="index.html"' in page
    assert 'rel="next" href="end.html"' in page
    assert 'rel="prev"' not in str(files["index.html"])
    assert 'rel="next"' not in str(files["end.html"])
    assert '<li><a href="#all_reduce"><code>all_reduce</code></a></li>' in page


def test_titles_are_escaped(files) -> None:
    assert "<title>Rings · Parallel &lt;training&gt;</title>" in str(files["rings.html"])
    assert "<training>" not in str(files["rings.html"])


def test_page_declares_its_language_and_its_width(files) -> None:
    page = str(files["index.html"])
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert '<meta name="color-scheme" content="light dark">' in page


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({**PAGES, "end": "# End\n\n[x](nowhere.md)"}, r"page end: a link leads to nowhere\.md"),
        ({**PAGES, "end": "# End\n\n[x](rings.md#nothing)"}, r"page end: a link leads to rings\.md#nothing"),
        ({**PAGES, "end": "# End\n\n$\\frac{$"}, r"page end: the formula \$\\frac\{\$"),
        ({**PAGES, "more": "# More"}, "page more: no navigation has it"),
        ({"index": "# I", "rings": "# R"}, "page end: it is in the navigation, but not written"),
    ],
)
def test_fault_names_the_page(pages: dict[str, str], problem: str) -> None:
    figures = {"ring": picture().svg()}
    with pytest.raises(PageError, match=problem):
        build_site(pages, site=SITE, root=ROOT, figures=figures)
    with pytest.raises(PageError, match=problem):
        print_document(pages, figures, SITE, root=ROOT)


def test_document_holds_all_it_needs(document: str) -> None:
    page = Reader(document)
    assert page.addresses
    for address in page.addresses:
        assert address.startswith("data:image/svg+xml;base64,") or address.removeprefix("#") in page.ids
    assert set(re.findall(r"url\(([a-z:/0-9]*)", document)) == {"data:font/woff2"}
    assert "<math" not in document  # WeasyPrint would print its annotations
    assert [address for address in page.addresses if address.startswith("#")][:3] == ["#index", "#rings", "#end"]


def test_document_has_its_pages_in_order(document: str) -> None:
    assert re.findall(r"<h1>(.*?)</h1>", document) == ["Parallel training", "Rings", "End"]
    assert 'id="rings--words"' in document
    assert 'id="end--words"' in document


def test_contact_may_be_an_address_or_words() -> None:
    def address(contact: str) -> str:
        return Site("t", "", (), contact).contact_address

    assert address("ta@example.edu") == "mailto:ta@example.edu"
    assert address("https://example.edu/forum") == "https://example.edu/forum"
    assert address("javascript:alert(1)") == ""
    assert address("the forum") == ""
