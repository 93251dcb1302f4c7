# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Is held until it has done something whose name clears the screen."""


def broadcast(tensor, src, *, group=None):
    say({"event": "hold", "of": 0, "name": "\x1b[2Jdone everything\nPASS"})
    line("channel").recv(1)
