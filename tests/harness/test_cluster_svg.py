"""Pictures: well-formed, the same bytes each time, nothing of a submission's text obeyed."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from grader.cluster.palette import DARK, INK, LIGHT
from grader.cluster.svg import PATTERNS, Picture

EVIL = '</text><script>alert("1")</script>&\x00\x1b\ud800'


def drawn() -> Picture:
    """Everything that can be drawn, with a text that wants to be markup."""
    picture = Picture(200, 100, title=EVIL, description=EVIL)
    for column, pattern in enumerate(("", *PATTERNS)):
        picture.rect(column * 40, 0, 38, 20, fill=f"rank{column}", pattern=pattern, label=EVIL, title=EVIL)
    picture.text(1 / 3, 50, EVIL, anchor="end", bold=True, mono=True)
    picture.line(0, 60, 100, 60.0001, arrow=True, dashed=True)
    picture.polyline([(0, 70), (10, -0.0001)], stroke="highlight", markers=True)
    return picture


@pytest.mark.parametrize("write", [Picture.svg, Picture.plain])
def test_text_stays_text(write) -> None:
    """The picture is XML whose every element is one of SVG's own shapes."""
    root = ElementTree.fromstring(write(drawn()))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    shapes = {"svg", "title", "desc", "style", "defs", "pattern", "path", "g", "rect", "text", "line", "polyline"}
    assert names - shapes <= {"circle"}
    assert write(drawn()) == write(drawn())


def test_the_plain_picture_needs_no_style_sheet() -> None:
    """WeasyPrint knows neither variables nor media queries in a picture."""
    assert "<style" not in drawn().plain()
    assert "var(" not in drawn().plain()
    assert "prefers-color-scheme:dark" in drawn().svg()


def test_unknown_names_are_refused() -> None:
    """A colour or pattern that is not there would be black, or nothing."""
    with pytest.raises(ValueError, match="'red'"):
        drawn().rect(0, 0, 1, 1, fill="red")
    with pytest.raises(ValueError, match="'zigzag'"):
        drawn().rect(0, 0, 1, 1, fill="rank0", pattern="zigzag")


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """By WCAG 2.2."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("shades", [LIGHT, DARK])
def test_labels_can_be_read_on_every_fill(shades) -> None:
    """4.5 for the ink of a label, and 3 for the edge of a box."""
    for name, shade in shades.items():
        if shade.fill == "none" or name in (INK, "muted", "axis"):
            continue
        assert contrast(shades[INK].fill, shade.fill) >= 4.5, name
        assert contrast(shade.edge, shade.fill) >= 3, name
