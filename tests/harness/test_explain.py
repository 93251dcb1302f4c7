"""`grader explain`: each lost point once, in the words of the verdict, and the command that shows it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader import cli
from grader.batch.gradebook import FILE_NAME, Book, Gradebook, Graded, Run
from grader.batch.lookup import NotFoundError, check_among
from grader.batch.submission import Submission
from grader.checking.verdict import Explanation, Status, Verdict
from grader.report.explanation import check_text, explanation_json, losses, submission_text
from tests.harness.batch_parts import CHECKS, verdict

OUT = Path("grades")
SPECS = {spec.name: spec for spec in CHECKS}


def graded(*changed: Verdict, missing: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> Graded:
    """ada, who passes all checks but those of `changed` and `missing`."""
    verdicts = {name: verdict(name) for name in SPECS} | {one.check: one for one in changed}
    for name in missing:
        del verdicts[name]
    return Graded("ada", "given/ada", "digest", notes, verdicts)


def text(one: Graded) -> str:
    return submission_text(Book(CHECKS, "digest", (one,)), one, out=OUT)


def test_all_points_are_one_line() -> None:
    assert text(graded(notes=("something",))) == "ada: all 50 points, all 10 bonus points\n"


def test_a_lost_point_with_all_that_is_known_of_it() -> None:
    why = Explanation("rank 1 is wrong", "rank 0: 1\nrank 1: 2", "rank 1: 3", "collectives.py:41 in f: g()", "add it")
    assert text(graded(verdict("collectives.unseen", Status.FAIL, explanation=why), notes=("it was a zip",))) == (
        "ada: 45 of 50 points, all 10 bonus points\n"
        "note: it was a zip\n"
        "\n"
        "collectives.py: 5 of 10 points lost\n"
        "===================================\n"
        "\n"
        "collectives.unseen: fail, 5 points lost, hidden\n"
        "  claim     The unseen check of collectives holds.\n"
        "  why       rank 1 is wrong\n"
        "  expected  rank 0: 1\n"
        "            rank 1: 2\n"
        "  actual    rank 1: 3\n"
        "  where     collectives.py:41 in f: g()\n"
        "  try       add it\n"
        "  again     grader replay ada collectives.unseen --out grades\n"
    )


def test_checks_that_fail_for_one_reason_are_one_entry() -> None:
    why = Explanation("tensor_parallel.py was not handed in")
    names = ("tensor_parallel.seen", "tensor_parallel.unseen")
    said = text(graded(*(verdict(name, Status.FAIL, explanation=why) for name in names)))
    assert said.count("was not handed in") == 1
    assert "2 checks: fail, 10 points lost\n" in said
    assert "tensor_parallel.seen (5), tensor_parallel.unseen (5)\n" in said


def test_the_bonus_stands_by_itself() -> None:
    said = text(graded(verdict("accounting.seen", Status.CRASH), verdict("benchmark.seen", Status.TIMEOUT)))
    assert said.startswith("ada: 45 of 50 points, 5 of 10 bonus points\n")
    assert said.index("benchmark.py: 5 of 10 points lost") < said.index("bonus: 5 of 10 points lost")
    assert "accounting.seen: crash, 5 points lost, bonus\n" in said


def test_what_has_no_score_is_no_loss() -> None:
    infra = verdict("collectives.seen", Status.INFRA, explanation=Explanation("No verdict: the judge ended."))
    one = graded(infra, verdict("benchmark.seen", Status.NOT_RUN), missing=("data_parallel.seen",))
    assert losses(CHECKS, one.verdicts) == []
    assert text(one) == (
        "ada: 35 of 45 points so far, all 10 bonus points\n"
        "\n"
        "No score yet for 2 of 12 checks: No verdict: the judge ended. `grader grade`\n"
        "with the same arguments goes on there.\n"
        "\n"
        "Not run on this machine, and not counted: benchmark.seen.\n"
    )


def test_a_check_takes_about_a_screen_and_obeys_nothing() -> None:
    flood = "\x1b[2J\u202e" + "word " * 5000
    lines = "\n".join(f"rank {rank}: \x1b[31m{'x' * 300}" for rank in range(200))
    why = Explanation(flood, lines, lines, lines, flood)
    said = text(graded(verdict("collectives.seen", Status.FAIL, explanation=why)))
    assert len(said.splitlines()) < 60
    assert max(map(len, said.splitlines())) <= 80
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\\x1b[2J" in said
    assert said.count("more lines]") == 5


def test_one_check_whatever_became_of_it() -> None:
    one = graded(verdict("collectives.seen", Status.FAIL), missing=("benchmark.seen",))
    told = {name: check_text(SPECS[name], one, out=OUT) for name in SPECS}
    assert told["collectives.unseen"] == "ada, collectives.unseen: pass, 5 points\n"
    assert told["benchmark.seen"] == "ada, benchmark.seen: no verdict yet\n"
    assert told["collectives.seen"].startswith("ada\n\ncollectives.seen: fail, 5 points lost\n")


def test_json() -> None:
    one = graded(verdict("collectives.unseen", Status.FAIL, output="[rank 0] hello"), missing=("accounting.seen",))
    book = Book(CHECKS, "digest", (one,))
    told = json.loads(explanation_json(book, one, out=OUT))
    assert (told["points"], told["possible"], told["bonus"], told["bonus_possible"]) == (45, 50, None, 10)
    assert told["undecided"] == ["accounting.seen"]
    (lost,) = told["checks"]
    assert (lost["check"], lost["hidden"], lost["points"], lost["possible"]) == ("collectives.unseen", True, 0, 5)
    assert lost["explanation"]["rationale"] == "collectives.unseen is wrong"
    assert lost["output"] == "[rank 0] hello"
    assert lost["replay"] == "grader replay ada collectives.unseen --out grades"
    only = json.loads(explanation_json(book, one, out=OUT, only=SPECS["accounting.seen"]))
    assert [(check["check"], check["status"]) for check in only["checks"]] == [("accounting.seen", None)]


# Names


def test_a_check_is_found_by_its_name_in_the_module_where_only_one_has_it() -> None:
    names = ["collectives.reduce", "collectives.scatter", "data_parallel.scatter"]
    assert check_among(names, "data_parallel.scatter") == "data_parallel.scatter"
    assert check_among(names, "reduce") == "collectives.reduce"
    with pytest.raises(NotFoundError, match=r"did you mean collectives\.scatter or data_parallel\.scatter\?"):
        check_among(names, "scatter")
    with pytest.raises(NotFoundError, match=r"did you mean collectives\.reduce\?"):
        check_among(names, "redcue")


# The command


@pytest.fixture(name="grades")
def grades_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gradebook with ada, who lost one check, and bob, who lost none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grades").mkdir()
    path = tmp_path / "grades" / FILE_NAME
    with Gradebook.open(path, CHECKS, digest="checks", run=Run("a run", "none", 600.0, "0")) as gradebook:
        for name in ("ada", "bob"):
            gradebook.register(Submission(name, {}, (), f"given/{name}"))
            for check in SPECS:
                status = Status.FAIL if (name, check) == ("ada", "collectives.seen") else Status.PASS
                gradebook.record(name, verdict(check, status))
    return tmp_path / "grades"


@pytest.mark.usefixtures("grades")
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "ada", "--out", "grades"]) == 0
    shown = capsys.readouterr()
    assert "\n  why       collectives.seen is wrong\n" in shown.out
    assert (shown.err, "\x1b" in shown.out) == ("", False)
    assert cli.main(["explain", "bob", "--out", "grades"]) == 0
    assert capsys.readouterr().out == "bob: all 50 points, all 10 bonus points\n"
    assert cli.main(["explain", "bob", "--out", "grades", "--check", "pipeline_parallel.unseen"]) == 0
    assert capsys.readouterr().out == "bob, pipeline_parallel.unseen: pass, 5 points\n"
    assert cli.main(["explain", "ada", "--out", "grades", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == 45


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["adda", "--out", "grades"], "no submission 'adda' in grades; did you mean ada?"),
        (["zoe", "--out", "grades"], "no submission 'zoe' in grades: it holds ada, bob"),
        (["ada", "--out", "grade"], "no gradebook in grade; did you mean grades?"),
        (["ada", "--out", "nowhere"], "no gradebook in nowhere ("),
        (["ada", "--out", "grades", "--check", "colectives.seen"], "'colectives.seen'; did you mean collectives.seen"),
        (["ada"], "Missing option '--out'"),
    ],
)
@pytest.mark.usefixtures("grades")
def test_wrong_names_are_one_clear_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert said in shown.err
