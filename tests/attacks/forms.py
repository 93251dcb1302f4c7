# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Forms groups without end, each of which takes room."""

import itertools


def broadcast(tensor, src, *, group=None):
    for number in itertools.count(1):
        say({"event": "form", "g": number, "name": f"group {number}", "ranks": [0]})
