"""A notebook from a rendered page: a cell for each section, code cells where the page has markers."""

# mypy: allow-untyped-calls
# (nbformat has no annotations)

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

MARKER = re.compile(r"<!-- code: (?P<name>\w+) -->")
FENCE = re.compile(r"(```|~~~)")


def build_notebook(stem: str, page: str, code_cells: Mapping[str, str]) -> str:
    """The notebook's text: valid, without outputs, the same bytes every time. Pure.

    page:       Markdown; each `## ` heading begins a cell; a line `<!-- code: NAME -->` is code_cells[NAME].
    code_cells: the source of each code cell.
    Raises ValueError for a marker without a cell and for a cell without a marker.
    """
    notebook = new_notebook(
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    split = list(split_page(page))
    for index, (kind, text) in enumerate(split):
        if kind == "code" and text not in code_cells:
            raise ValueError(f"{stem}: no code cell named {text!r}; there are {', '.join(sorted(code_cells))}")
        source = code_cells[text].rstrip("\n") if kind == "code" else text
        cell = new_code_cell(source) if kind == "code" else new_markdown_cell(source)
        # nbformat's own ids are random, and would change the file at every build
        cell["id"] = hashlib.sha256(f"{stem}:{index}:{source}".encode()).hexdigest()[:12]
        notebook.cells.append(cell)
    if missing := sorted(set(code_cells) - {text for kind, text in split if kind == "code"}):
        raise ValueError(f"{stem}: no marker for the code cell {missing[0]!r}")
    nbformat.validate(notebook)
    text = str(nbformat.writes(notebook, version=4))
    return text if text.endswith("\n") else text + "\n"


def split_page(page: str) -> Iterator[tuple[str, str]]:
    """The cells of a page in order: ("markdown", text) and ("code", name).

    A heading inside a code fence is text.
    """
    lines: list[str] = []
    fenced = False
    for line in page.split("\n"):
        fenced ^= FENCE.match(line) is not None
        marker = None if fenced else MARKER.fullmatch(line)
        if (marker or (line.startswith("## ") and not fenced)) and "".join(lines).strip():
            yield "markdown", "\n".join(lines).strip("\n")
            lines = []
        if marker:
            yield "code", marker["name"]
        else:
            lines.append(line)
    if "".join(lines).strip():
        yield "markdown", "\n".join(lines).strip("\n")
