"""Jinja2 for the HTML templates."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path("handouts/templates/html")


def html_environment(root: Path) -> Environment:
    """Everything is escaped but what is marked as HTML; a name that a template misses is an error."""
    return Environment(
        loader=FileSystemLoader(root / TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,  # not select_autoescape: it leaves files that end in .html.j2 unescaped
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
