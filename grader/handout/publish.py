"""Writes what was planned, and keeps a folder to exactly that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grader.handout.compare import Content, as_bytes, strays


def write(files: Mapping[str, Content], folder: Path) -> list[str]:
    """Writes the files whose bytes differ into the folder and returns their names."""
    changed = []
    for name, content in sorted(files.items()):
        path, data = folder / name, as_bytes(content)
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            changed.append(name)
    return changed


def remove_strays(files: Mapping[str, Content], folder: Path) -> list[str]:
    """Removes what an earlier build left in the folder and this one does not make; returns the names."""
    left = strays(files, folder)
    for name in left:
        (folder / name).unlink()
    return left
