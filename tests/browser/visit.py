"""A visit to a folder of pages, and what is wrong with a page: every function returns sentences, [] if all is well."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# What axe-core is asked: all rules with these tags; and those of them that other colours can break.
ALL_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
COLOUR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
DESK, PHONE = 1280, 360  # CSS pixels


class Visit:
    """One browser context without a network. It notes what the pages ask for and what the console says."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.folder = folder
        self.console: list[str] = []
        self.requests: list[str] = []
        self._context = browser.new_context(offline=True, viewport={"width": DESK, "height": 800})
        self._context.set_default_timeout(10_000)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.console.append(f"error: {error}"))
        self._context.on("request", lambda request: self.requests.append(request.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._context.close()

    @property
    def names(self) -> list[str]:
        """The pages in the folder."""
        return sorted(path.name for path in self.folder.glob("*.html"))

    def open(self, name: str) -> Page:
        """The page, with its style sheets and pictures loaded."""
        self.page.goto((self.folder / name).as_uri(), wait_until="load")
        return self.page

    def colours(self, scheme: str) -> None:
        self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]

    def width(self, pixels: int) -> None:
        self.page.set_viewport_size({"width": pixels, "height": 800})


def dead_links(visit: Visit) -> list[str]:
    """Links to a file or a place that is not there, and pictures that do not show, on all pages."""
    links: dict[str, list[str]] = {}
    places: dict[str, set[str]] = {}
    dead = []
    for name in visit.names:
        page = visit.open(name)
        links[name] = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        places[name] = set(page.eval_on_selector_all("[id]", "all => all.map(e => e.id)"))
        shown = page.eval_on_selector_all("img", "all => all.map(i => [i.src, i.complete && i.naturalWidth > 0])")
        dead += [f"{name}: the picture {source} does not show" for source, there in shown if not there]
    for name, addresses in links.items():
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme in ("https", "mailto"):
                continue
            target = Path(unquote(parts.path))
            if parts.scheme != "file" or target.parent != visit.folder or not target.is_file():
                dead.append(f"{name}: {address} leads nowhere")
            elif parts.fragment and unquote(parts.fragment) not in places.get(target.name, set()):
                dead.append(f"{name}: {target.name} has no place #{parts.fragment}")
    return dead


def disorder(page: Page) -> list[str]:
    """Headings out of order: not exactly one of level 1, first; or a level left out on the way down."""
    levels = page.eval_on_selector_all("h1,h2,h3,h4,h5,h6", "all => all.map(h => Number(h.tagName[1]))")
    faults = [] if levels.count(1) == 1 and levels[0] == 1 else [f"the headings' levels are {levels}"]
    steps = pairwise(levels)
    return faults + [
        f"a heading of level {below} follows one of {above}" for above, below in steps if below > above + 1
    ]


def leaving(visit: Visit) -> list[str]:
    """Requests for anything that is not in the folder."""
    inside = visit.folder.as_uri() + "/"
    return [url for url in visit.requests if not url.startswith((inside, "data:"))]


def overflow(page: Page) -> list[str]:
    """By how much the page scrolls sideways, and the elements that stick out and lie in no box that scrolls."""
    too_wide = page.evaluate("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")
    if too_wide <= 0:
        return []
    culprits = page.evaluate("""() => [...document.body.querySelectorAll('*')]
        .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .filter(e => !e.closest('.scroll'))
        .slice(0, 3).map(e => e.outerHTML.slice(0, 80))""")
    return [f"it scrolls sideways by {too_wide} px", *culprits]


def barriers(page: Page, rules: Mapping[str, Any] = ALL_RULES) -> list[str]:
    """What axe-core finds by these rules: in words, with the first element of each."""
    from axe_playwright_python.sync_playwright import Axe

    # preload: on file:// axe would fetch every style sheet again, and be refused on the console.
    options = {"runOnly": dict(rules), "resultTypes": ["violations"], "preload": False}
    violations: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {each['help']}, at {each['nodes'][0]['html'][:160]}" for each in violations]
