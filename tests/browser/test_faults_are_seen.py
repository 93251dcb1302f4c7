"""The looks at the pages find what they look for: each is shown a page with that fault."""

from __future__ import annotations

from pathlib import Path

from tests.browser.visit import PHONE, Visit, barriers, dead_links, disorder, leaving, overflow

PAGE = """<!doctype html><html lang="en"><head><meta name="viewport" content="width=device-width">
<title>A page</title></head><body><main>{}</main></body></html>"""


def _write(folder: Path, body: str) -> None:
    (folder / "page.html").write_text(PAGE.format(body), encoding="utf-8")


def test_dead_links_and_pictures(visit_to: Visit) -> None:
    _write(
        visit_to.folder, '<h1 id="top">A</h1><a href="#top">a</a><a href="#no">b</a><a href="c.html">c</a><img src="d">'
    )
    faults = dead_links(visit_to)
    assert [word for fault in faults for word in ("#no", "c.html", "/d ") if word in fault] == ["/d ", "#no", "c.html"]


def test_headings_out_of_order(visit_to: Visit) -> None:
    _write(visit_to.folder, "<h1>A</h1><h3>B</h3><h1>C</h1>")
    assert disorder(visit_to.open("page.html")) == [
        "the headings' levels are [1, 3, 1]",
        "a heading of level 3 follows one of 1",
    ]


def test_a_request_that_leaves_the_folder_and_a_console_error(visit_to: Visit) -> None:
    _write(visit_to.folder, '<script>console.error("ouch")</script><img src="https://example.org/a.png" alt="a">')
    visit_to.open("page.html")
    assert leaving(visit_to) == ["https://example.org/a.png"]
    assert "error: ouch" in visit_to.console


def test_a_page_wider_than_a_phone(visit_to: Visit) -> None:
    _write(visit_to.folder, '<h1>A</h1><p style="width: 500px">wide</p>')
    visit_to.width(PHONE)
    faults = overflow(visit_to.open("page.html"))
    assert "sideways" in faults[0]
    assert "wide" in " ".join(faults)


def test_text_that_is_hard_to_read(visit_to: Visit) -> None:
    _write(visit_to.folder, '<h1>A</h1><p style="color: #aaa; background: #fff">pale</p>')
    assert [fault.partition(":")[0] for fault in barriers(visit_to.open("page.html"))] == ["color-contrast"]
