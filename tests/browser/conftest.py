"""The page set in Debian's Chromium, offline, from a folder. Playwright is used without its pytest plugin: a plugin is
loaded in every run of pytest, also in those of students."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.handout.publish import write
from grader.handout.web.site import Site, build_site
from tests.browser.visit import Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "handouts/built/student"  # the Markdown pages; figures/ beside them


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """The handout's Markdown by stem, the index first."""
    stems = sorted((path.stem for path in SOURCE.glob("*.md")), key=lambda stem: (stem != "index", stem))
    assert stems[:1] == ["index"], f"there are no pages in {SOURCE.relative_to(ROOT)}: run `grader handout build`"
    return {stem: (SOURCE / f"{stem}.md").read_text(encoding="utf-8") for stem in stems}


@pytest.fixture(scope="session")
def folder(pages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page set, built from the Markdown in a folder of its own."""
    figures = {path.stem: path.read_text(encoding="utf-8") for path in sorted((SOURCE / "figures").glob("*.svg"))}
    site = Site("Parallel training", "Spring 2027", tuple((stem, stem) for stem in pages), contact="staff@example.org")
    built = tmp_path_factory.mktemp("site")
    write(build_site(pages, site=site, root=ROOT, figures=figures), built)
    write({f"figures/{name}.svg": picture for name, picture in figures.items()}, built)
    return built


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a process."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("the pages are not looked at: there is no chromium (on Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="the pages are not looked at: no playwright")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium, args=sandbox)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, folder: Path) -> Iterator[Visit]:
    """A visit to the real pages."""
    with Visit(browser, folder) as visiting:
        yield visiting


@pytest.fixture
def visit_to(browser: Browser, tmp_path: Path) -> Iterator[Visit]:
    """A visit to whatever a test writes into its `tmp_path`."""
    with Visit(browser, tmp_path) as visiting:
        yield visiting
