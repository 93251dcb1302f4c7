"""What the harness says of classic mistakes, as the pages quote it: a table that `python -m tests.mistakes` prints."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping


class MessageError(ValueError):
    """The table is malformed, or a page quotes what students may not see; the message names the mutant."""


class Messages:
    """The first line of the message for each wrong solution."""

    def __init__(self, rows: Mapping[tuple[str, str], tuple[str, str]], public: Collection[str]) -> None:
        self._rows = rows
        self._public = public

    @staticmethod
    def read(text: str, filename: str, *, public: Collection[str]) -> Messages:
        """From the JSON of `python -m tests.mistakes --json`. public: the names of the checks that students have."""
        try:
            rows = json.loads(text)["rows"]
            found = {(row["module"], row["mutant"]): (row["check"], row["line"]) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise MessageError(f"{filename} is not what `python -m tests.mistakes --json` prints ({error})") from None
        return Messages(found, public)

    def quote(self, module: str, mutant: str) -> str:
        """The first line that a student reads: of this module's mutant, or of the one module that has one so named.

        Raises MessageError for an unknown mutant and for a hidden check.
        """
        rows = [row for (_, name), row in self._rows.items() if name == mutant]
        if (module, mutant) in self._rows:
            rows = [self._rows[module, mutant]]
        if len(rows) != 1:
            raise MessageError(f"{module}: no message, or more than one, for the mistake {mutant!r}")
        ((check, line),) = rows
        if check not in self._public:
            raise MessageError(f"{module}: the message for {mutant!r} belongs to {check}, which is hidden or not given")
        if not line:
            raise MessageError(f"{module}: the message for {mutant!r} is empty")
        return line
