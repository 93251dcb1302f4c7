"""A submission as the judge holds it: the bytes of its modules, read once and never imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.checking.spec import MODULES
from grader.world import Submitted

MAX_MODULE_BYTES = 2**20


@dataclass(frozen=True)
class Submission:
    """The modules of a submission that are there, by name.

    files:    bytes by module name ("collectives"); a module that was not handed in is missing.
    problems: a sentence for each module that is there but cannot be taken (too large, not a file).
    shown_as: the folder that messages put before a file's name, or "" for none.
    """

    files: Mapping[str, bytes]
    problems: Mapping[str, str]
    shown_as: str = ""

    @staticmethod
    def read(folder: Path, *, shown_as: str = "") -> Submission:
        """Reads the six files that count from `folder`; nothing else in it is looked at."""
        files, problems = {}, {}
        for module in MODULES:
            path = folder / f"{module}.py"
            if path.is_symlink() and not path.exists():
                problems[module] = f"{module}.py is a link to nothing"
            elif path.exists() and not path.is_file():
                problems[module] = f"{module}.py is not a file"
            elif path.exists() and path.stat().st_size > MAX_MODULE_BYTES:
                problems[module] = f"{module}.py is larger than {MAX_MODULE_BYTES // 2**20} MiB"
            elif path.exists():
                files[module] = path.read_bytes()
        return Submission(files, problems, shown_as)

    def module(self, name: str) -> Submitted:
        """One module, ready to be sent to a rank. KeyError if it is missing."""
        file_name = f"{self.shown_as}/{name}.py" if self.shown_as else f"{name}.py"
        return Submitted(name, self.files[name], file_name)
