"""The gradebook: one SQLite file that holds checks, submissions and verdicts, each committed as it falls."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from grader.batch import schema
from grader.batch.schema import GradebookError
from grader.batch.submission import Submission
from grader.checking.spec import CheckSpec
from grader.checking.verdict import Status, Verdict

FILE_NAME = "gradebook.db"


@dataclass(frozen=True)
class Run:
    """One `grader grade`: its GRADER_RUN, its jail, the budget of a submission and the grader's version."""

    run: str
    jail: str
    budget_seconds: float
    version: str


@dataclass(frozen=True)
class Graded:
    """One submission with the verdicts it has so far, by check name. Its other fields: see `Submission`."""

    name: str
    origin: str
    digest: str
    notes: tuple[str, ...]
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class Book:
    """All that a gradebook holds: what every view is made from. Checks as in the handout, names sorted.

    digest: names the check set (see `check_set`).
    """

    checks: tuple[CheckSpec, ...]
    digest: str
    submissions: tuple[Graded, ...]


class Gradebook:
    """A gradebook open for writing. One process writes at a time: hold the folder's lock."""

    def __init__(self, connection: sqlite3.Connection, run: Run) -> None:
        self._connection = connection
        self._run = run

    @classmethod
    def open(cls, path: Path, checks: Sequence[CheckSpec], *, digest: str, run: Run) -> Self:
        """Opens the gradebook at `path`, or makes it, and enters the run.

        digest: names the check set; a gradebook of another one is refused: its verdicts mean other things.
        Raises GradebookError for that, for a newer schema and for a file that is no gradebook.
        """
        connection = _connect(path)
        try:
            version = schema.version_of(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing, a power cut little
            connection.execute("PRAGMA foreign_keys = ON")
            with _transaction(connection):
                if version == 0:
                    schema.create(connection, checks, digest)
                (stored,) = connection.execute("SELECT digest FROM check_set").fetchone()
                if stored != digest:
                    raise GradebookError(
                        f"{path} was made with other checks (files or points have changed);"
                        " use another --out, or --fresh"
                    )
                connection.execute(
                    "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?)",
                    (
                        run.run,
                        datetime.now(UTC).isoformat(timespec="seconds"),
                        run.jail,
                        run.budget_seconds,
                        run.version,
                    ),
                )
        except BaseException:
            connection.close()
            raise
        return cls(connection, run)

    def register(self, submission: Submission) -> None:
        """Enters the submission. It replaces one of the same name; with other files, verdicts too."""
        row = (submission.name, submission.origin, submission.digest, json.dumps(submission.notes))
        with _transaction(self._connection):
            self._connection.execute(
                "DELETE FROM verdicts WHERE submission IN"
                " (SELECT name FROM submissions WHERE name = ? AND digest != ?)",
                (submission.name, submission.digest),
            )
            self._connection.execute(
                "INSERT INTO submissions VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                " origin = excluded.origin, digest = excluded.digest, notes = excluded.notes",
                row,
            )

    def settled(self, name: str) -> set[str]:
        """The checks whose verdict on the submission stands: all that have one but `infra`."""
        rows = self._connection.execute(
            'SELECT "check" FROM verdicts WHERE submission = ? AND status != ?', (name, Status.INFRA.value)
        )
        return {check for (check,) in rows}

    def record(self, name: str, verdict: Verdict) -> None:
        """Writes one verdict on the submission `name`; it is on disk when this returns."""
        with _transaction(self._connection):
            self._connection.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    name,
                    verdict.check,
                    self._run.run,
                    verdict.status.value,
                    verdict.points,
                    verdict.possible,
                    verdict.seconds,
                    json.dumps(verdict.to_json()),
                ),
            )

    def book(self) -> Book:
        """All that is in it."""
        return _read(self._connection)

    def close(self) -> None:
        """Folds the write-ahead log into the one file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(path: Path) -> Book:
    """All that the gradebook at `path` holds; another process may be writing it. Raises GradebookError."""
    if not path.is_file():
        raise GradebookError(f"no gradebook at {path}")
    with closing(_connect(path)) as connection:
        if schema.version_of(connection, path) == 0:
            raise GradebookError(f"{path} is empty")
        connection.execute("BEGIN")  # one moment of a gradebook that may grow meanwhile
        return _read(connection)


def set_aside(path: Path) -> None:
    """Renames the gradebook at `path`, if there is one, to "gradebook.previous.db"; it replaces an earlier such."""
    for suffix in ("", "-wal", "-shm"):  # SQLite finds the other two by name
        present = path.with_name(path.name + suffix)
        previous = path.with_name(f"{path.stem}.previous{path.suffix}{suffix}")
        previous.unlink(missing_ok=True)
        if present.exists():
            present.rename(previous)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, isolation_level=None, timeout=30)
    except sqlite3.Error as error:
        raise GradebookError(f"{path} cannot be opened: {error}") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _read(connection: sqlite3.Connection) -> Book:
    checks = connection.execute(
        "SELECT name, module, points, statement, worlds, needs, core, bonus, hidden FROM checks ORDER BY position"
    )
    verdicts: dict[str, dict[str, Verdict]] = {}
    for name, record in connection.execute("SELECT submission, record FROM verdicts"):
        verdict = Verdict.from_json(json.loads(record))
        verdicts.setdefault(name, {})[verdict.check] = verdict
    submissions = connection.execute("SELECT name, origin, digest, notes FROM submissions ORDER BY name")
    (digest,) = connection.execute("SELECT digest FROM check_set").fetchone()
    return Book(
        tuple(
            CheckSpec(
                name,
                module,
                points,
                text,
                tuple(json.loads(worlds)),
                tuple(json.loads(needs)),
                *map(bool, rest),
            )
            for name, module, points, text, worlds, needs, *rest in checks
        ),
        digest,
        tuple(
            Graded(name, origin, files, tuple(json.loads(notes)), verdicts.get(name, {}))
            for name, origin, files, notes in submissions
        ),
    )
