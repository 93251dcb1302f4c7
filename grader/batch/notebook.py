"""Module files out of Jupyter notebooks: the cells that would write them, read as JSON and never run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from grader.batch.submission import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MODULE_FILES,
    Contents,
    quoted,
    select,
)

SUFFIX = ".ipynb"
MAX_NOTEBOOK_BYTES = 8 * 2**20  # outputs hold pictures and long texts
MAX_NOTEBOOKS = 24  # of one submission; the handout has six
MAX_CELLS = 5_000

WRITEFILE = re.compile(r"%%writefile[ \t]+(?P<arguments>.+)")
APPEND = ("-a", "--append")


def read_notebook(data: bytes, name: str) -> Contents:
    """The module files that the notebook's cells would write. Pure; what is wrong is said in the notes, never raised.

    A code cell counts if its first line is `%%writefile FILE`, where FILE is a module's file name with any folder
    before it; the file is the rest of the cell, as Jupyter would write it. Of several cells for one module the last
    counts. `name` only names the notebook in the notes.
    """
    shown = quoted([name])
    try:
        cells = _code_cells(data)
    except ValueError as error:
        return Contents({}, (f"the notebook {shown} cannot be read: {error}",))
    found: dict[str, list[str]] = {}
    notes: list[str] = []
    for cell in cells:
        first, _, body = cell.partition("\n")
        module_file, appends = _target(first)
        if module_file is None:
            continue
        if appends:
            notes.append(f"a cell of the notebook {shown} adds to {module_file} (-a): refused, one cell holds it all")
        else:
            found.setdefault(module_file, []).append(body if body.endswith("\n") else body + "\n")
    files: dict[str, bytes] = {}
    for module_file, versions in found.items():
        if len(set(versions)) > 1:
            notes.append(f"{len(versions)} cells of the notebook {shown} write {module_file}: the last one counts")
        try:
            files[module_file] = _encoded(versions[-1])
        except ValueError as error:
            notes.append(f"{module_file} in the notebook {shown} cannot be taken: {error}")
    return Contents(files, tuple(notes))


def is_notebook(path: PurePosixPath) -> bool:
    """Whether a file at this path below a submission's top may hold modules."""
    return path.suffix.lower() == SUFFIX and len(path.parts) <= MAX_DEPTH + 1


def read_lone(data: bytes, name: str) -> Contents:
    """The modules of a notebook that is a whole submission."""
    return _completed(Contents({}), [(name, read_notebook(data, name))])


def gather(paths: Sequence[PurePosixPath], read: Callable[[PurePosixPath, int], bytes | str]) -> Contents:
    """The modules among the files of a submission, and those that only its notebooks hold.

    read: a file's bytes, so many at most, or the reason why it cannot be read.
    """
    chosen, remarks = select(paths)
    files: dict[str, bytes] = {}
    unread: list[str] = []
    for name, path in chosen.items():
        data = read(path, MAX_FILE_BYTES)
        if isinstance(data, bytes):
            files[name] = data
        else:
            unread.append(f"{name} cannot be read: {data}")
    taken = with_notebooks(Contents(files, tuple(unread)), paths, lambda path: read(path, MAX_NOTEBOOK_BYTES))
    remarks = remarks if chosen or not taken.files else []
    return Contents(taken.files, (*remarks, *taken.notes))


def with_notebooks(
    modules: Contents, paths: Iterable[PurePosixPath], read: Callable[[PurePosixPath], bytes | str]
) -> Contents:
    """The modules of a submission, and those that only its notebooks hold.

    modules: what its .py files gave: a file wins over a notebook.
    paths:   every file of the submission; of its notebooks, those nearest to the top come first, among equals the
             one named like the module (`collectives.ipynb`), then the first by path.
    read:    a notebook's bytes, MAX_NOTEBOOK_BYTES at most, or the reason why it cannot be read.
    """
    books = sorted(filter(is_notebook, paths), key=lambda path: (len(path.parts), str(path)))
    parts: list[tuple[str, Contents]] = []
    for path in books[:MAX_NOTEBOOKS]:
        data = read(path)
        if isinstance(data, str):
            unread = f"the notebook {quoted([str(path)])} cannot be read: {data}"
            parts.append((str(path), Contents({}, (unread,))))
        else:
            parts.append((str(path), read_notebook(data, str(path))))
    if len(books) > MAX_NOTEBOOKS:
        ignored = f"it holds {len(books)} notebooks: only the first {MAX_NOTEBOOKS} were looked at"
        parts.append(("", Contents({}, (ignored,))))
    return _completed(modules, parts)


def _completed(modules: Contents, notebooks: list[tuple[str, Contents]]) -> Contents:
    files = dict(modules.files)
    notes = list(modules.notes)
    for _, contents in notebooks:
        notes += contents.notes
    differing: list[str] = []
    for module_file in MODULE_FILES:
        versions = _versions(module_file, notebooks)
        if module_file in modules.files:
            differing += [module_file] * any(data != files[module_file] for _, data in versions)
        elif versions:
            name, files[module_file] = versions[0]
            notes.append(f"{module_file} was taken from the notebook {quoted([name])}")
            if others := [other for other, data in versions if data != files[module_file]]:
                notes.append(f"{module_file} is another one in the notebook {quoted(others)}: left out")
    if differing:
        notes.append(f"another version is in a notebook, the file counts: {quoted(differing, len(MODULE_FILES))}")
    if not files and notebooks and not notes:
        names = quoted(name for name, _ in notebooks)
        notes.append(f"no cell begins with `%%writefile MODULE.py` in the notebook {names}")
    return Contents(files, tuple(notes))


def _versions(module_file: str, notebooks: list[tuple[str, Contents]]) -> list[tuple[str, bytes]]:
    """The module as each notebook has it, by the notebook's name; the one that counts comes first."""
    held = [(name, contents.files[module_file]) for name, contents in notebooks if module_file in contents.files]
    own = PurePosixPath(module_file).stem
    return sorted(held, key=lambda version: (version[0].count("/"), PurePosixPath(version[0]).stem != own))


def _code_cells(data: bytes) -> list[str]:
    """The sources of the code cells, without blank lines before. Raises ValueError with a reason."""
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise ValueError(f"it is larger than {MAX_NOTEBOOK_BYTES} bytes")
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        raise ValueError("it is nested too deeply" if deep else "it is not valid JSON") from None
    cells = document.get("cells") if isinstance(document, Mapping) else None
    if not isinstance(cells, list):
        raise ValueError("it has no list of cells, as notebooks of format 4 have")
    if len(cells) > MAX_CELLS:
        raise ValueError(f"it has more than {MAX_CELLS} cells")
    return list(_sources(cells))


def _sources(cells: list[object]) -> Iterator[str]:
    for cell in cells:
        if not isinstance(cell, Mapping) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if isinstance(source, str):
            yield re.sub(r"\A(?:[ \t\r]*\n)+", "", source)  # Jupyter passes over them too


def _target(first: str) -> tuple[str | None, bool]:
    """The module file that a cell with this first line writes, or None; and whether it would append to it."""
    magic = WRITEFILE.fullmatch(first.rstrip())
    if magic is None:
        return None, False
    words = magic["arguments"].split()
    path = " ".join(word for word in words if word not in APPEND).strip("'\"")
    name = path.replace("\\", "/").rpartition("/")[2]
    return (name if name in MODULE_FILES else None), any(word in APPEND for word in words)


def _encoded(text: str) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no text") from None
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    return data
