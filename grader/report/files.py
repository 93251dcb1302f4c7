"""The files that views are written to, all made from one gradebook."""

from __future__ import annotations

from pathlib import Path

from grader.batch.gradebook import Book
from grader.report.feedback import feedback
from grader.report.gradescope import results_json
from grader.report.spreadsheet import gradebook_csv


def write_views(book: Book, out: Path) -> list[Path]:
    """Writes gradebook.csv, and per submission results.json and feedback.md, into `out`; returns their paths.

    Each file is there whole or not at all, whenever the process dies.
    """
    written = [_write(out / "gradebook.csv", gradebook_csv(book))]
    for graded in book.submissions:
        folder = out / graded.name
        folder.mkdir(exist_ok=True)
        written.append(_write(folder / "results.json", results_json(book, graded)))
        written.append(_write(folder / "feedback.md", feedback(book, graded)))
    return written


def _write(path: Path, text: str) -> Path:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="")
    return partial.replace(path)
