"""What one student handed in: at most six files, as bytes, and what was noticed while they were taken."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from grader.checking.spec import MODULES

MODULE_FILES = tuple(f"{module}.py" for module in MODULES)
MAX_FILE_BYTES = 2**20  # a module of a thousand lines has about 40 kB
MAX_DEPTH = 2  # folders that may lie around the module files: "ada.zip" holding "ada-main/assignment/"
MAX_ENTRIES = 10_000  # of a folder or archive that are looked at

IGNORED_FOLDERS = ("__MACOSX", "__pycache__")


@dataclass(frozen=True)
class Contents:
    """The module files found in one place (by file name), and what has to be said about that place."""

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """One student's work.

    name:   unique in a batch, safe as a file name and as a command-line argument.
    files:  the bytes of the module files that were there; empty if none could be read.
    notes:  sentences for staff and student: what was mended, refused or left out.
    origin: the absolute path of the folder, archive or notebook that it came from.
    """

    name: str
    files: Mapping[str, bytes]
    notes: tuple[str, ...]
    origin: str

    @property
    def digest(self) -> str:
        """Changes exactly when a file's name or bytes change."""
        total = hashlib.sha256()
        for file, data in sorted(self.files.items()):
            total.update(f"{file}:{len(data)}:".encode() + data)
        return total.hexdigest()


def is_ignored(part: str) -> bool:
    """True for a path component of which nothing is ever taken: dot files and what tools leave behind."""
    return part.startswith(".") or part in IGNORED_FOLDERS


def module_folder(paths: Iterable[PurePosixPath]) -> tuple[PurePosixPath | None, list[PurePosixPath]]:
    """Which folder's module files count, and the folders whose module files do not.

    The shallowest folder wins, at most MAX_DEPTH down; among equals the one named "assignment", as in the
    handout, then the one with more module files, then the first by name. (None, []) if there is none.
    """
    found: dict[PurePosixPath, set[str]] = defaultdict(set)
    for path in paths:
        if path.name in MODULE_FILES and len(path.parts) <= MAX_DEPTH + 1:
            found[path.parent].add(path.name)
    if not found:
        return None, []
    ranked = sorted(
        found,
        key=lambda folder: (len(folder.parts), folder.name != "assignment", -len(found[folder]), str(folder)),
    )
    return ranked[0], ranked[1:]


def quoted(names: Iterable[str], limit: int = 5) -> str:
    """Names for a note: bounded Python strings, so that none can hold a line or an escape sequence."""
    shown = []
    names = list(names)
    for name in names[:limit]:
        shown.append(ascii(name) if len(name) <= 60 else ascii(name[:57] + "..."))
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(shown) + more


def select(
    paths: Iterable[PurePosixPath],
) -> tuple[dict[str, PurePosixPath], list[str]]:
    """The module files that count, by file name, and notes on those that do not."""
    paths = list(paths)
    folder, others = module_folder(paths)
    if folder is None:
        seen = sorted({path.parts[0] for path in paths if path.parts})
        return {}, [f"no module file in it; it holds {quoted(seen)}" if seen else "it is empty"]
    notes = []
    if others:
        where = "the top folder" if folder == PurePosixPath() else quoted([str(folder)])
        notes.append(f"module files were taken from {where}; those in {quoted(map(str, others))} were left out")
    return {path.name: path for path in paths if path.parent == folder and path.name in MODULE_FILES}, notes
