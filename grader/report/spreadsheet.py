"""gradebook.csv: a row per student, for a spreadsheet or a course's gradebook."""

from __future__ import annotations

import csv
import io

from grader.batch.gradebook import Book
from grader.report.escape import spreadsheet
from grader.report.scores import COLUMNS, Tally, score

HEADER = ("student", *COLUMNS, "bonus", "total", "possible", "worst")


def gradebook_csv(book: Book) -> str:
    """The whole file. A score that a broken grader left open is an empty cell, never a zero, as is its total."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    for graded in book.submissions:
        points = score(book.checks, graded.verdicts)
        tallies = [*(points.modules[module] for module in COLUMNS), points.bonus, points.total]
        writer.writerow([spreadsheet(graded.name), *map(_cell, tallies), points.total.possible, points.worst.value])
    return file.getvalue()


def _cell(tally: Tally) -> str:
    return "" if tally.score is None else str(tally.score)
