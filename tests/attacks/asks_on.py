# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Asks whether an operation is complete, again and again, and reads no answer."""

import json
import struct


def broadcast(tensor, src, *, group=None):
    say({"event": "issue", "s": 0, "g": 0, "op": "recv", "peer": 0, "tag": 0, "async": True, "writes": [["bool", [1]]]})
    text = json.dumps({"event": "poll", "s": 0, "threads": True}).encode()
    polls = (struct.pack("!IQ", len(text), 0) + text) * 1000
    while True:
        line("channel").sendall(polls)
