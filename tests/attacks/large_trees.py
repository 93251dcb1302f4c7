# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Returns values that take 30 times the memory of their text."""


def broadcast(tensor, src, *, group=None):
    text = b'{"event":"value","tree":[' + b",".join([b"[]"] * 4_000_000) + b"]}"
    for _ in range(40):
        say(text)
    answer(0)
