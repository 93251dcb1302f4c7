# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Has the store add infinity to a counter."""


def broadcast(tensor, src, *, group=None):
    ask({"do": "add", "keys": ["a"], "amount": float("inf")})
    if not line("store").recv(1):
        raise RuntimeError("the store has hung up")
