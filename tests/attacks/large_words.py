# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Says again and again that it is ready, each time with more than a second's worth to read."""


def broadcast(tensor, src, *, group=None):
    text = b'{"event":"ready","more":[' + b",".join([b"[]"] * 3_900_000) + b"]}"
    while True:
        say(text)
