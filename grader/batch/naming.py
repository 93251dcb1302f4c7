"""Names of submissions: readable, unique, safe as file names and on command lines. Pure functions."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

ALLOWED = " ._,@+-"
MAX_NAME_BYTES = 80  # a file name has 255; this leaves room for a suffix and keeps tables readable
# What Windows takes for a device, and what this program writes beside the submissions' folders.
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
RESERVED_PREFIX = "gradebook"


def safe_name(raw: str) -> str:
    """The name itself where it is safe, else the nearest safe one; the same input gives the same name.

    Letters and digits of any script stay (in Unicode's composed form), and so does ALLOWED, except at the
    start, where a sign could make a hidden file, an option or a spreadsheet formula. All else becomes "_".
    """
    composed = unicodedata.normalize("NFC", raw)
    kept = "".join(letter if letter.isalnum() or letter in ALLOWED else "_" for letter in composed)
    while len(kept.encode()) > MAX_NAME_BYTES:
        kept = kept[:-1]
    kept = kept.rstrip(" .")
    if not kept.strip("_" + ALLOWED):
        return "unnamed"
    if kept[0] in ALLOWED:
        kept = "_" + kept[1:]
    stem = kept.split(".")[0].rstrip(" ").casefold()
    return f"_{kept}" if stem in RESERVED or stem.startswith(RESERVED_PREFIX) else kept


def unique_name(name: str, taken: Collection[str]) -> str:
    """`name`, or the first of name-2, name-3, ... that differs from all taken ones on any file system.

    `taken` holds folded names, as `folded` gives them.
    """
    candidate, number = name, 1
    while folded(candidate) in taken:
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def folded(name: str) -> str:
    """Equal for two names exactly if some file system takes them for the same one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
