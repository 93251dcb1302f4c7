"""Links between pages: what an address in the Markdown means, and whether its target is there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_PAGE = re.compile(r"(?:(?P<stem>[\w-]+)\.md)?(?:#(?P<slug>[^\s]+))?")
_ELSEWHERE = re.compile(r"(?:https?://|mailto:)\S+")


class PageError(ValueError):
    """A page cannot be made; the text names the page, by its stem, and what is wrong."""

    def __init__(self, page: str, problem: str) -> None:
        super().__init__(f"page {page}: {problem}")
        self.page = page
        self.problem = problem


@dataclass(frozen=True)
class Target:
    """A place in the handout: a page, and a heading on it ("" for the page's beginning)."""

    stem: str
    slug: str


def read_link(href: str, page: str) -> Target | None:
    """What a link on `page` leads to: a Target, or None for an address outside the handout. Pure.

    "X.md", "X.md#slug" and "#slug" are places; "https://...", "http://..." and "mailto:..." are outside. Raises
    PageError for anything else: a reader of the page set has no other files.
    """
    if _ELSEWHERE.fullmatch(href):
        return None
    match = _PAGE.fullmatch(href)
    if match is None or not href:
        raise PageError(page, f"the link to {href!r} is neither PAGE.md, PAGE.md#heading, #heading nor an address")
    return Target(match["stem"] or page, match["slug"] or "")


def slug_of(text: str, taken: Sequence[str]) -> str:
    """The name of a heading in addresses, as GitHub forms it, so that links work in the Markdown too. Pure.

    taken: the slugs of the headings before it; a second "Example" becomes "example-1".
    """
    slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-") or "section"
    candidate, number = slug, 0
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate


def check_links(targets: Mapping[str, Sequence[Target]], slugs: Mapping[str, Sequence[str]]) -> None:
    """Raises PageError for the first link to a page or heading that is not there.

    targets: page -> the places that its links lead to. slugs: page -> its headings' slugs.
    """
    for page, places in targets.items():
        for place in places:
            if place.stem not in slugs:
                raise PageError(page, f"a link leads to {place.stem}.md; the pages are {', '.join(sorted(slugs))}")
            if place.slug and place.slug not in slugs[place.stem]:
                known = ", ".join(slugs[place.stem])
                raise PageError(page, f"a link leads to {place.stem}.md#{place.slug}; that page has {known}")
