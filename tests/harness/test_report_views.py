"""The views: right sums, nothing hidden told, nothing that a submission wrote obeyed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from grader.batch.gradebook import Book, Graded
from grader.checking.spec import MODULES
from grader.checking.verdict import Explanation, Status, Verdict
from grader.report.feedback import feedback
from grader.report.files import write_views
from grader.report.gradescope import results_json
from grader.report.scores import COLUMNS, Tally, is_complete, score
from grader.report.spreadsheet import gradebook_csv
from grader.report.student import SENTENCES, remark
from grader.report.summary import summary_json
from grader.report.table import closing_text, table_text
from tests.harness.batch_parts import CHECKS, verdict

SEEN, UNSEEN = CHECKS[0], CHECKS[1]
BONUS = "accounting.seen"
LEAK = "LEAK-1f3a"
EVIL = "`x` <script>alert(1)</script> [a](javascript:1) | \x1b[2J ```\n# heading\n=1+1 @all \u202e"


def graded(name: str = "ada", *, notes: tuple[str, ...] = (), **changed: Verdict | None) -> Graded:
    """A submission that passes every check but the changed ones (module_kind=verdict; None: no verdict yet)."""
    verdicts = {spec.name: verdict(spec.name) for spec in CHECKS}
    for key, value in changed.items():
        check = ".".join(key.rsplit("_", 1))
        if value is None:
            del verdicts[check]
        else:
            verdicts[check] = value
    return Graded(name, f"given/{name}", "digest", notes, verdicts)


def book(*submissions: Graded) -> Book:
    return Book(CHECKS, "digest", submissions)


def lost(check: str, status: Status = Status.FAIL, **fields: Any) -> Verdict:
    return verdict(check, status, **fields)


# Sums


def test_points_add_up_with_the_bonus_on_top() -> None:
    points = score(CHECKS, graded(collectives_seen=lost("collectives.seen")).verdicts)
    assert points.modules["collectives"] == Tally(5, 10, 0)
    assert points.bonus == Tally(10, 10, 0)
    assert points.total == Tally(55, 50, 0)
    assert points.worst is Status.FAIL


def test_what_this_machine_cannot_run_counts_nowhere() -> None:
    points = score(CHECKS, graded(benchmark_unseen=lost("benchmark.unseen", Status.NOT_RUN)).verdicts)
    assert points.modules["benchmark"] == Tally(5, 5, 0)
    assert points.total == Tally(55, 45, 0)
    assert points.worst is Status.NOT_RUN


@pytest.mark.parametrize("missing", [None, lost("benchmark.unseen", Status.INFRA)])
def test_a_broken_grader_is_never_a_zero(missing: Verdict | None) -> None:
    one = graded(benchmark_unseen=missing)
    points = score(CHECKS, one.verdicts)
    assert (points.modules["benchmark"].score, points.total.score, points.worst) == (None, None, Status.INFRA)
    assert points.modules["collectives"].score == 10
    assert not is_complete(book(one))
    (_, row) = csv.reader(io.StringIO(gradebook_csv(book(one))))
    assert row == ["ada", "10", "", "10", "10", "10", "10", "", "50", "infra"]
    assert json.loads(summary_json(book(one), Path("out")))["submissions"][0]["total"] is None


def test_the_spreadsheet() -> None:
    eve = graded("eve", tensor_parallel_seen=lost("tensor_parallel.seen", Status.TIMEOUT))
    rows = list(csv.reader(io.StringIO(gradebook_csv(book(graded("ada"), eve)))))
    assert rows == [
        ["student", *COLUMNS, "bonus", "total", "possible", "worst"],
        ["ada", "10", "10", "10", "10", "10", "10", "60", "50", "pass"],
        ["eve", "10", "10", "10", "5", "10", "10", "55", "50", "timeout"],
    ]
    assert COLUMNS == ("collectives", "benchmark", "data_parallel", "tensor_parallel", "pipeline_parallel")


def test_no_name_is_a_formula() -> None:
    (_, row) = csv.reader(io.StringIO(gradebook_csv(book(graded("=HYPERLINK(1)")))))
    assert row[0] == "'=HYPERLINK(1)"


# What a student may read


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASS])
def test_of_a_hidden_check_only_a_word_and_a_fixed_sentence(status: Status) -> None:
    told = Verdict(
        check=UNSEEN.name,
        status=status,
        points=0,
        possible=5,
        seconds=1.0,
        seed=123456789,
        explanation=Explanation(*[LEAK] * 5),
        unwritten=LEAK,
        output=LEAK,
        replay=f"pytest {LEAK} --seed 123456789",
    )
    one = graded(collectives_unseen=told)
    for text in (feedback(book(one), one), results_json(book(one), one)):
        assert LEAK not in text
        assert "123456789" not in text
        assert UNSEEN.statement in text
        assert SENTENCES[status] in text


def test_a_hidden_check_names_an_unwritten_function_that_it_knows() -> None:
    assert remark(UNSEEN, lost(UNSEEN.name, unwritten="f")).unwritten == "f"
    assert remark(UNSEEN, lost(UNSEEN.name, unwritten="g")).unwritten == ""
    assert remark(SEEN, lost(SEEN.name, unwritten="g")).unwritten == "g"


def test_a_public_check_shows_all_of_it() -> None:
    explanation = Explanation("rank 1 has 2.", "expected-text", "actual-text", "collectives.py:41 in f", "help-text")
    one = graded(
        collectives_seen=lost(SEEN.name, explanation=explanation, output="printed", replay="pytest tests --seed 3")
    )
    parts = ["rank 1 has 2.", "expected-text", "actual-text", "help-text", "printed", "pytest tests --seed 3"]
    for text in (feedback(book(one), one), results_json(book(one), one)):
        for part in [*parts, "collectives.py:41 in f"]:
            assert part in text


def test_the_reason_of_a_broken_grader_is_for_staff() -> None:
    broken = lost(SEEN.name, Status.INFRA, explanation=Explanation(f"No verdict: {LEAK}"), output=LEAK)
    one = graded(collectives_seen=broken)
    for text in (feedback(book(one), one), results_json(book(one), one)):
        assert LEAK not in text
        assert "the grader itself failed on 1 of 12 checks" in text


# feedback.md


def test_feedback_in_full() -> None:
    one = graded(
        "ada_b",
        notes=("collectives.py cannot be read",),
        collectives_seen=lost(SEEN.name, output="hello", replay="pytest tests/public"),
        collectives_unseen=lost(UNSEEN.name, Status.CRASH),
        data_parallel_seen=lost("data_parallel.seen", unwritten="shard_batch"),
        data_parallel_unseen=lost("data_parallel.unseen", unwritten="f"),
        benchmark_seen=lost("benchmark.seen", Status.NOT_RUN, explanation=None),
    )
    assert feedback(book(one), one) == (
        "# Feedback for ada\\_b\n\n**35 of 45 points**, the bonus included.\n\n"
        "What was noticed when your files were read:\n\n- collectives.py cannot be read\n\n"
        "| module | points | possible |\n|---|---:|---:|\n"
        "| `collectives.py` | 0 | 10 |\n| `benchmark.py` | 5 | 5 |\n| `data_parallel.py` | 0 | 10 |\n"
        "| `tensor_parallel.py` | 10 | 10 |\n| `pipeline_parallel.py` | 10 | 10 |\n| bonus | 10 | 10 on top |\n"
        "| **total** | **35** | **45** |\n\n"
        "## collectives.py\n\n### `collectives.seen`: fail (0 of 5 points)\n\n"
        "*The seen check of collectives holds.*\n\ncollectives.seen is wrong\n\n"
        "Expected:\n\n```text\none\n```\n\nActual:\n\n```text\ntwo\n```\n\nWhere:\n\n```text\nhere.py:1\n```\n\n"
        "Try: try\n\nRun it again:\n\n```sh\npytest tests/public\n```\n\n"
        "Where the ranks were, and what they printed:\n\n```text\nhello\n```\n\n"
        "### `collectives.unseen`: crash (0 of 5 points, hidden)\n\n*The unseen check of collectives holds.*\n\n"
        "A process that ran your code died before it gave an answer.\n\n"
        "## benchmark.py\n\n### `benchmark.seen`: not_run (not scored)\n\n*The seen check of benchmark holds.*\n\n"
        "It needs GPUs that this machine lacks. It counts neither for you nor against you.\n\n"
        "## data_parallel.py\n\nNot written yet:\n\n- `shard_batch`: 5 points\n- `f`: 5 points\n"
    )


def test_a_perfect_submission_hears_so() -> None:
    one = graded()
    text = feedback(book(one), one)
    assert "**60 of 50 points**, the bonus included." in text
    assert text.endswith("Every check passes.\n")
    assert "##" not in text


def test_feedback_obeys_nothing_that_a_submission_wrote() -> None:
    evil = lost(SEEN.name, explanation=Explanation(*[EVIL] * 5), output=EVIL, replay=EVIL, unwritten="")
    one = graded("ada", notes=(EVIL,), collectives_seen=evil, benchmark_seen=lost("benchmark.seen", unwritten=EVIL))
    text = feedback(book(one), one)
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    found = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [child.type for token in found for child in token.children or []]
    assert not {"html_inline", "link_open", "image"} & set(inline)
    assert "html_block" not in [token.type for token in found]
    headings = [found[at + 1].content for at, token in enumerate(found) if token.type == "heading_open"]
    assert [heading for heading in headings if "heading" in heading] == []


def test_long_output_is_cut() -> None:
    one = graded(collectives_seen=lost(SEEN.name, output="line\n" * 10000))
    assert len(feedback(book(one), one)) < 5000
    assert len(results_json(book(one), one)) < 10000


# results.json

TEST_KEYS = {
    "score": (int, float),
    "max_score": (int, float),
    "status": str,
    "name": str,
    "name_format": str,
    "number": str,
    "output": str,
    "output_format": str,
    "tags": list,
    "visibility": str,
    "extra_data": dict,
}
TOP_KEYS = {
    "score": (int, float),
    "execution_time": (int, float),
    "output": str,
    "output_format": str,
    "test_output_format": str,
    "test_name_format": str,
    "visibility": str,
    "stdout_visibility": str,
    "extra_data": dict,
    "tests": list,
}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def results(one: Graded) -> dict[str, Any]:
    """Reads the file as Gradescope's specification describes it; a key that is not in it is an error."""
    found: dict[str, Any] = json.loads(results_json(book(one), one))
    for keys, item in [(TOP_KEYS, found), *((TEST_KEYS, test) for test in found["tests"])]:
        assert set(item) <= set(keys)
        for key, value in item.items():
            assert isinstance(value, keys[key])  # type: ignore[arg-type]
            assert not key.endswith("format") or value in FORMATS
            assert not key.endswith("visibility") or value in VISIBILITIES
        assert item.get("status", "passed") in ("passed", "failed")
    return found


