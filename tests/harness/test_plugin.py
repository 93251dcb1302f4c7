"""What a student sees: `pytest` on a small project with checks of every outcome, in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

CHECKS = """
from grader.checking import check, expect

@check("collectives", points=3, statement="twice doubles its argument.", worlds=(2,), needs=("twice",))
def test_twice(check):
    for size in check.worlds:
        values = check.run(size, "small.twice", cases=["x=21"], x=21)
        for rank in range(size):
            expect.same(values[rank][0], 42, what="twice(21)", rank=rank)

@check("collectives", points=2, statement="half halves its argument.", worlds=(1,), needs=("half",))
def test_half(check):
    values = check.run(1, "small.half", cases=["x=21", "x=42"], x=21)
    expect.same(values[0][0], 10, what="half(21)", rank=0)

@check("collectives", points=2, statement="later is there.", worlds=(1,), needs=("later",))
def test_later(check):
    check.run(1, "small.later")

@check("collectives", points=1, statement="gone is there.", worlds=(1,), needs=("gone",))
def test_gone(check):
    check.run(1, "small.gone")

@check("collectives", points=1, statement="waiting ends.", worlds=(2,), needs=("waits",))
def test_waits(check):
    check.run(2, "small.waits")

@check("collectives", points=1, statement="deep ends.", worlds=(1,), needs=("deep",), bonus=True)
def test_deep(check):
    check.run(1, "small.deep")

@check("collectives", points=1, statement="ask asks nobody.", worlds=(1,), needs=("ask",), bonus=True)
def test_ask(check):
    check.run(1, "small.ask")

@check("collectives", points=1, statement="lacking ends.", worlds=(1,), needs=("lacking",), bonus=True)
def test_lacking(check):
    check.run(1, "small.lacking")

@check("pipeline_parallel", points=1, statement="the module can be imported.", worlds=(1,), bonus=True)
def test_called_at_import(check):
    check.run(1, "small.twice", x=1)

@check("data_parallel", points=1, statement="the module is text.", worlds=(1,), bonus=True)
def test_text(check):
    check.run(1, "small.twice", x=1)

@check("benchmark", points=4, statement="leaving is not done.", worlds=(2,))
def test_leaves(check):
    check.run(2, "small.leaves")

@check("benchmark", points=5, statement="the check is broken.", worlds=(1,), bonus=True)
def test_broken(check):
    raise KeyError("in the check itself")

@check("tensor_parallel", points=6, statement="the module can be imported.", worlds=(1,))
def test_import(check):
    check.run(1, "small.twice", x=1)

def test_ordinary():
    assert True
"""
PROGRAMS = """
def twice(here, x):
    return here.submission.twice(x)

def half(here, x):
    yield here.submission.half(x)
    yield here.submission.half(2 * x)

def later(here):
    return here.submission.later()

def leaves(here):
    return here.submission.leaves(here.rank)

def waits(here):
    return here.submission.waits(here.rank)

def deep(here):
    return here.submission.deep(0)

def ask(here):
    return here.submission.ask()

def lacking(here):
    return here.submission.lacking()
"""
COLLECTIVES = '''
def twice(x):
    print("twice of", x)
    return x + x

def half(x):
    if x > 30:
        raise ArithmeticError("too much for me")
    return x // 2

def later():
    """Does something later."""
    raise NotImplementedError("do something")

def waits(rank):
    print("about to wait")
    if rank == 1:
        raise ArithmeticError("not after all")
    return rank

def deep(x):
    return deep(x + 1)

def ask():
    return input("continue? ")

def lacking():
    import torch
    return torch.zeros(2, device="meta").tolist()
'''
BENCHMARK = """
import os

def leaves(rank):
    if rank == 1:
        os._exit(5)
    return rank
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for path, text in {
        "pytest.ini": "[pytest]\ntestpaths = tests/public\nmarkers = check: a check\n",
        "tests/__init__.py": "",
        "tests/public/__init__.py": "",
        "tests/public/test_small.py": CHECKS,
        "tests/public/programs/small.py": PROGRAMS,
        "assignment/collectives.py": COLLECTIVES,
        "assignment/benchmark.py": BENCHMARK,
        "assignment/tensor_parallel.py": "def broken(:\n",
        "assignment/pipeline_parallel.py": "def later():\n    raise NotImplementedError('do it')\n\n\nlater()\n",
        "other/collectives.py": COLLECTIVES.replace("x + x", "x * x"),
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "assignment/data_parallel.py").write_text("x = 1\n", encoding="utf-16")
    return root


def run(project: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "COLUMNS": "80"},
        **options,  # type: ignore[call-overload]
    )


