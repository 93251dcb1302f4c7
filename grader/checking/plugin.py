"""The pytest plugin: `pytest` in a student's folder grades `assignment/`, `--submission PATH` another.

A test function that carries the `check` mark is judged instead of called; everything else is left to pytest. The
verdict travels on the test's report, so that it reaches the summary from the workers of pytest-xdist too.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.checking import context, selection, summary
from grader.checking.catalog import ListedCheck, is_hidden
from grader.checking.judging import judge
from grader.checking.spec import spec_of
from grader.checking.stream import VerdictStream
from grader.checking.submission import Submission
from grader.checking.todo import Todo
from grader.checking.unwritten import unwritten_functions
from grader.checking.verdict import Status, Verdict
from grader.world import Jail, Launcher, NoJail

LISTED = pytest.StashKey[ListedCheck]()
VERDICT = pytest.StashKey[Verdict]()
GRADER = pytest.StashKey["Grader"]()
STREAM = pytest.StashKey[VerdictStream]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The grader's options, in a group of their own."""
    group = parser.getgroup("grader", "grading")
    group.addoption("--submission", metavar="PATH", default="assignment", help="the folder to grade (assignment)")
    group.addoption("--seed", type=int, default=None, help="the seed of a failure that is replayed")
    group.addoption("--jail", choices=["none", "bubblewrap"], default="none", help="where ranks run (none)")
    group.addoption("--seed-salt", default="", help="what the seeds of hidden checks depend on, e.g. a student")
    group.addoption("--budget", type=float, default=None, help="seconds for the whole submission")
    group.addoption("--checks", default="", help="only these checks: names with commas between")
    group.addoption("--verdicts", type=int, default=None, help="a descriptor that gets a line of JSON per verdict")
    for name, default in selection.INI.items():
        parser.addini(name, "what of the assignment is given; `grader handout build` writes it", default=default)
    group.addoption("--lifeline", type=int, default=None, help="a descriptor at whose end this process leaves")


def pytest_configure(config: pytest.Config) -> None:
    """Opens the stream of verdicts, and watches the lifeline."""
    if config.option.verdicts is not None:
        config.stash[STREAM] = VerdictStream(config.option.verdicts)
    if config.option.lifeline is not None:
        threading.Thread(target=_leave_at_end_of, args=(config.option.lifeline,), daemon=True).start()


def _leave_at_end_of(descriptor: int) -> None:
    os.read(descriptor, 1)
    # The zygote ends with this process's control socket, and every world with the zygote.
    os._exit(1)


def _runs_checks(config: pytest.Config) -> bool:
    """Not the controller of pytest-xdist, whose workers run them, and not a mere collection."""
    distributed = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    return not distributed and not config.option.collectonly


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Finds the checks; refuses two of one name; keeps those that the course gives and that --checks names."""
    checks: dict[str, pytest.Item] = {}
    try:
        given = selection.from_ini({name: config.getini(name) for name in selection.INI})
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    wanted = {name for name in config.option.checks.split(",") if name}
    unwanted = []
    for item in items:
        listed = _listed(item)
        if listed is None:
            continue
        name = listed.spec.name
        if name in checks:
            raise pytest.UsageError(f"two checks have the same name: {name}")
        checks[name] = item
        item.stash[LISTED] = replace(listed, spec=given.applied(listed.spec)) if given.takes(listed.spec) else listed
        if not given.takes(listed.spec) or (wanted and name not in wanted):
            unwanted.append(item)
    missing = wanted - checks.keys()
    if missing:
        raise pytest.UsageError(f"no such check: {', '.join(sorted(missing))}")
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = [item for item in items if item not in unwanted]


def _listed(item: pytest.Item) -> ListedCheck | None:
    if not isinstance(item, pytest.Function):
        return None
    path = item.path.relative_to(item.config.rootpath) if item.path.is_relative_to(item.config.rootpath) else item.path
    spec = spec_of(item.function, hidden=is_hidden(path))
    return ListedCheck(spec, item.function, path) if spec is not None else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts the zygote as soon as it is known that it will be needed: its imports run beside the judge's."""
    if _runs_checks(session.config) and any(LISTED in item.stash for item in session.items):
        session.config.stash[GRADER] = Grader(session.config)


