"""Module files out of a student's folder: links are not followed, every walk and every read is bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from grader.batch.archive import read_zip
from grader.batch.notebook import gather
from grader.batch.submission import (
    MAX_DEPTH,
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MODULE_FILES,
    Contents,
    is_ignored,
    module_folder,
    quoted,
)


def read_folder(folder: Path) -> Contents:
    """The module files in the folder and in its notebooks, or in the one archive it holds.

    What is wrong is said in the notes.
    """
    notes: list[str] = []
    walked = list(_walk(folder, notes))
    special = [str(path) for path, kind in walked if kind == "special" and path.name in MODULE_FILES]
    if special:
        notes.append(f"refused, because it is a link or no plain file: {quoted(special)}")
    plain = [path for path, kind in walked if kind == "file"]
    taken = gather(plain, lambda path, limit: _read(folder / path, limit))
    archives = [path for path in plain if path.suffix.lower() == ".zip"]
    if not taken.files and module_folder(plain)[0] is None and len(archives) == 1:
        inside = read_zip(folder / archives[0])
        return Contents(inside.files, (*notes, f"opened {quoted([str(archives[0])])}", *inside.notes))
    return Contents(taken.files, (*notes, *taken.notes))


def read_plain(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """A plain file's bytes. Raises ValueError if it is none or larger than `limit`; never blocks at a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no plain file")
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return data


def _read(path: Path, limit: int) -> bytes | str:
    """The file's bytes, or the reason why it cannot be read."""
    try:
        return read_plain(path, limit)
    except (OSError, ValueError) as error:
        return _reason(error)


def _walk(folder: Path, notes: list[str]) -> Iterator[tuple[PurePosixPath, str]]:
    """Each entry that is no folder, MAX_DEPTH folders down at most: its path below `folder`, and its kind."""
    waiting = [PurePosixPath()]
    seen = 0
    while waiting:
        below = waiting.pop(0)
        try:
            entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
        except OSError as error:
            notes.append(f"the folder {quoted([str(below)])} cannot be read: {_reason(error)}")
            continue
        for entry in entries:
            seen += 1
            if seen > MAX_ENTRIES:
                notes.append(f"it holds more than {MAX_ENTRIES} files: only the first were looked at")
                return
            if is_ignored(entry.name):
                continue
            path = below / entry.name
            if entry.is_dir(follow_symlinks=False):
                if len(path.parts) <= MAX_DEPTH:
                    waiting.append(path)
            else:
                yield path, "file" if entry.is_file(follow_symlinks=False) else "special"


def _reason(error: Exception) -> str:
    return (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
