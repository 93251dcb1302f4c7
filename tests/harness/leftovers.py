"""What is left of a run: every process that belongs to it carries its id."""

from __future__ import annotations

import os
from pathlib import Path


def processes_of(run: str) -> list[int]:
    """The processes on this machine whose environment holds GRADER_RUN=run, this one left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended meanwhile, or is another user's
        if f"GRADER_RUN={run}".encode() in variables and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return sorted(found)
