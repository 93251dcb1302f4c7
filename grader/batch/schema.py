"""The gradebook's tables, and which files hold them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from grader.checking.spec import CheckSpec

APPLICATION_ID = 0x67726164  # "grad", in the file's header
SCHEMA_VERSION = 1
SCHEMA = (
    """CREATE TABLE check_set (  -- one row: which checks this gradebook belongs to
        only INTEGER PRIMARY KEY CHECK (only = 1), digest TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE runs (  -- each `grader grade` that wrote here
        run TEXT PRIMARY KEY, started TEXT NOT NULL, jail TEXT NOT NULL, budget_seconds REAL NOT NULL,
        version TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE checks (
        position INTEGER NOT NULL, name TEXT PRIMARY KEY, module TEXT NOT NULL, points INTEGER NOT NULL,
        statement TEXT NOT NULL, worlds TEXT NOT NULL, needs TEXT NOT NULL,  -- the two are JSON lists
        core INTEGER NOT NULL, bonus INTEGER NOT NULL, hidden INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE submissions (
        name TEXT PRIMARY KEY, origin TEXT NOT NULL, digest TEXT NOT NULL, notes TEXT NOT NULL  -- JSON list
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE verdicts (
        submission TEXT NOT NULL REFERENCES submissions, "check" TEXT NOT NULL REFERENCES checks,
        run TEXT NOT NULL REFERENCES runs, status TEXT NOT NULL, points INTEGER NOT NULL,
        possible INTEGER NOT NULL, seconds REAL NOT NULL,
        record TEXT NOT NULL,  -- JSON: every field of the verdict
        PRIMARY KEY (submission, "check")
    ) STRICT, WITHOUT ROWID""",
)


class GradebookError(Exception):
    """A gradebook that cannot be used: one sentence for the user, with what to do."""


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The schema of the file, 0 for an empty one. Raises GradebookError if it is newer or no gradebook."""
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError as error:
        raise GradebookError(f"{path} is no gradebook: {error}; use another --out, or --fresh") from error
    if tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise GradebookError(f"{path} is a database, but no gradebook; use another --out, or --fresh")
    if version > SCHEMA_VERSION:
        raise GradebookError(
            f"{path} was made by a newer grader (schema {version}, this one knows {SCHEMA_VERSION}):"
            " update the grader, or use another --out"
        )
    return int(version)


def create(connection: sqlite3.Connection, checks: Sequence[CheckSpec], digest: str) -> None:
    """Makes the tables in an empty file and enters the check set; part of the caller's transaction."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO check_set VALUES (1, ?)", (digest,))
    for position, spec in enumerate(checks):
        fields = asdict(spec) | {
            "position": position,
            "worlds": json.dumps(spec.worlds),
            "needs": json.dumps(spec.needs),
        }
        connection.execute(
            "INSERT INTO checks VALUES (:position, :name, :module, :points, :statement, :worlds, :needs,"
            " :core, :bonus, :hidden)",
            fields,
        )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
