"""Generated files against those in a folder: text byte for byte, PDF and zip by what they hold."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from grader.handout import pdf

Content = str | bytes
BUILT_ONLY = (".pdf", ".zip")  # fonts and zlib change their bytes: not committed


def as_bytes(content: Content) -> bytes:
    """What stands in the file."""
    return content.encode("utf-8") if isinstance(content, str) else content


def members(archive: bytes) -> dict[str, bytes]:
    """A zip's files by path."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in sorted(opened.namelist()) if not name.endswith("/")}


def same(name: str, planned: Content, found: bytes) -> bool:
    """Whether a file holds what was planned. PDF and zip are compared by content."""
    wanted = as_bytes(planned)
    if wanted == found:
        return True
    try:
        match PurePosixPath(name).suffix:
            case ".zip":
                return members(wanted) == members(found)
            case ".pdf":
                return pdf.text_of(wanted) == pdf.text_of(found)
    except (zipfile.BadZipFile, ValueError, OSError):
        return False  # what is there cannot be read: it is not what was planned
    return False


def differing(files: Mapping[str, Content], folder: Path) -> list[str]:
    """The names of the files that the folder lacks or that hold something else there, in order.

    A PDF or zip that is not there is no difference: they are built, not committed.
    """
    return [name for name, content in sorted(files.items()) if not _is_there(name, content, folder / name)]


def strays(files: Mapping[str, Content], folder: Path) -> list[str]:
    """The files in the folder that are not planned, in order; built ones left out."""
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name not in files and not name.endswith(BUILT_ONLY))


def _is_there(name: str, content: Content, path: Path) -> bool:
    if not path.is_file():
        return name.endswith(BUILT_ONLY)
    return same(name, content, path.read_bytes())
