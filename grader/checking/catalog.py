"""The checks there are, read from the test files without running one and without importing torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.checking.spec import MODULES, CheckSpec, spec_of

HIDDEN_FOLDER = "hidden"
FOLDERS = (Path("tests/public"), Path("tests/hidden"))  # of a checkout: all the checks that there are


@dataclass(frozen=True)
class ListedCheck:
    """A check and where its function is."""

    spec: CheckSpec
    function: Callable[..., Any]
    path: Path

    @property
    def node_id(self) -> str:
        """What pytest calls it, from the folder that holds `tests/`."""
        return f"{self.path.as_posix()}::{self.function.__name__}"


def is_hidden(path: Path) -> bool:
    """Whether the checks of the test file at `path` are hidden: it lies in a folder of that name."""
    return HIDDEN_FOLDER in path.parts


def load(folders: Sequence[Path], *, root: Path | None = None) -> list[ListedCheck]:
    """Every check in `folders` (relative to `root`, the folder that holds `tests/`; default: where we stand).

    In the order of the modules, public before hidden, then as written. Raises ValueError for a malformed mark,
    two checks of one name, or a folder that does not exist.
    """
    root = (root if root is not None else Path.cwd()).resolve()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # as pytest does: test files are modules of the package `tests`
    found: list[ListedCheck] = []
    for folder in folders:
        if not (root / folder).exists():
            raise ValueError(f"no checks in {folder}: there is no such folder")
        absolute = (root / folder).resolve()
        files = [absolute] if absolute.is_file() else sorted(absolute.glob("test_*.py"))
        for file in files:
            found += _in_file(file.relative_to(root))
    names = [listed.spec.name for listed in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two checks have the same name: {', '.join(twice)}")
    return sorted(found, key=lambda listed: (MODULES.index(listed.spec.module), listed.spec.hidden))


def _in_file(path: Path) -> list[ListedCheck]:
    module = importlib.import_module(".".join(path.with_suffix("").parts))
    listed = []
    for function in vars(module).values():
        if callable(function) and getattr(function, "__module__", None) == module.__name__:
            spec = spec_of(function, hidden=is_hidden(path))
            if spec is not None:
                listed.append(ListedCheck(spec, function, path))
    return listed
