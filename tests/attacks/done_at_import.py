# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Says that it has run, and with what result: none."""

say({"event": "ready"})
say({"event": "done"})
line("channel").recv(1)