class Grader:
    """What all checks of this process share."""

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        folder = _folder(config)
        if not folder.is_dir():
            raise pytest.UsageError(f"no submission: {option.submission} is not a folder")
        self.root = config.rootpath
        self.option = option
        shown_as = option.submission.rstrip("/") if option.jail == "none" else ""
        self.shown_as = "" if option.submission == "assignment" else shown_as
        self.grading = context.Grading(
            Submission.read(folder, shown_as=shown_as),
            Launcher(_jail(option.jail)),
            ends=time.monotonic() + option.budget if option.budget is not None else float("inf"),
        )
        self.grading.launcher.begin()

    def judge(self, listed: ListedCheck) -> Verdict:
        """The verdict of one check."""
        spec = listed.spec
        seed = context.seed_of(spec.name, hidden=spec.hidden, salt=self.option.seed_salt, fixed=self.option.seed)
        return judge(listed, self.grading, seed=seed, root=self.root, shown_as=self.shown_as)


def _folder(config: pytest.Config) -> Path:
    """The submission's folder, from where pytest was started or else from the project's root; it may be missing."""
    folder: Path = (config.invocation_params.dir / config.option.submission).resolve()
    return folder if folder.is_dir() else (config.rootpath / config.option.submission).resolve()


def _todo(config: pytest.Config) -> Todo:
    """What the folder still asks for. Only for its owner at a terminal is its source parsed, never for a grader."""
    option = config.option
    if option.jail != "none" or option.verdicts is not None:
        return Todo()
    files = Submission.read(_folder(config)).files
    return Todo(
        functions={module: unwritten_functions(source) for module, source in files.items()},
        folder=option.submission.rstrip("/"),
        again=[] if option.submission == "assignment" else ["--submission", option.submission.rstrip("/")],
    )


def _jail(name: str) -> Jail:
    if name == "none":
        return NoJail()
    from grader.jail.bubblewrap import Bubblewrap  # staff only

    return Bubblewrap()


@pytest.fixture(name="check")
def check_fixture(request: pytest.FixtureRequest) -> None:
    """Named by every check; its value comes with the call."""
    if LISTED not in request.node.stash:
        pytest.fail("the fixture `check` belongs to functions that are marked by @check(...)", pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Judges a check; the outcome of the test follows from the verdict."""
    if LISTED not in pyfuncitem.stash:
        return None
    listed = pyfuncitem.stash[LISTED]
    stream = pyfuncitem.config.stash.get(STREAM, None)
    if stream:
        stream.started(listed.spec.name)
    verdict = pyfuncitem.config.stash[GRADER].judge(listed)
    pyfuncitem.stash[VERDICT] = verdict
    pyfuncitem.user_properties += [  # --junitxml writes them
        ("check", verdict.check),
        ("verdict", str(verdict.status)),
        ("points", verdict.points),
        ("possible", verdict.possible),
    ]
    if stream:
        stream.fell(verdict)
    match verdict.status:
        case Status.PASS:
            return True
        case Status.NOT_RUN:
            pytest.skip(summary.explanation_text(verdict))
        case _:
            pytest.fail(summary.explanation_text(verdict), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Puts the verdict on the report."""
    report = yield
    if call.when == "call" and VERDICT in item.stash:
        # attributes travel with a report
        place = item.session.items.index(item)
        vars(report)["graded"] = summary.graded(item.stash[LISTED].spec, item.stash[VERDICT], place)
        explanation = item.stash[VERDICT].explanation
        if report.skipped and explanation is not None:
            path, line, _ = item.location  # the check's, not this file's; the rest of the text is in the table
            report.longrepr = (path, (line or 0) + 1, explanation.rationale)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A check that did not pass has its place in the table below, not in pytest's list of failures."""
    graded: dict[str, Any] | None = getattr(report, "graded", None)
    if graded is None or report.when != "call" or report.passed:
        return None
    status = graded["verdict"]["status"]
    if graded["verdict"]["unwritten"]:
        return "not written yet", "-", "NOT WRITTEN"
    return f"{status}", status[0].upper(), str(status).upper()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table, the failures, and the score."""
    seen = [report for reports in terminalreporter.stats.values() for report in reports]
    graded = [report.graded for report in seen if getattr(report, "graded", None) is not None]
    if graded:
        summary.write(graded, terminalreporter, _todo(config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Ends the zygote, and says on the stream that every verdict has been given."""
    grader = session.config.stash.get(GRADER, None)
    if grader is not None:
        grader.grading.launcher.close()
    stream = session.config.stash.get(STREAM, None)
    if stream is not None:
        stream.ended()


if sys.platform == "win32":
    raise pytest.UsageError("the checks need Linux; on Windows run them in WSL2 (see README.md)")
