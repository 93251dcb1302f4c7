# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Disagrees with itself at a place whose function has a name of several lines."""


def broadcast(tensor, src, *, group=None):
    place = ["collectives.py", 1, "f\x1b[2J\nall is well", "submission"]
    told = {"event": "issue", "s": 0, "g": 0, "op": "recv", "peer": 0, "tag": 0, "writes": [["bool", [1]]], "at": place}
    say(told)
    line("channel").recv(1)
