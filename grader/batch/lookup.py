"""From the names that someone typed to what a gradebook holds; where one is not there, the nearest are named."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from grader.batch.gradebook import FILE_NAME, Book, Graded, read

MAX_SHOWN = 3


class NotFoundError(Exception):
    """A name that leads to nothing: one sentence for the user."""


def book_in(out: Path) -> Book:
    """The gradebook in the folder `out`. Raises NotFoundError, and GradebookError for one that cannot be read."""
    if not (out / FILE_NAME).is_file():
        near = get_close_matches(out.name, _folders_beside(out), n=MAX_SHOWN)
        raise NotFoundError(f"no gradebook in {out}{_question([str(out.with_name(name)) for name in near])}")
    return read(out / FILE_NAME)


def submission_in(book: Book, name: str, out: Path) -> Graded:
    """The submission of that name. Raises NotFoundError."""
    for graded in book.submissions:
        if graded.name == name:
            return graded
    names = [graded.name for graded in book.submissions]
    near = get_close_matches(name, names, n=MAX_SHOWN)
    raise NotFoundError(f"no submission {name!a} in {out}{_question(near) or _held(names)}")


def check_among(names: Sequence[str], name: str) -> str:
    """The full name of a check: `name` itself, or the only one of `names` that is so called in its module.

    Raises NotFoundError.
    """
    if name in names:
        return name
    called_so = [full for full in names if full.partition(".")[2] == name]
    if len(called_so) == 1:
        return called_so[0]
    near = {full.partition(".")[2]: full for full in names} if "." not in name else {full: full for full in names}
    meant = called_so or [near[word] for word in get_close_matches(name, near, n=MAX_SHOWN)]
    raise NotFoundError(f"no check {name!a}{_question(meant)}")


def _folders_beside(out: Path) -> list[str]:
    """Names of the folders next to `out` that hold a gradebook."""
    try:
        return [place.parent.name for place in sorted(out.absolute().parent.glob(f"*/{FILE_NAME}"))]
    except OSError:
        return []


def _question(meant: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(meant[:MAX_SHOWN])}?" if meant else ""


def _held(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_SHOWN])
    more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
    return f": it holds {shown}{more}" if names else ": it holds none"
