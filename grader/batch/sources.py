"""From the paths on the command line to submissions: none is lost, whatever state it is in."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.batch.archive import read_zip
from grader.batch.folder import read_folder, read_plain
from grader.batch.naming import folded, safe_name, unique_name
from grader.batch.notebook import MAX_NOTEBOOK_BYTES, SUFFIX, read_lone
from grader.batch.submission import MODULE_FILES, Contents, Submission, is_ignored, quoted
from grader.checking.spec import MODULES

# Archives that students send instead of a zip: their submission exists, though it cannot be opened.
OTHER_ARCHIVES = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".rar", ".7z")
ENDINGS = (".zip", SUFFIX, *OTHER_ARCHIVES)


class SourceError(Exception):
    """A path on the command line that leads to no submission: one sentence for the user."""


@dataclass(frozen=True)
class Found:
    """What there was to grade.

    submissions: by source as given, then by path.
    ignored:     a sentence for each thing beside them that is no submission.
    """

    submissions: tuple[Submission, ...]
    ignored: tuple[str, ...]

    def sentences(self) -> list[str]:
        """All that staff should read before grading begins."""
        return [f"{found.name}: {note}" for found in self.submissions for note in found.notes] + list(self.ignored)


def find(sources: Sequence[Path], *, exclude: Collection[Path] = ()) -> Found:
    """All submissions at `sources`. A place that two sources lead to counts once; `exclude` does not count.

    A folder is one submission if module files, or notebooks that are named like modules, lie in it or in its
    folder "assignment" or "notebooks"; otherwise each folder, each archive and each notebook in it is a submission,
    also an empty or broken one. A zip is a submission, and so is a notebook.
    Raises SourceError.
    """
    ignored: list[str] = []
    places: dict[Path, None] = {}
    unwanted = {path.resolve() for path in exclude}
    for source in sources:
        if source.resolve() in unwanted:
            raise SourceError(f"{source} is where the results go: it cannot be a source too")
        found = [place for place in _places(source, ignored) if place not in unwanted]
        if not found:
            raise SourceError(f"{source} holds no submission: neither module files nor folders, zips or notebooks")
        places.update(dict.fromkeys(found))
    submissions: list[Submission] = []
    taken: set[str] = set()
    for place in places:
        submission = _take(place, taken)
        taken.add(folded(submission.name))
        submissions.append(submission)
    return Found(tuple(submissions), tuple(ignored))


def _places(source: Path, ignored: list[str]) -> Iterator[Path]:
    """The folders, archives and notebooks at one source, each of which is a submission; absolute paths.

    A source may be reached by links, which staff gave; what lies in it may not be one.
    """
    try:
        whole = source.resolve(strict=True)
        if source.is_dir():
            if any(_holds_modules(whole / name) for name in ("", "assignment", "notebooks")):
                yield whole
                return
            for child in sorted(whole.iterdir()):
                if is_ignored(child.name):
                    continue
                if child.is_symlink() or child.is_dir() or child.suffix.lower() in ENDINGS:
                    yield child
                else:
                    ignored.append(
                        f"{quoted([child.name])} in {source} is neither a folder nor a zip nor a notebook: left out"
                    )
        elif source.is_file() and source.suffix.lower() in (".zip", SUFFIX):
            yield whole
        else:
            raise SourceError(f"{source} is neither a folder nor a zip nor a notebook")
    except FileNotFoundError as error:
        raise SourceError(f"{source} does not exist") from error
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{source} cannot be read: {error}") from error


def _holds_modules(folder: Path) -> bool:
    names = (*MODULE_FILES, *(f"{module}{SUFFIX}" for module in MODULES))
    return any((folder / name).is_file() for name in names)


def _take(place: Path, taken: Collection[str]) -> Submission:
    contents = contents_of(place)
    notes = list(contents.notes)
    raw = place.name if place.is_dir() else _stem(place)
    mended = safe_name(raw)
    name = unique_name(mended, taken)
    if mended != unicodedata.normalize("NFC", raw):
        notes.append(f"graded under the name {name!a}, because {quoted([raw])} is not safe as a file name")
    elif name != mended:
        notes.append(f"graded under the name {name!a}, because there is another {mended!a}")
    return Submission(name, contents.files, tuple(notes), os.fsencode(place).decode("utf-8", "backslashreplace"))


def _stem(file: Path) -> str:
    """The file's name without the endings that archives and notebooks have, however many ("ada.tar.gz")."""
    while file.suffix.lower() in ENDINGS:
        file = file.with_suffix("")
    return file.name


def contents_of(place: Path) -> Contents:
    """The module files of the submission at `place`: a folder, an archive or a notebook; and what is wrong with it."""
    try:
        if place.is_symlink():
            return Contents({}, ("it is a link: not followed",))
        if place.is_dir():
            return read_folder(place)
        if place.suffix.lower() == ".zip" and place.is_file():
            return read_zip(place)
        if place.suffix.lower() == SUFFIX:
            return read_lone(read_plain(place, MAX_NOTEBOOK_BYTES), place.name)
    except (OSError, ValueError) as error:
        return Contents({}, (f"it cannot be read: {getattr(error, 'strerror', None) or error}",))
    return Contents({}, ("it is neither a folder nor a zip nor a notebook: hand in a zip",))
