"""Module files out of a zip that nobody has looked at: nothing is unpacked, every read is bounded."""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath

from grader.batch.notebook import gather
from grader.batch.submission import MAX_ENTRIES, Contents, is_ignored, quoted

# zipfile builds an object per member before anything can be counted: about twenty bytes of memory per byte.
MAX_ARCHIVE_BYTES = 32 * 2**20

# What zipfile and zlib raise on broken archives; each was seen with a damaged or forged one.
BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    ValueError,
    OverflowError,
    OSError,
)


def read_zip(path: Path) -> Contents:
    """The module files in the archive and its notebooks. What is wrong with it is said in the notes, never raised."""
    try:
        size = path.stat().st_size
        if size == 0:
            return Contents({}, ("the archive is an empty file",))
        if size > MAX_ARCHIVE_BYTES:
            return Contents({}, (f"the archive has {size} bytes, more than {MAX_ARCHIVE_BYTES}: not opened",))
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except BROKEN as error:
        return Contents({}, (f"the archive cannot be read: {_reason(error)}",))


def member_path(name: str) -> PurePosixPath | None:
    """A member's path below the archive's top, or None if the name is absolute or climbs out.

    A backslash separates folders, as some Windows programs write it.
    """
    windows = PureWindowsPath(name)
    if windows.drive or windows.root or ".." in windows.parts:
        return None
    return PurePosixPath(*windows.parts)


def _read(archive: zipfile.ZipFile) -> Contents:
    members = archive.infolist()
    notes: list[str] = []
    if len(members) > MAX_ENTRIES:
        notes.append(f"the archive has {len(members)} members: only the first {MAX_ENTRIES} were looked at")
    found: dict[PurePosixPath, zipfile.ZipInfo] = {}
    outside: list[str] = []
    special: list[str] = []
    twice: list[str] = []
    for member in members[:MAX_ENTRIES]:
        path = member_path(member.filename)
        if path is None:
            outside.append(member.filename)
        elif member.filename.endswith(("/", "\\")) or any(is_ignored(part) for part in path.parts):
            continue
        elif not _is_regular(member):
            special.append(member.filename)
        else:
            if path in found:
                twice.append(member.filename)
            found[path] = member
    if outside:
        notes.append(f"refused, because the path leads out of the archive: {quoted(outside)}")
    if special:
        notes.append(f"refused, because it is a link or no plain file: {quoted(special)}")
    if twice:
        notes.append(f"more than once in the archive, the last one counts: {quoted(twice)}")
    taken = gather(list(found), lambda path, limit: _take(archive, found[path], limit))
    return Contents(taken.files, (*notes, *taken.notes))


def _is_regular(member: zipfile.ZipInfo) -> bool:
    """False for links, devices and the like. Archives made without Unix modes hold plain files alone."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    return kind in (0, stat.S_IFREG)


def _take(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes | str:
    """The member's bytes, or the reason why it cannot be read."""
    try:
        return _extract(archive, member, limit)
    except BROKEN as error:
        return _reason(error)


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> bytes:
    """The member's bytes. Raises one of BROKEN; the size that the archive claims is not believed."""
    if member.flag_bits & 0x1:
        raise RuntimeError("it is encrypted")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"compression method {member.compress_type}; pack it with an ordinary zip program")
    with archive.open(member) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return data


def _reason(error: BaseException) -> str:
    return ascii(str(error) or type(error).__name__)[1:-1][:200]