@pytest.fixture(scope="module")
def seen(project: Path) -> subprocess.CompletedProcess[str]:
    return run(project, "-ra", "--junitxml", "report.xml")


def test_the_table_has_every_check_with_its_points(seen: subprocess.CompletedProcess[str]) -> None:
    text = seen.stdout
    rows = {
        line.split()[-4] if "(bonus)" not in line else line.split()[-5]: line
        for line in text.splitlines()
        if " / " in line
    }
    assert rows["twice"].split() == ["pass", "twice", "3", "/", "3"]
    assert rows["half"].split() == ["fail", "half", "0", "/", "2"]
    assert rows["later"].split() == ["not", "written", "later", "0", "/", "2"]
    assert rows["gone"].split() == ["skipped", "gone", "0", "/", "1"]
    assert rows["leaves"].split() == ["crash", "leaves", "0", "/", "4"]
    header = next(line for line in text.splitlines() if line.startswith("collectives.py "))
    assert header.split() == ["collectives.py", "0", "bonus", "3", "/", "9"]
    assert ["data_parallel.py", "0", "bonus"] in [line.split() for line in text.splitlines()]
    assert "3 of 19 public points" in text
    assert all(len(line) <= 80 for line in text[text.index(" points =") : text.index(" what is wrong =")].splitlines())
    assert seen.returncode == 1


def test_failures_say_what_where_and_how_to_run_them_again(seen: subprocess.CompletedProcess[str]) -> None:
    text = seen.stdout
    assert "rank 0 raised ArithmeticError: too much for me" in text
    assert "x=42" in text, "the case that was under way"
    assert "assignment/collectives.py:8 in half: raise ArithmeticError" in " ".join(text.split()), "lines are folded"
    assert "again     pytest tests/public/test_small.py::test_half --seed " in text
    assert "rank 1 left the interpreter with exit code 5" in text
    assert "assignment/benchmark.py:6 in leaves: os._exit(5)" in text
    assert "SyntaxError while the module was imported" in text
    assert "collectives.py does not define gone" in text
    assert "the check itself failed: KeyError" in text
    assert "Traceback" not in text.split("the check itself failed")[0]


def test_prints_are_shown_beside_an_error(seen: subprocess.CompletedProcess[str]) -> None:
    own = failure(seen.stdout, "collectives.waits")
    assert "rank 1 raised ArithmeticError: not after all" in own
    assert "  [rank 0] about to wait" in own
    assert "  [rank 1] about to wait" in own


def test_a_recursion_is_not_a_page_of_the_same_line(seen: subprocess.CompletedProcess[str]) -> None:
    own = failure(seen.stdout, "collectives.deep")
    assert "rank 0 raised RecursionError" in own
    assert own.count("in deep: return deep(x + 1)") == 2, "one below `where`, one in the story"
    assert "(the same line " in own


@pytest.mark.parametrize(
    ("check", "help_"),
    [
        ("collectives.ask", "a rank has no keyboard"),
        ("pipeline_parallel.called_at_import", "code outside functions runs at the import"),
        ("data_parallel.text", "the file is not plain text in UTF-8"),
    ],
)
def test_a_frequent_mistake_has_a_hint(check: str, help_: str, seen: subprocess.CompletedProcess[str]) -> None:
    own = failure(seen.stdout, check)
    assert f"help      {help_}" in own
    assert all(len(line) <= 80 for line in own.split("help  ")[1].split("again  ")[0].splitlines())
    assert "outside your code" not in own


def test_what_could_not_run_counts_as_failed(project: Path, seen: subprocess.CompletedProcess[str]) -> None:
    assert "collectives.py does not define gone" in failure(seen.stdout, "collectives.gone")
    cases = {case.get("name"): case for case in ET.parse(project / "report.xml").iter("testcase")}
    assert cases["test_gone"].find("failure") is not None, "a misspelt function must not leave a green run"


def failure(text: str, check: str) -> str:
    """The paragraph of one failed check."""
    return text.split(f"\n{check}: ")[1].split("\n\n")[0]


def test_each_unwritten_function_is_one_line_with_what_to_do(seen: subprocess.CompletedProcess[str]) -> None:
    lines = seen.stdout[seen.stdout.index("= not written yet =") :].splitlines()[1:]
    line = next(n for n, text in enumerate(COLLECTIVES.splitlines(), 1) if "NotImplementedError" in text)
    assert lines[:6] == [
        "assignment/collectives.py",
        f"{line:>5}: later: do something",
        "",
        f"start here: assignment/collectives.py:{line}, later",
        "then run:   pytest -k later",
        lines[5],
    ]
    assert "public points" in lines[5]


