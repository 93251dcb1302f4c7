"""Which shared libraries of the host the interpreter and the packages need, as the host's own loader finds them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path


def libraries_of(loader: Path, objects: Iterable[Path]) -> dict[str, Path]:
    """The libraries that `objects` need, directly or not: by the name that is asked for, where each really lies.

    The loader is run once per object, in its mode that lists and does not execute (ld.so(8)): about 1 ms each.
    """
    found: dict[str, Path] = {}
    for path in objects:
        listing = subprocess.run([loader, "--list", path], capture_output=True, text=True, check=False)
        if listing.returncode == 0:  # else it is none of this machine's: a script, or another architecture
            found.update(parse_listing(listing.stdout))
    return found


def parse_listing(text: str) -> dict[str, Path]:
    r"""{"libc.so.6": Path("/usr/lib/libc.so.6")} of lines like "\tlibc.so.6 => /lib/libc.so.6 (0x7f…)"."""
    libraries = {}
    for line in text.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        place = rest.rpartition(" (")[0]
        if arrow and place.startswith("/"):
            libraries[name] = Path(place).resolve()
    return libraries
