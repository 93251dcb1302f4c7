"""A module's notebook: its page, cut into cells, with cells that write, check and draw the module."""

# mypy: allow-untyped-calls
# (nbformat has no annotations)

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping

import nbformat
from jinja2 import Environment
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

STUDENT_FOLDER = "assignment"  # what is handed in, below the bundle's top
STAFF_FOLDER = "out/solved"  # the solved notebook never writes over what a student would hand in
WITHOUT_TIMELINE = ("accounting",)  # its functions run on no ranks

CONTRACT = "## The contract"
MARKER = re.compile(r"<!-- code: (?P<name>\w+) -->")
FENCE = re.compile(r"(```|~~~)")
PICTURE = re.compile(r"!\[(?P<alt>(?:[^\]\\]|\\.)*)\]\(figures/(?P<name>[\w.-]+)\.svg\)")
PAGE_LINK = re.compile(r"\]\((?P<page>[a-z_]+)\.md(?P<place>#[\w-]*)?\)")


def module_notebook(
    environment: Environment,
    module: str,
    page: str,
    source: str,
    figures: Mapping[str, str],
    *,
    solved: bool = False,
) -> str:
    """The notebook of a module, as text. Pure: the same bytes every time.

    page:    the module's page as Markdown. Where its contract ends comes "Write it here", from cells/work.md.j2,
             with the code cells of cells/NAME.py.j2.
    source:  the module that the `%%writefile` cell holds: the stub or, with `solved`, the solution.
    figures: name -> SVG without media queries, which would follow another light or dark mode than the notebook's.
    Raises ValueError where the page has no contract, and as `build_notebook` does.
    """
    facts = {
        "module": module,
        "solved": solved,
        "folder": STAFF_FOLDER if solved else STUDENT_FOLDER,
        "timeline": module not in WITHOUT_TIMELINE,
        "source": source,
    }
    work = environment.get_template("cells/work.md.j2").render(facts)
    names = [text for kind, text in split_page(work) if kind == "code"]
    cells = {name: environment.get_template(f"cells/{name}.py.j2").render(facts) for name in names}
    return build_notebook(module, after_contract(module, page, work), cells, figures)


def after_contract(stem: str, page: str, section: str) -> str:
    """The page with a section between its contract and what follows. Raises ValueError if it has no contract."""
    parts = list(split_page(page))
    for index, (kind, text) in enumerate(parts):
        if kind == "markdown" and text.partition("\n")[0] == CONTRACT:
            before, after = parts[: index + 1], parts[index + 1 :]
            return (
                "\n\n".join([*(text for _, text in before), section.strip("\n"), *(text for _, text in after)]) + "\n"
            )
    raise ValueError(f"{stem}: the page has no section {CONTRACT!r}, after which the notebook's cells stand")


def build_notebook(
    stem: str, page: str, code_cells: Mapping[str, str], figures: Mapping[str, str] | None = None
) -> str:
    """The notebook's text: valid, without outputs, the same bytes every time. Pure.

    page:       Markdown; each `## ` heading begins a cell; a line `<!-- code: NAME -->` is code_cells[NAME];
                `![alt](figures/NAME.svg)` shows figures[NAME], which the notebook then holds itself.
    code_cells: the source of each code cell.
    Raises ValueError for a marker without a cell, for a cell without a marker, and for an unknown figure.
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
        source = code_cells[text].rstrip("\n") if kind == "code" else _for_notebook(stem, text, figures or {})
        cell = new_code_cell(source) if kind == "code" else new_markdown_cell(source)
        # nbformat's own ids are random, and would change the file at every build
        cell["id"] = hashlib.sha256(f"{stem}:{index}:{source}".encode()).hexdigest()[:12]
        notebook.cells.append(cell)
    if missing := sorted(set(code_cells) - {text for kind, text in split if kind == "code"}):
        raise ValueError(f"{stem}: no marker for the code cell {missing[0]!r}")
    nbformat.validate(notebook)
    text = str(nbformat.writes(notebook, version=4))
    return text if text.endswith("\n") else text + "\n"


def readable_text(notebook: str) -> str:
    """What can be read in the notebook's cells, without JSON's escapes: what a leak check looks at. Pure."""
    return "\n".join("".join(cell["source"]) for cell in json.loads(notebook)["cells"])


def split_page(page: str) -> Iterator[tuple[str, str]]:
    """The cells of a page in order: ("markdown", text) and ("code", name).

    A heading inside a code fence is text.
    """
    lines: list[str] = []
    for line, fenced in _with_fences(page):
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


def _with_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a code fence."""
    fenced = False
    for line in text.split("\n"):
        edge = FENCE.match(line) is not None
        yield line, fenced or edge
        fenced ^= edge


def _for_notebook(stem: str, text: str, figures: Mapping[str, str]) -> str:
    """Pictures become part of the cell, and links lead to the pages beside the folder of notebooks."""

    def picture(match: re.Match[str]) -> str:
        if match["name"] not in figures:
            raise ValueError(f"{stem}: no figure named {match['name']!r}")
        return _image(figures[match["name"]], re.sub(r"\\(.)", r"\1", match["alt"]))

    def shown(line: str) -> str:
        return PAGE_LINK.sub(r"](../handout/\g<page>.html\g<place>)", PICTURE.sub(picture, line))

    return "\n".join(line if fenced else shown(line) for line, fenced in _with_fences(text))


def _image(svg: str, alt: str) -> str:
    """An <img> that holds the picture on white.

    Not a cell attachment: JupyterLab's AttachmentsResolver refuses image/svg+xml. Not Markdown's `![]()`: markdown-it,
    which VS Code uses, takes no SVG from a data address. White, because the picture's words are dark.
    """
    opening, tag_end, drawing = svg.partition(">")
    on_white = f'{opening}{tag_end}<rect width="100%" height="100%" fill="#fff"/>{drawing}'
    data = base64.b64encode(on_white.encode()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">'
