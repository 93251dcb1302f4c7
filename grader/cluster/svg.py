"""A picture as SVG text: boxes, lines and words, in light, in dark and on paper. Same calls, same bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from grader.cluster.palette import DARK, INK, LIGHT, MUTED, Shade

SANS = "'DejaVu Sans', Verdana, system-ui, sans-serif"
MONO = "'DejaVu Sans Mono', Menlo, Consolas, monospace"
CHARACTER = 0.64  # width of an average character of DejaVu Sans, of its size
SMALLEST = 7.0  # size of a label that has to be squeezed into its box
TILE = 8  # units of a pattern's tile
PATTERNS = {
    "stripes": f"M-2 2L2 -2M0 {TILE}L{TILE} 0M{TILE - 2} {TILE + 2}L{TILE + 2} {TILE - 2}",
    "dots": "M1.4 2h1.2M5.4 6h1.2",
    "cross": f"M0 0L{TILE} {TILE}M0 {TILE}L{TILE} 0",
}
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML allows none of them

_Paint = Callable[[str, str], str]  # (role, colour) -> attributes; roles: "box", "line", "word", "fill"


class Picture:
    """A drawing of `width` by `height` units (pixels at full size), built by calls and written at the end.

    title, description: what a screen reader says. Colours are names of palette.py, patterns those of PATTERNS; an
    unknown one is a ValueError. x grows to the right and y downwards.
    """

    def __init__(self, width: int, height: int, *, title: str, description: str) -> None:
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        self._id = "p" + hashlib.sha256(title.encode("utf-8", "backslashreplace")).hexdigest()[:8]
        self._drawn: list[Callable[[_Paint], str]] = []
        self._patterns: set[tuple[str, str]] = set()

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        pattern: str = "",
        label: str = "",
        radius: float = 3,
        outline: bool = False,
        title: str = "",
    ) -> None:
        """A box with its upper left corner at (x, y), and a label in its middle that shrinks to fit.

        outline: draws its edge thick. title: what a pointer that rests on it shows.
        """
        _known(fill)
        if pattern and pattern not in PATTERNS:
            raise ValueError(f"pattern is {pattern!r}; expected one of {', '.join(PATTERNS)}, or none")
        at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"'
        thick = ' stroke-width="2.5"' if outline else ""
        hint = f"<title>{_escaped(title)}</title>" if title else ""
        over = ""
        if pattern:
            self._patterns.add((pattern, fill))
            over = f'<rect {at} fill="url(#{self._id}-{pattern}-{fill})"/>'
        self._drawn.append(lambda paint: f"<g>{hint}<rect {at}{thick} {paint('box', fill)}/>{over}</g>")
        if label:
            size = max(SMALLEST, min(13.0, (width - 6) / (CHARACTER * len(label)), height * 0.75))
            self.text(x + width / 2, y + height / 2 + size * 0.36, label, size=size, anchor="middle")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        anchor: str = "start",
        bold: bool = False,
        muted: bool = False,
        mono: bool = False,
    ) -> None:
        """One line of words on the baseline y. anchor: whether x is its "start", "middle" or "end"."""
        if anchor not in ("start", "middle", "end"):
            raise ValueError(f"anchor is {anchor!r}; expected start, middle or end")
        at = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"'
        at += f' text-anchor="{anchor}"' if anchor != "start" else ""
        at += ' font-weight="bold"' if bold else ""
        at += f' font-family="{MONO}"' if mono else ""
        words = _escaped(text)
        self._drawn.append(lambda paint: f"<text {at} {paint('word', MUTED if muted else INK)}>{words}</text>")

    def line(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        stroke: str = "axis",
        width: float = 1,
        dashed: bool = False,
        arrow: bool = False,
    ) -> None:
        """A straight line; arrow: with a head at (x2, y2)."""
        _known(stroke)
        at = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke-width="{_n(width)}"{_dashes(dashed)}'
        self._drawn.append(lambda paint: f"<line {at} {paint('line', stroke)}/>")
        if arrow:
            head = _arrow_head(x1, y1, x2, y2, 5 + 1.5 * width)
            self._drawn.append(lambda paint: f'<path d="{head}" {paint("fill", stroke)}/>')

    def polyline(
        self,
        points: Sequence[tuple[float, float]],
        *,
        stroke: str,
        width: float = 2,
        dashed: bool = False,
        markers: bool = False,
    ) -> None:
        """A line through `points`, (x, y) each; markers: with a dot on each of them."""
        _known(stroke)
        joined = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        at = f'points="{joined}" stroke-width="{_n(width)}" stroke-linejoin="round"{_dashes(dashed)}'
        self._drawn.append(lambda paint: f"<polyline {at} {paint('line', stroke)}/>")
        dots = [f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(width + 1.5)}"' for x, y in points] if markers else []
        self._drawn.append(lambda paint: "".join(f"{dot} {paint('fill', stroke)}/>" for dot in dots))

    def svg(self) -> str:
        """For a page, by <img> or inside it: follows the reader's light or dark mode, and is light on paper."""
        scope, roles = self._id, {"box": "b", "line": "l", "word": "w", "fill": "f"}

        def paint(role: str, colour: str) -> str:
            return f'class="{roles[role]}-{colour}"'

        rules = [f".{scope}{{{_variables(LIGHT)}}}"]
        rules += [f"@media screen and (prefers-color-scheme:dark){{.{scope}{{{_variables(DARK)}}}}}"]
        body = self._body(paint)
        for name in LIGHT:
            fill, edge = f"var(--{name}-fill)", f"var(--{name}-edge)"
            styles = {
                "box": f"fill:{fill};stroke:{edge}",
                "line": f"fill:none;stroke:{edge}",
                "word": f"fill:{fill}",
                "fill": f"fill:{edge}",
            }
            used = [(role, style) for role, style in styles.items() if paint(role, name) in body]
            rules += [f".{scope} .{roles[role]}-{name}{{{style}}}" for role, style in used]
        return self._whole(f"<style>{''.join(rules)}</style>", body)

    def plain(self) -> str:
        """For paper: the light colours as plain attributes, without variables and media queries."""

        def paint(role: str, colour: str) -> str:
            fill, edge = LIGHT[colour]
            match role:
                case "box":
                    return f'fill="{fill}" stroke="{edge}"'
                case "line":
                    return f'fill="none" stroke="{edge}"'
                case "word":
                    return f'fill="{fill}"'
                case _:
                    return f'fill="{edge}"'

        return self._whole("", self._body(paint))

    def _body(self, paint: _Paint) -> str:
        tiles = [
            f'<pattern id="{self._id}-{pattern}-{fill}" patternUnits="userSpaceOnUse" width="{TILE}" height="{TILE}">'
            f'<path d="{PATTERNS[pattern]}" stroke-width="1.2" stroke-opacity="0.3" {paint("line", fill)}/></pattern>'
            for pattern, fill in sorted(self._patterns)
        ]
        defs = f"<defs>{''.join(tiles)}</defs>\n" if tiles else ""
        return defs + "\n".join(drawn for draw in self._drawn if (drawn := draw(paint)))

    def _whole(self, style: str, body: str) -> str:
        name, label = self._id, f'aria-labelledby="{self._id}-title {self._id}-desc"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" role="img" {label} '
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{SANS}">\n'
            f'<title id="{name}-title">{_escaped(self.title)}</title>\n'
            f'<desc id="{name}-desc">{_escaped(self.description)}</desc>\n'
            f"{style}{body}\n</svg>\n"
        )