def test_results_in_gradescopes_form() -> None:
    found = results(
        graded(collectives_seen=lost(SEEN.name), data_parallel_unseen=lost("data_parallel.unseen", Status.CRASH))
    )
    assert found["score"] == 50 == sum(test["score"] for test in found["tests"])
    assert found["visibility"] == "visible"
    assert [test["number"] for test in found["tests"]] == [
        f"{module}.{check}" for module in range(1, 7) for check in (1, 2)
    ]
    first, second = found["tests"][:2]
    assert (first["name"], first["score"], first["max_score"], first["status"]) == ("collectives.seen", 0, 5, "failed")
    assert (first["visibility"], second["visibility"]) == ("visible", "after_published")
    assert (second["name"], second["status"]) == ("collectives.unseen (hidden)", "passed")
    assert [test["name"] for test in found["tests"][-2:]] == [
        "accounting.seen (bonus)",
        "accounting.unseen (bonus, hidden)",
    ]
    assert found["output"].splitlines() == [
        "collectives: 5 of 10",
        "benchmark: 10 of 10",
        "data_parallel: 5 of 10",
        "tensor_parallel: 10 of 10",
        "pipeline_parallel: 10 of 10",
        "bonus: 10 of 10",
        "total: 50 of 50",
    ]


def test_results_of_a_broken_grader_are_not_final() -> None:
    found = results(graded(collectives_seen=lost(SEEN.name, Status.INFRA), benchmark_seen=None))
    assert "score" not in found
    assert found["output"].startswith("NOT FINAL: the grader itself failed on 2 of 12 checks (10 points).")
    broken = [test for test in found["tests"] if "score" not in test]
    assert [test["name"] for test in broken] == ["collectives.seen", "benchmark.seen"]
    assert all("status" not in test and test["max_score"] == 5 for test in broken)


