"""What the verdicts of a gradebook depend on: the checks, in words and in code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from grader.checking.spec import CheckSpec


def digest(specs: Sequence[CheckSpec], folders: Sequence[Path]) -> str:
    """Changes when a check's fields change, or any Python file in `folders` (checks and programs)."""
    total = hashlib.sha256(json.dumps([asdict(spec) for spec in specs]).encode())
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
            data = path.read_bytes()
            total.update(f"{path.name}:{len(data)}:".encode() + data)
    return total.hexdigest()