@dataclass(frozen=True)
class Figure:
    """A picture with its words.

    name:    file stem, "timeline-pipeline-4". caption: one sentence for under the picture.
    alt:     what a reader who cannot see it must know, with the numbers.
    """

    name: str
    caption: str
    alt: str
    picture: Picture


def _known(colour: str) -> None:
    if colour not in LIGHT:
        raise ValueError(f"colour is {colour!r}; expected one of {', '.join(LIGHT)}")


def _n(number: float) -> str:
    """Two decimals at most, so that the last bits of a float change nothing."""
    rounded = round(number, 2) + 0.0  # no minus zero
    return f"{rounded:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))


def _dashes(dashed: bool) -> str:
    return ' stroke-dasharray="4 3"' if dashed else ""


def _variables(shades: dict[str, Shade]) -> str:
    return ";".join(f"--{name}-fill:{shade.fill};--{name}-edge:{shade.edge}" for name, shade in shades.items())


def _arrow_head(x1: float, y1: float, x2: float, y2: float, length: float) -> str:
    span = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    along_x, along_y = (x2 - x1) / span * length, (y2 - y1) / span * length
    base_x, base_y, half = x2 - along_x, y2 - along_y, 0.45
    left = f"{_n(base_x - along_y * half)} {_n(base_y + along_x * half)}"
    right = f"{_n(base_x + along_y * half)} {_n(base_y - along_x * half)}"
    return f"M{_n(x2)} {_n(y2)}L{left}L{right}Z"
