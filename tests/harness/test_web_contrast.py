"""Colours that can be read: contrast by WCAG 2.2 (1.4.3: 4.5 for text, 1.4.11: 3 for edges), light and dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.handout.web.code import paper_rules, screen_rules

ASSETS = Path(__file__).parents[2] / "handouts/assets"
LIGHT, DARK = "light", "dark"
TEXT = 4.5
EDGE = 3.0


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def palette(mode: str) -> dict[str, str]:
    blocks = re.findall(r":root \{(.*?)\}", (ASSETS / "page.css").read_text(encoding="utf-8"), re.DOTALL)
    light, dark = (dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", block)) for block in blocks)
    assert set(light) == set(dark)
    return light if mode == LIGHT else dark


def code_colours(mode: str) -> set[str]:
    light, dark = re.split(r"@media screen", screen_rules())
    return set(re.findall(r"[{;] *color: (#[0-9A-Fa-f]{3,6})", light if mode == LIGHT else dark))


def test_contrast_of_known_pairs() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("mode", [LIGHT, DARK])
@pytest.mark.parametrize("ink", ["text", "muted", "link", "accent"])
@pytest.mark.parametrize("ground", ["ground", "raised", "tint", "code"])
def test_text_can_be_read(mode: str, ink: str, ground: str) -> None:
    colours = palette(mode)
    assert contrast(colours[ink], colours[ground]) >= TEXT


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_edges_of_controls_can_be_seen(mode: str) -> None:
    colours = palette(mode)
    for edge in ("edge", "accent", "link"):
        assert contrast(colours[edge], colours["ground"]) >= EDGE


@pytest.mark.parametrize("mode", [LIGHT, DARK])
def test_code_can_be_read(mode: str) -> None:
    colours = code_colours(mode)
    assert len(colours) > 4
    for colour in sorted(colours):
        assert contrast(colour, palette(mode)["code"]) >= TEXT, colour


def test_code_can_be_read_on_paper() -> None:
    colours = set(re.findall(r"[{;] *color: (#[0-9A-Fa-f]{3,6})", paper_rules()))
    assert len(colours) > 4
    for colour in sorted(colours):
        assert contrast(colour, palette(LIGHT)["code"]) >= TEXT, colour
