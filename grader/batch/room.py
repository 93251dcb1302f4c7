"""The folder that a batch writes to, held by one grader at a time, and its private temporary folder."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grader.batch.schema import GradebookError

LOCK_NAME = ".grader.lock"
STAGE_PREFIX = "grader-batch-"


@contextmanager
def hold(out: Path) -> Iterator[Path]:
    """Holds `out`, made if it is missing, against other graders, and gives a private temporary folder.

    The folder is removed at the end. A grader that was killed leaves its own behind, named in the lock file:
    the next one that holds `out` removes it. Raises GradebookError if another grader holds `out` now.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / LOCK_NAME).open("a+", encoding="utf-8")
    except OSError as error:
        raise GradebookError(f"cannot write to {out}: {error.strerror}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel gives it back when the process ends
        except BlockingIOError:
            raise GradebookError(f"another grader is at work in {out}{_holder(lock_text(out))}") from None
        _remove_leftover(lock_text(out))
        stage = Path(tempfile.mkdtemp(prefix=STAGE_PREFIX))
        try:
            lock.truncate(0)
            lock.write(json.dumps({"pid": os.getpid(), "stage": str(stage)}))
            lock.flush()
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            lock.truncate(0)


def lock_text(out: Path) -> str:
    """What the grader that holds, or last held, `out` wrote down."""
    return (out / LOCK_NAME).read_text(encoding="utf-8", errors="replace")


def _holder(text: str) -> str:
    try:
        return f" (process {json.loads(text)['pid']})"
    except (ValueError, KeyError, TypeError):
        return ""


def _remove_leftover(text: str) -> None:
    """Removes the private folder of a grader that was killed, if it is one and belongs to this user."""
    try:
        stage = Path(json.loads(text)["stage"])
        ours = stage.name.startswith(STAGE_PREFIX) and stage.lstat().st_uid == os.geteuid()
    except (ValueError, KeyError, TypeError, OSError):
        return
    if ours and stage.is_dir() and not stage.is_symlink():
        shutil.rmtree(stage, ignore_errors=True)