def test_what_was_not_run_is_out_of_the_results_score() -> None:
    found = results(graded(collectives_seen=lost(SEEN.name, Status.NOT_RUN)))
    assert found["score"] == 55
    assert not {"score", "max_score", "status"} & set(found["tests"][0])


# The terminal


def test_the_table_fits_eighty_columns_and_is_plain() -> None:
    names = ["ada", "a name that is so long that it takes more than one line", "[/red]", "李明" * 12]
    shown = table_text(book(*(graded(name) for name in names)), width=80, color=False)
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown
    assert "[/red]" in shown
    assert shown.count("李") == 12, "a name wraps, it is not cut"


def test_the_table_in_full() -> None:
    fails = graded("bob", collectives_seen=lost(SEEN.name), benchmark_seen=lost("benchmark.seen", Status.INFRA))
    shown = table_text(book(graded(), fails), width=80, color=False)
    assert shown.splitlines() == [
        "submission  coll.  bench.  data  tensor  pipe.  bonus  total  worst",
        "              /10     /10   /10     /10    /10    /10    /50",
        "ada            10      10    10      10     10     10     60  pass",
        "bob             5       ?    10      10     10     10      ?  infra",
    ]


def test_the_end_says_what_is_open_and_where_the_files_are() -> None:
    from rich.console import Console

    broken = [graded(f"s{number}", collectives_seen=None) for number in range(7)]
    shown = closing_text(book(*broken), Path("grades"), terminal=Console(file=io.StringIO(), width=80))
    assert "no score yet for 7 of 7 submissions (s0, s1, s2, s3, s4 and 2 more)" in shown
    for name in ("grades/gradebook.db", "grades/gradebook.csv", "grades/<submission>/results.json, feedback.md"):
        assert name in shown
    assert "?:" not in closing_text(book(graded()), Path("grades"), terminal=Console(file=io.StringIO(), width=80))


# The files


def test_all_files_are_written_whole(tmp_path: Path) -> None:
    odd = lost(SEEN.name, explanation=Explanation("half a sign: \udcff"), output="\0\udc00")
    submissions = book(graded("ada", collectives_seen=odd), graded("李明"))
    written = write_views(submissions, tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")) == sorted(
        str(path.relative_to(tmp_path)) for path in written
    ), "and nothing beside them"
    write_views(book(graded("ada"), graded("李明")), tmp_path)
    assert "Every check passes." in (tmp_path / "ada" / "feedback.md").read_text(encoding="utf-8")


def test_every_status_has_its_sentence() -> None:
    assert set(SENTENCES) == set(Status)
    assert len(MODULES) == 6
    words = " ".join(SENTENCES.values()).lower()
    assert not [
        word for word in ("judge", "jail", "zygote", "conductor", "simply", "just", "obviously") if word in words
    ]
