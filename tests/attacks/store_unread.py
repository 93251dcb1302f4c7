# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Asks the store again and again, and reads no answer."""


def broadcast(tensor, src, *, group=None):
    ask({"do": "set", "keys": ["a"]}, bytes(60_000))
    while True:
        ask({"do": "get", "keys": ["a"]})
