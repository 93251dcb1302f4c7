"""Points of one submission, added up: what every view shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.batch.gradebook import Book, Graded
from grader.checking.spec import MODULES, CheckSpec
from grader.checking.verdict import Status, Verdict

# Modules with a column of their own. All of accounting is bonus, and the bonus has one column.
COLUMNS = MODULES[:-1]


@dataclass(frozen=True)
class Tally:
    """Points got and possible over some checks, and how many of them have no verdict that can be scored.

    A check that this machine could not run is in neither number. An undecided one is possible, and not got: so
    `points` is a score only where `undecided` is 0.
    """

    points: int
    possible: int
    undecided: int

    @property
    def score(self) -> int | None:
        """The points, or None while a check is undecided: a broken grader never costs a point."""
        return self.points if self.undecided == 0 else None


@dataclass(frozen=True)
class Score:
    """One submission's points: modules by name without their bonus checks, and the total with them on top."""

    modules: Mapping[str, Tally]
    bonus: Tally
    total: Tally
    worst: Status


def score(checks: Sequence[CheckSpec], verdicts: Mapping[str, Verdict]) -> Score:
    """Adds up. A check without a verdict counts as `infra`: the grader has not done its work."""
    regular = tally((spec for spec in checks if not spec.bonus), verdicts)
    bonus = tally((spec for spec in checks if spec.bonus), verdicts)
    statuses = [status_of(spec, verdicts) for spec in checks]
    return Score(
        modules={
            module: tally((spec for spec in checks if spec.module == module and not spec.bonus), verdicts)
            for module in MODULES
        },
        bonus=bonus,
        total=Tally(regular.points + bonus.points, regular.possible, regular.undecided + bonus.undecided),
        worst=max(statuses, key=lambda status: status.severity, default=Status.PASS),
    )


def tally(checks: Iterable[CheckSpec], verdicts: Mapping[str, Verdict]) -> Tally:
    """Over `checks` alone."""
    points = possible = undecided = 0
    for spec in checks:
        status = status_of(spec, verdicts)
        if status is Status.NOT_RUN:
            continue
        possible += spec.points
        if status is Status.INFRA:
            undecided += 1
        else:
            points += verdicts[spec.name].points
    return Tally(points, possible, undecided)


def status_of(spec: CheckSpec, verdicts: Mapping[str, Verdict]) -> Status:
    """The check's verdict in a word; `infra` if there is none yet."""
    verdict = verdicts.get(spec.name)
    return Status.INFRA if verdict is None else verdict.status


def is_complete(book: Book) -> bool:
    """Whether every submission has a verdict that can be scored for every check."""
    return all(not undecided(book.checks, graded) for graded in book.submissions)


def undecided(checks: Iterable[CheckSpec], graded: Graded) -> list[CheckSpec]:
    """The checks that have no verdict, or `infra`."""
    return [spec for spec in checks if status_of(spec, graded.verdicts) is Status.INFRA]
