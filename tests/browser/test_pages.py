"""The pages as students see them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.visit import ALL_RULES, COLOUR_RULES, PHONE, Visit, barriers, dead_links, disorder, leaving, overflow

LIGHTNESS = """() => getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3)
    .map(Number).reduce((sum, each) => sum + each, 0) / 765"""


def test_every_link_and_picture_leads_somewhere(visit: Visit, pages: dict[str, str]) -> None:
    assert visit.names == sorted(f"{stem}.html" for stem in pages)
    assert dead_links(visit) == []


def test_headings_are_in_order(visit: Visit) -> None:
    assert {name: faults for name in visit.names if (faults := disorder(visit.open(name)))} == {}


def test_pages_are_quiet_need_no_network_and_no_script(visit: Visit) -> None:
    for name in visit.names:
        page = visit.open(name)
        page.evaluate("document.fonts.ready")
        assert page.locator("script").count() == 0, name
    assert visit.console == []
    assert leaving(visit) == []
    assert any(url.endswith("page.css") for url in visit.requests)  # the listener hears requests


def test_a_phone_does_not_scroll_sideways(visit: Visit) -> None:
    visit.width(PHONE)
    assert {name: faults for name in visit.names if (faults := overflow(visit.open(name)))} == {}


def test_colours_follow_the_system(visit: Visit) -> None:
    page = visit.open("index.html")
    visit.colours("light")
    assert page.evaluate(LIGHTNESS) > 0.9
    visit.colours("dark")
    assert page.evaluate(LIGHTNESS) < 0.2


@pytest.mark.parametrize(("scheme", "rules"), [("light", ALL_RULES), ("dark", COLOUR_RULES)], ids=["light", "dark"])
def test_axe_finds_no_barrier(visit: Visit, scheme: str, rules: dict[str, Any]) -> None:
    visit.colours(scheme)
    assert {name: faults for name in visit.names if (faults := barriers(visit.open(name), rules))} == {}


def test_the_first_stop_of_the_keyboard_skips_to_the_content(visit: Visit) -> None:
    for name in visit.names:
        page = visit.open(name)
        page.keyboard.press("Tab")
        stop = page.locator(":focus")
        assert stop.get_attribute("href") == "#content", name
        box = stop.bounding_box()
        assert box is not None
        assert box["x"] >= 0, f"{name}: the skip link has the focus but is not on the screen"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content", name
        page.keyboard.press("Tab")
        assert page.evaluate("document.getElementById('content').contains(document.activeElement)"), name
