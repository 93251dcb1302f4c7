# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Fills the memory of the process that owns the store."""


def broadcast(tensor, src, *, group=None):
    for number in range(40):
        ask({"do": "set", "keys": [str(number)]}, bytes(100 * 2**20))
