"""Where the rows of a result come from: inputs differ in every number, so a misplaced one can be traced back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tests.public.runs.told import Told, agree

if TYPE_CHECKING:
    from torch import Tensor

MOST = 3  # stretches that are named; a message holds no list of all rows


class Source(NamedTuple):
    """Rows that a result may be made of.

    name: of all of them, "rank 1's rows". of: of a part, "rows 2 to 3 of …": "rank 1"; as `name` where it is "".
    """

    name: str
    rows: Tensor
    of: str = ""


class Origin(NamedTuple):
    """One row of a result: its row in a source; a source of -1 stands for NaNs."""

    source: int
    row: int


def moved(
    came: Tensor, expected: Tensor, sources: Sequence[Source], *, allowed: float = 0.0, word: str = "row"
) -> Told | None:
    """What was returned in place of what, by the origin of each row; None where that does not tell.

    allowed: the largest difference between a row and its source. word: what dimension 0 is made of.
    """
    if came.dtype != expected.dtype or came.shape[1:] != expected.shape[1:]:
        return None
    found, wanted = (_origins(one, sources, allowed) for one in (came, expected))
    if found is None or wanted is None or found == wanted:
        return None
    gave, due = _text(found, sources, word), _text(wanted, sources, word)
    owners = {origin.source for origin in (*found, *wanted)}
    if len(owners) == 1 and min(owners) >= 0:  # say whose rows they are once
        owner = sources[min(owners)]
        due = due.removesuffix(f" of {owner.of or owner.name}")
        if due == owner.name:
            due = "all in their order" if len(found) == len(wanted) else "all"
    return Told(f"gave {gave}, not {due}")


def _origins(rows: Tensor, sources: Sequence[Source], allowed: float) -> list[Origin] | None:
    """The origin of each row; None where a row is that of no source, or of two."""
    import torch

    flat = _matrix(rows)
    if flat.numel() == 0:
        return [] if flat.shape[0] == 0 else None
    alike = [each for each in enumerate(sources) if each[1].rows.dtype == rows.dtype and each[1].rows.numel()]
    alike = [each for each in alike if _matrix(each[1].rows).shape[1] == flat.shape[1]]
    origins = []
    for row in flat:
        if (row.is_floating_point() or row.is_complex()) and bool(torch.isnan(row).any()):
            origins.append(Origin(-1, 0))
            continue
        hits = [
            Origin(number, int(place))
            for number, source in alike
            for place in agree(_matrix(source.rows), row, allowed).all(1).nonzero()
        ]
        if len(hits) != 1:
            return None
        origins.append(hits[0])
    return origins


def _matrix(rows: Tensor) -> Tensor:
    """One row for each place in dimension 0; a single row where there is no dimension."""
    return rows.reshape(1, 1) if rows.dim() == 0 else rows.reshape(rows.shape[0], -1 if rows.numel() else 0)


def _text(origins: Sequence[Origin], sources: Sequence[Source], word: str) -> str:
    parts = []
    for number, stretch in groupby(origins, key=lambda origin: origin.source):
        places = [origin.row for origin in stretch]
        if number < 0:
            parts.append("NaN" if len(places) == len(origins) else f"NaN in {len(places)} {word}s")
            continue
        source = sources[number]
        whole = places == list(range(_matrix(source.rows).shape[0]))
        parts.append(source.name if whole else f"{_places(places, word)} of {source.of or source.name}")
    more = ", and so on" if len(parts) > MOST else ""
    return (", then ".join(parts[:MOST]) or f"no {word}s") + more


def _places(places: Sequence[int], word: str) -> str:
    """ "row 3", "rows 0 to 2", "rows 3, 0 to 2"."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] + 1 == place:
            runs[-1].append(place)
        else:
            runs.append([place])
    texts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    more = ", …" if len(texts) > MOST else ""
    return f"{word}{'s' if len(places) > 1 else ''} {', '.join(texts[:MOST])}{more}"
