"""The gradebook: what is written is there, what stands is kept, what does not belong is refused."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from grader.batch import check_set
from grader.batch.gradebook import FILE_NAME, Gradebook, Run, read, set_aside
from grader.batch.room import LOCK_NAME, STAGE_PREFIX, hold
from grader.batch.schema import SCHEMA_VERSION, GradebookError
from grader.batch.submission import Submission
from grader.checking.verdict import Status
from tests.harness.batch_parts import CHECKS, verdict

RUN = Run("run-1", "none", 600.0, "0.1.0")
FIRST, SECOND = CHECKS[0].name, CHECKS[1].name
ADA = Submission("ada", {"collectives.py": b"1"}, ("a note \udcff",), "given/ada")


def opened(folder: Path, *, digest: str = "set-1", run: Run = RUN) -> Gradebook:
    return Gradebook.open(folder / FILE_NAME, CHECKS, digest=digest, run=run)


def test_all_that_is_written_is_read_again(tmp_path: Path) -> None:
    odd = verdict(SECOND, Status.FAIL, output="\x1b[31m\udcff\0", unwritten="f", seed=2**64 + 1, replay="again")
    with opened(tmp_path) as gradebook:
        gradebook.register(ADA)
        gradebook.record("ada", verdict(FIRST))
        gradebook.record("ada", odd)
    book = read(tmp_path / FILE_NAME)
    assert book.checks == CHECKS
    (ada,) = book.submissions
    assert (ada.name, ada.origin, ada.notes) == ("ada", "given/ada", ADA.notes)
    assert ada.verdicts == {FIRST: verdict(FIRST), SECOND: odd}


def test_the_checks_are_known_before_any_submission(tmp_path: Path) -> None:
    with opened(tmp_path):
        book = read(tmp_path / FILE_NAME)
    assert (book.checks, book.submissions) == (CHECKS, ())


def test_a_verdict_is_on_disk_when_it_is_recorded(tmp_path: Path) -> None:
    with opened(tmp_path) as gradebook:
        gradebook.register(ADA)
        gradebook.record("ada", verdict(FIRST))
        assert set(read(tmp_path / FILE_NAME).submissions[0].verdicts) == {FIRST}, "another process would see it"


def test_what_stands_after_a_second_run(tmp_path: Path) -> None:
    with opened(tmp_path) as gradebook:
        gradebook.register(ADA)
        gradebook.record("ada", verdict(FIRST, Status.FAIL))
        gradebook.record("ada", verdict(SECOND, Status.INFRA))
    with opened(tmp_path, run=Run("run-2", "none", 600.0, "0.1.0")) as gradebook:
        gradebook.register(ADA)
        assert gradebook.settled("ada") == {FIRST}, "infra is judged again"
        gradebook.record("ada", verdict(SECOND))
        assert gradebook.settled("ada") == {FIRST, SECOND}
    with opened(tmp_path) as gradebook:  # the run that is in it already
        gradebook.register(dataclasses.replace(ADA, origin="elsewhere"))
        assert gradebook.settled("ada") == {FIRST, SECOND}, "the same files"
        gradebook.register(dataclasses.replace(ADA, files={"collectives.py": b"2"}))
        assert gradebook.settled("ada") == set(), "other files"
        assert len(gradebook.book().submissions) == 1


def test_a_gradebook_of_other_checks_is_refused_and_unchanged(tmp_path: Path) -> None:
    with opened(tmp_path) as gradebook:
        gradebook.register(ADA)
    with pytest.raises(GradebookError, match="--fresh"):
        opened(tmp_path, digest="set-2")
    assert [one.name for one in read(tmp_path / FILE_NAME).submissions] == ["ada"]
    set_aside(tmp_path / FILE_NAME)
    with opened(tmp_path, digest="set-2") as gradebook:
        assert gradebook.book().submissions == ()
    assert [one.name for one in read(tmp_path / "gradebook.previous.db").submissions] == ["ada"]


def test_setting_aside_takes_the_log_along(tmp_path: Path) -> None:
    gradebook = opened(tmp_path)
    gradebook.register(ADA)  # still in the write-ahead log
    set_aside(tmp_path / FILE_NAME)
    assert not list(tmp_path.glob("gradebook.db*"))
    assert [one.name for one in read(tmp_path / "gradebook.previous.db").submissions] == ["ada"]
    gradebook.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for use in (lambda: opened(tmp_path), lambda: read(tmp_path / FILE_NAME)):
        with pytest.raises(GradebookError, match="newer grader"):
            use()


@pytest.mark.parametrize("kind", ["text", "other database", "a folder"])
def test_what_is_no_gradebook_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    match kind:
        case "text":
            path.write_text("student,total\n" * 100)
        case "other database":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("CREATE TABLE notes (note TEXT)")
        case "a folder":
            path.mkdir()
    with pytest.raises(GradebookError) as caught:
        opened(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_gradebook_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GradebookError, match="no gradebook"):
        read(tmp_path / FILE_NAME)
    assert not list(tmp_path.iterdir()), "looking makes no file"


def test_the_tables_hold_what_a_query_needs(tmp_path: Path) -> None:
    with opened(tmp_path) as gradebook:
        gradebook.register(ADA)
        gradebook.record("ada", verdict(FIRST, Status.CRASH))
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        row = connection.execute(
            "SELECT v.submission, v.status, v.points, c.points, c.hidden, r.jail, r.budget_seconds FROM verdicts v"
            ' JOIN checks c ON c.name = v."check" JOIN runs r USING (run)'
        ).fetchall()
    assert row == [("ada", "crash", 0, 5, 0, "none", 600.0)]


def test_a_verdict_on_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as gradebook, pytest.raises(sqlite3.IntegrityError):
        gradebook.record("nobody", verdict(FIRST))


# The check set


def test_the_check_set_is_its_words_and_its_code(tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    (tmp_path / "test_a.py").write_text("1")
    (tmp_path / "programs" / "a.py").write_text("1")
    before = check_set.digest(CHECKS, [tmp_path])
    assert check_set.digest(CHECKS, [tmp_path]) == before
    seen = {before, check_set.digest(CHECKS[1:], [tmp_path])}
    seen.add(check_set.digest([dataclasses.replace(CHECKS[0], points=6), *CHECKS[1:]], [tmp_path]))
    (tmp_path / "programs" / "a.py").write_text("2")
    seen.add(check_set.digest(CHECKS, [tmp_path]))
    assert len(seen) == 4


# The folder


def test_two_graders_cannot_hold_one_folder(tmp_path: Path) -> None:
    refused = pytest.raises(GradebookError, match=r"another grader is at work .*\(process \d+\)")
    with hold(tmp_path / "out"), refused, hold(tmp_path / "out"):
        pytest.fail("both hold it")
    with hold(tmp_path / "out"):
        pass


def test_the_private_folder_is_private_and_goes(tmp_path: Path) -> None:
    with hold(tmp_path / "out") as stage:
        assert stage.stat().st_mode & 0o777 == 0o700
        assert tmp_path not in stage.parents
        (stage / "0").mkdir()
    assert not stage.exists()


def test_the_folder_of_a_killed_grader_goes_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / f"{STAGE_PREFIX}left"
    other = tmp_path / "precious"
    for folder in (left, other):
        (folder / "0").mkdir(parents=True)
    out = tmp_path / "out"
    out.mkdir()
    for named in (left, other):
        (out / LOCK_NAME).write_text(json.dumps({"pid": 1, "stage": str(named)}))
        with hold(out):
            pass
    assert not left.exists()
    assert other.exists(), "only what a grader made"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"stage": 3}', '{"stage": "/nowhere/grader-batch-x"}', "\0"])
def test_a_torn_lock_file_does_no_harm(text: str, tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with hold(tmp_path) as stage:
        assert stage.is_dir()


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GradebookError, match="cannot write to"), hold(tmp_path / "file" / "out"):
        pytest.fail("there is no such folder")
