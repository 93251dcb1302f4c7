"""Rows of numbers, coloured by the rank that they come from; a sum has a slot for each rank that is in it."""

from __future__ import annotations

from collections.abc import Sequence

from grader.cluster.svg import Picture
from grader.handout.figures.origins import WORLD_SIZE, Number

HEIGHT = 34
SLOTS = 8  # height of the slots under a sum
PATTERNS = ("", "stripes", "dots", "cross")  # by rank, so that colour is not needed


def draw_number(picture: Picture, x: float, y: float, number: Number, *, width: float, height: float = HEIGHT) -> None:
    """One number; its rank's colour, or for a sum slots: slot r is filled where rank r's number is in it."""
    label, origins = str(number.value), number.origins
    if len(origins) == 1:
        (rank,) = origins
        picture.rect(x, y, width, height, fill=f"rank{rank}", pattern=PATTERNS[rank])
        picture.text(x + width / 2, y + height / 2 + 5, label, anchor="middle", bold=True)
        return
    picture.rect(x, y, width, height, fill="none")
    if not origins:
        picture.text(x + width / 2, y + height / 2 + 5, label, anchor="middle", muted=True)
        return
    picture.text(x + width / 2, y + (height - SLOTS) / 2 + 5, label, anchor="middle", bold=True)
    slot = (width - 6) / WORLD_SIZE
    for rank in origins:
        picture.rect(x + 3 + rank * slot, y + height - SLOTS - 2, slot - 1, SLOTS, fill=f"rank{rank}", radius=1)


def draw_numbers(
    picture: Picture, x: float, y: float, numbers: Sequence[Number], *, width: float, gap: float = 0
) -> None:
    """A tensor, or pieces of one number each with a gap between them."""
    for index, number in enumerate(numbers):
        draw_number(picture, x + index * (width + gap), y, number, width=width)


def draw_legend(picture: Picture, x: float, y: float, *, sums: bool = False) -> None:
    """Which colour is which rank; `sums`: what the slots under a sum mean. Takes 20 pixels of height."""
    for rank in range(WORLD_SIZE):
        left = x + rank * 84
        picture.rect(left, y, 22, 16, fill=f"rank{rank}", pattern=PATTERNS[rank], radius=2)
        picture.text(left + 28, y + 13, f"rank {rank}", size=12)
    if sums:
        picture.text(x + WORLD_SIZE * 84, y + 13, "under a sum: whose are in it", size=12, muted=True)


def numbers_text(numbers: Sequence[Number] | None) -> str:
    """ "[0, 1, 2, 3]", or "nothing"."""
    return "nothing" if numbers is None else f"[{', '.join(str(each.value) for each in numbers)}]"
