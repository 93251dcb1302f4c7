"""The colours of every picture: by name, for light and for dark, chosen for the colour-blind too.

Each name has a fill, on which the ink of a label has a contrast of 7 or more, and an edge, which stands out from the
fill and from the page. The hues of the ranks follow Okabe and Ito (2008), "Color Universal Design".
"""

from __future__ import annotations

from typing import NamedTuple


class Shade(NamedTuple):
    """A colour as it is filled, and as it is drawn."""

    fill: str
    edge: str


INK = "ink"
MUTED = "muted"
LIGHT: dict[str, Shade] = {
    "rank0": Shade("#a9cfe8", "#0a5c8f"),
    "rank1": Shade("#f5c177", "#955300"),
    "rank2": Shade("#9fdcc6", "#00694c"),
    "rank3": Shade("#e9bcd6", "#94386b"),
    "rank4": Shade("#efe793", "#655e00"),
    "compute": Shade("#a9cfe8", "#0a5c8f"),
    "communicate": Shade("#f5c177", "#955300"),
    "wait": Shade("#e3e6ea", "#6a7280"),
    "none": Shade("none", "#6a7280"),
    "axis": Shade("#6a7280", "#6a7280"),
    "highlight": Shade("#f7b59b", "#b03a06"),
    INK: Shade("#14181f", "#14181f"),
    MUTED: Shade("#565e6b", "#565e6b"),
}
DARK: dict[str, Shade] = {
    "rank0": Shade("#174a6b", "#6db8e8"),
    "rank1": Shade("#6f4103", "#f0a94a"),
    "rank2": Shade("#0c5441", "#4fcaa5"),
    "rank3": Shade("#653052", "#e396c1"),
    "rank4": Shade("#4f4a0a", "#d9cf4a"),
    "compute": Shade("#174a6b", "#6db8e8"),
    "communicate": Shade("#6f4103", "#f0a94a"),
    "wait": Shade("#31363f", "#98a1af"),
    "none": Shade("none", "#98a1af"),
    "axis": Shade("#98a1af", "#98a1af"),
    "highlight": Shade("#7a2c0b", "#ff9a70"),
    INK: Shade("#f3f5f8", "#f3f5f8"),
    MUTED: Shade("#b3bac6", "#b3bac6"),
}
