"""Which installed packages the jail holds: torch and what it needs, file by file as the installer recorded them."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOTS = ("torch", "numpy", "safetensors")


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


def top_level(files: Iterable[Path]) -> set[Path]:
    """The entries of site-packages that hold `files` (paths relative to it).

    Left out: what lies elsewhere (scripts), and .pth files, which would run code at start. Of the compiled files
    of single-file modules, which share one folder with those of others, each is an entry.
    """
    entries = set()
    for file in files:
        first = file.parts[0]
        if first == ".." or file.is_absolute() or file.suffix == ".pth":
            continue
        entries.add(file if first == "__pycache__" else Path(first))
    return entries


def installed_entries(roots: Iterable[str] = ROOTS) -> dict[Path, Path]:
    """Where each entry of the packages that `roots` need lies on this machine, by its path below site-packages.

    Raises importlib.metadata.PackageNotFoundError for a root that is not installed, and ValueError for one whose
    installer recorded no files.
    """
    roots = tuple(roots)
    for name in roots:
        importlib.metadata.distribution(name)
    entries: dict[Path, Path] = {}
    for name in required(roots, _requires):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # torch runs without some of what it names
        files = distribution.files
        if not files:
            raise ValueError(f"{name} has no record of its files; install it with pip")
        for entry in top_level(Path(file) for file in files):
            place = Path(str(distribution.locate_file(str(entry))))
            if place.exists():
                entries.setdefault(entry, place.resolve())
    return entries


def _requires(name: str) -> Sequence[str]:
    try:
        return importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return ()
