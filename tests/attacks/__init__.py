"""Hostile submissions: each is the text of a collectives.py, after that of lines.py. Never imported here."""
