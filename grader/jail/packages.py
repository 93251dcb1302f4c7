"""Which installed packages the jail holds: torch and what it needs, file by file as the installer recorded them."""

from __future__ import annotations

import csv
import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOTS = ("torch", "numpy", "safetensors")


@dataclass(frozen=True)
class Packages:
    """entries: files and folders, by their path below site-packages. objects: the shared objects within them."""

    entries: dict[str, Path]
    objects: list[Path]


def required(roots: Iterable[str], requires: Callable[[str], Sequence[str]]) -> list[str]:
    """`roots` and all that they need without extras on this machine, each once, as canonical names.

    requires: the requirements of a distribution, as its metadata states them.
    """
    found: list[str] = []
    waiting = [canonicalize_name(name) for name in roots]
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found.append(name)
        for line in requires(name):
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return found


def top_level(files: Iterable[str]) -> set[str]:
    """The entries of site-packages that hold `files` (paths relative to it).

    Left out: what lies elsewhere (scripts), and .pth files, which would run code at start. Of the compiled files
    of single-file modules, which share one folder with those of others, each is an entry.
    """
    entries = set()
    for file in files:
        first = file.partition("/")[0]
        if first in ("", "..") or file.endswith(".pth"):
            continue
        entries.add(file if first == "__pycache__" else first)
    return entries


def installed(roots: Sequence[str] = ROOTS) -> Packages:
    """The packages that `roots` need, as they lie on this machine.

    Raises importlib.metadata.PackageNotFoundError for a root that is not installed, and ValueError for one whose
    installer recorded no files.
    """
    entries: dict[str, Path] = {}
    objects: list[Path] = []
    for name in required(roots, _requires):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name in roots:
                raise
            continue  # torch runs without some of what it names
        record = distribution.read_text("RECORD")
        if record is None:
            raise ValueError(f"{name} has no record of its files; install it with pip")
        files = [row[0] for row in csv.reader(record.splitlines()) if row]
        places = {entry: Path(str(distribution.locate_file(entry))) for entry in sorted(top_level(files))}
        entries |= {entry: place.resolve() for entry, place in places.items() if place.exists()}
        objects += [
            Path(str(distribution.locate_file(file)))
            for file in files
            if file.endswith(".so") or ".so." in file.rpartition("/")[2]
        ]
    return Packages(entries, objects)


def _requires(name: str) -> Sequence[str]:
    try:
        return importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return ()
