"""Verdicts as they fall, a line of JSON each, to whoever started this process."""

from __future__ import annotations

import json
import os
from typing import Any

from grader.checking.verdict import Verdict


class VerdictStream:
    """Writes {"event": "start"}, {"event": "verdict"} and {"event": "end"} lines to a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def started(self, check: str) -> None:
        """A check is under way."""
        self._write({"event": "start", "check": check})

    def fell(self, verdict: Verdict) -> None:
        """A check has its verdict."""
        self._write({"event": "verdict", **verdict.to_json()})

    def ended(self) -> None:
        """No more will come."""
        self._write({"event": "end"})

    def _write(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]
