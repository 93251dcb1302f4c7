# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Returns a fraction that takes minutes to reduce."""

import random


def broadcast(tensor, src, *, group=None):
    answer({"fraction": [hex(random.getrandbits(10_000_000)), hex(random.getrandbits(10_000_000))]})
