# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Says for the import's program that everything is there, and for any other that it is done without a value."""

say({"event": "ready"})
answer(["broadcast"])