def test_an_error_of_torch_by_that_name_is_no_unwritten_function(seen: subprocess.CompletedProcess[str]) -> None:
    own = failure(seen.stdout, "collectives.lacking")
    assert "rank 0 raised NotImplementedError: Cannot copy out of meta tensor" in own
    assert "lacking: not written" not in seen.stdout


def test_a_module_of_which_nothing_is_written_is_one_line(project: Path) -> None:
    (project / "empty").mkdir()
    stub = "def {}(x=0):\n    raise NotImplementedError('write {}')\n\n\n"
    (project / "empty" / "collectives.py").write_text("".join(stub.format(n, n) for n in ("twice", "half", "unused")))
    seen = run(project, "--submission", "empty", "-k", "twice or half")
    assert "  not written  all 2 checks" in seen.stdout.splitlines()
    assert "0 / 1" not in seen.stdout
    assert (
        "    2: twice: write twice\n    6: half: write half\n\nstart here: empty/collectives.py:2, twice" in seen.stdout
    )
    assert "pytest -k twice --submission empty" in seen.stdout
    assert "unused" not in seen.stdout, "no check that ran calls for it"
    assert "0 of 5 public points" in seen.stdout
    assert seen.returncode == 1


def test_what_a_class_hands_in_is_not_parsed(project: Path) -> None:
    reader, writer = os.pipe()
    try:
        seen = run(project, "--verdicts", str(writer), "-k", "later", pass_fds=[writer])
    finally:
        os.close(writer)
        os.close(reader)
    assert "assignment/collectives.py\n       later\n" in seen.stdout
    assert "do something" not in seen.stdout


def test_junit_has_verdicts_and_points(project: Path, seen: subprocess.CompletedProcess[str]) -> None:
    assert seen.stdout
    cases = {case.get("name"): case for case in ET.parse(project / "report.xml").iter("testcase")}
    properties = {one.get("name"): one.get("value") for one in cases["test_half"].iter("property")}
    assert properties == {"check": "collectives.half", "verdict": "fail", "points": "0", "possible": "2"}
    assert "ArithmeticError" in str(cases["test_half"].find("failure").get("message"))  # type: ignore[union-attr]
    assert cases["test_ordinary"].find("failure") is None


def test_another_submission_on_two_workers(project: Path) -> None:
    seen = run(project, "-n", "2", "-k", "twice or half", "--submission", "other")
    assert "rank 0: twice(21) did not return 42" in seen.stdout
    assert "int 441" in seen.stdout
    assert "--submission other" in seen.stdout
    assert "0 of 5 public points" in seen.stdout


def test_verdicts_fall_on_a_stream_and_only_for_the_checks_asked_for(project: Path) -> None:
    reader, writer = os.pipe()
    try:
        run(project, "--verdicts", str(writer), "--checks", "collectives.twice,benchmark.leaves", pass_fds=[writer])
    finally:
        os.close(writer)
    with os.fdopen(reader) as stream:
        records = [json.loads(line) for line in stream]
    assert [(record["event"], record.get("check")) for record in records] == [
        ("start", "collectives.twice"),
        ("verdict", "collectives.twice"),
        ("start", "benchmark.leaves"),
        ("verdict", "benchmark.leaves"),
        ("end", None),
    ]
    assert [record["status"] for record in records if record["event"] == "verdict"] == ["pass", "crash"]


def test_a_judge_whose_lifeline_ends_leaves_with_all_its_worlds(project: Path) -> None:
    (project / "stuck").mkdir()
    (project / "stuck" / "collectives.py").write_text("def twice(x):\n    while True:\n        pass\n")
    life, lifeline = os.pipe()
    reader, writer = os.pipe()
    words = ["--submission", "stuck", "-k", "twice", "--verdicts", str(writer), "--lifeline", str(life)]
    judge = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=project,
        pass_fds=[life, writer],
        stdout=subprocess.DEVNULL,
    )
    os.close(writer)
    os.close(life)
    os.read(reader, 1)  # it has begun
    os.close(lifeline)
    assert judge.wait(timeout=15) == 1
    os.close(reader)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--submission", "nowhere"), "no submission: nowhere is not a folder"),
        (("--checks", "collectives.nothing"), "no such check: collectives.nothing"),
    ],
)
def test_bad_arguments_are_one_clear_line(words: tuple[str, ...], message: str, project: Path) -> None:
    seen = run(project, *words)
    assert message in seen.stdout + seen.stderr
    assert "Traceback" not in seen.stdout + seen.stderr
    assert seen.returncode == 4, "pytest's own code for wrong usage"


def test_collection_imports_no_torch(project: Path) -> None:
    code = (
        "import sys, pytest; pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider']);"
        "sys.exit('torch' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert "test_twice" in seen.stdout
    assert seen.returncode == 0, "torch was imported"
