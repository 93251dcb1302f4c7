"""The committed stubs, pages and notebooks: up to date, clean, and true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.checking.spec import MODULES
from tests.mistakes.rows import tasks_of
from tests.mistakes.titles import TITLES

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "handouts" / "built" / "student"
# Words that are for staff, and words that tell a student who is stuck that they should not be.
UNWANTED = re.compile(r"\b(judges?|jail(ed|s)?|zygotes?|conductors?|simply|just|obvious(ly)?)\b", re.IGNORECASE)

# Runs in a process of its own: it imports torch and what is written for ranks.
CALL_EVERY_STUB = """
import ast, importlib, inspect, json, pathlib, sys

def unwritten(body, owner=()):
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from unwritten(node.body, (*owner, node.name))
        elif isinstance(node, ast.FunctionDef) and "NotImplementedError" in ast.unparse(node):
            yield (*owner, node.name)

def call(module, names):
    function, arguments = module, []
    for name in names:
        owner, function = function, getattr(function, name)
    if inspect.isclass(owner):
        concrete = type("Concrete", (owner,), {name: None for name in getattr(owner, "__abstractmethods__", ())})
        arguments.append(concrete.__new__(concrete))
    for parameter in list(inspect.signature(function).parameters.values())[len(arguments):]:
        if parameter.default is inspect.Parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            arguments.append(None)
    required = {
        name: None for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
    }
    try:
        function(*arguments, **required)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["returned", ""]

sys.path.insert(0, "assignment")
found = {}
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    for names in unwritten(ast.parse(pathlib.Path(module.__file__).read_text()).body):
        found[".".join([name, *names])] = call(module, names)
print(json.dumps(found))
"""

# The numbers of the pages' worked examples, from the reference.
EXAMPLES = """
import json, sys
from fractions import Fraction
import torch

sys.path.insert(0, sys.argv[1])
import accounting, benchmark, data_parallel, pipeline_parallel

tensors = [torch.empty(size, dtype=torch.uint8) for size in (40, 20, 30, 100, 10)]
microsecond = Fraction(1, 10**6)
print(json.dumps({
    "bus GB/s": round(benchmark.bus_bandwidth("all_reduce", 400_000_000, 0.0016, 4) / 1e9, 6),
    "bus GB/s, reduce-scatter": round(benchmark.bus_bandwidth("reduce_scatter", 400_000_000, 0.0008, 4) / 1e9, 6),
    "buckets": data_parallel.plan_buckets(tensors, 50),
    "schedule": [" ".join(map(str, pipeline_parallel.gpipe_schedule(stage, 2, 2))) for stage in range(2)],
    "microbatches": [len(rows) for rows in pipeline_parallel.split_microbatches(torch.empty(5), 2)],
    "bytes": accounting.training_bytes(10**9),
    "GPUs": accounting.gpus_to_hold(10**12, 192 * 10**9),
    "ring": [str(accounting.ring_bytes_sent(op, 1200, 4)) for op in ("all_gather", "reduce_scatter", "all_reduce")],
    "ring us": str(accounting.ring_seconds("all_reduce", 1200, 4, latency=2 * microsecond, bandwidth=10**9) * 10**6),
    "bubbles": [str(accounting.bubble_fraction(4, m)) for m in (1, 4, 16)],
    "choices": accounting.CHOICES,
    "microbatches needed": accounting.microbatches_needed(3, Fraction(1, 8)),
}))
"""


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-B", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_committed_stubs_are_what_the_reference_makes():
    result = run_python("-m", "grader.handout", "stubs", "--check")
    assert result.returncode == 0, result.stderr


def test_each_module_has_its_pages_and_its_notebook():
    names = {path.name for path in BUILT.iterdir()} - {"handout.pdf", "student.zip"}  # built, not committed
    pages = {f"{stem}.{kind}" for stem in ("index", *MODULES) for kind in ("md", "html")}
    assert names == pages | {f"{module}.ipynb" for module in MODULES} | {"handout.json", "assets", "figures"}


def test_solutions_are_apart_from_what_students_get():
    staff = BUILT.parent / "staff"
    assert {path.name for path in BUILT.parent.iterdir()} == {"student", "staff"}
    for module in MODULES:
        solved = (staff / "solutions" / f"{module}.py").read_text()
        assert "SOLUTION" not in solved
        assert "NotImplementedError" not in solved
        compile(solved, module, "exec")


def test_every_function_to_write_says_what_to_do():
    result = run_python("-c", CALL_EVERY_STUB, *MODULES)
    assert result.returncode == 0, result.stderr
    raised: dict[str, list[str]] = json.loads(result.stdout)
    assert {name.split(".")[0] for name in raised} == set(MODULES)
    wrong = {name: came for name, came in raised.items() if came[0] != "NotImplementedError" or not came[1]}
    assert not wrong


def test_stubs_are_clean():
    pytest.importorskip("ruff")
    paths = [f"assignment/{module}.py" for module in MODULES]
    # A stub uses none of its arguments yet.
    checked = run_python("-m", "ruff", "check", "--no-cache", "--ignore", "ARG", *paths)
    assert checked.returncode == 0, checked.stdout
    formatted = run_python("-m", "ruff", "format", "--no-cache", "--check", *paths)
    assert formatted.returncode == 0, formatted.stdout


def test_no_unwanted_word_and_no_tag_is_in_what_students_read():
    found = {}
    stubs = [ROOT / "assignment" / f"{module}.py" for module in MODULES]
    for path in [*BUILT.glob("*.md"), *BUILT.glob("*.ipynb"), *(BUILT / "figures").iterdir(), *stubs]:
        text = path.read_text()
        assert "SOLUTION" not in text, path.name
        if words := [match[0] for match in UNWANTED.finditer(text)]:
            found[path.name] = words
    assert found == {}


@pytest.mark.parametrize("module", MODULES)
def test_notebooks_are_valid(module: str):
    notebook = nbformat.read(BUILT / f"{module}.ipynb", as_version=4)
    nbformat.validate(notebook)
    stub = (ROOT / "assignment" / f"{module}.py").read_text().rstrip("\n")
    assert f"%%writefile assignment/{module}.py\n{stub}" in [cell.source for cell in notebook.cells]


def test_links_between_the_pages_lead_somewhere():
    for path in BUILT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (BUILT / target).is_file(), f"{path.name} links to {target}"


def test_points_of_all_pages_sum_to_what_the_index_says():
    index = (BUILT / "index.md").read_text()
    total = int(re.search(r"The points sum to (\d+)", index)[1])
    rows = re.findall(r"^\| \[\w+\]\(\w+\.md\) \|.*\| (\d+)(?! bonus)\b.* \|$", index, re.MULTILINE)
    assert sum(map(int, rows)) == total


def test_worked_examples_are_what_the_reference_computes():
    result = run_python("-c", EXAMPLES, "reference")
    assert result.returncode == 0, result.stderr
    came: dict[str, Any] = json.loads(result.stdout)
    page = {module: " ".join((BUILT / f"{module}.md").read_text().split()) for module in MODULES}
    assert (came["bus GB/s"], came["bus GB/s, reduce-scatter"]) == (375.0, 375.0)
    assert "= 375 GB/s" in page["benchmark"]
    assert came["buckets"] == [[4], [3], [2, 1], [0]]
    assert re.search(r"`\[4\]`.*`\[3\]`.*`\[2, 1\]`.*`\[0\]`", page["data_parallel"], re.DOTALL)
    for stage, actions in enumerate(came["schedule"]):
        assert f"| {stage} | {actions} |" in page["pipeline_parallel"]
    assert came["microbatches"] == [3, 2]
    assert "2 microbatches: 3 and 2 rows" in page["pipeline_parallel"]
    assert (came["bytes"], came["GPUs"]) == (16 * 10**9, 84)
    assert "it takes 84 of them" in page["accounting"]
    assert came["ring"] == ["900", "900", "1800"]
    assert came["ring us"] == "69/5"
    assert "= 13.8 μs" in page["accounting"]
    assert came["bubbles"] == ["3/4", "3/7", "3/19"]
    assert "$3/19$ of the time is idle" in page["accounting"]
    assert came["microbatches needed"] == 14
    assert "14 microbatches" in page["accounting"]
    choices = tomllib.loads((ROOT / "handouts" / "templates" / "questions.toml").read_text())["choices"]
    assert came["choices"] == {key: question["answer"] for key, question in choices.items()}
    _assert_gradients_are_those_of_one_process(page)


def _assert_gradients_are_those_of_one_process(page: dict[str, str]) -> None:
    rows, scale = [1, 2, 3], 2 / 3
    parts = [scale * sum(2 * x * x for x in own) for own in (rows[:2], rows[2:])]
    assert sum(parts) / 2 == pytest.approx(sum(2 * x * x for x in rows) / 3)
    assert f"| {parts[0]:.3f} | {parts[1]:.0f} |" in page["data_parallel"]
    assert f"| {sum(parts) / 2:.3f} | {sum(parts) / 2:.3f} |" in page["data_parallel"]
    x, weight, gradient = (1, 2), ((1, 2, 3), (4, 5, 6)), (1, 0, 2)
    output = tuple(sum(x[d] * weight[d][f] for d in range(2)) for f in range(3))
    of_input = tuple(sum(gradient[f] * weight[d][f] for f in range(3)) for d in range(2))
    assert f"| {output} | {output} |" in page["tensor_parallel"]
    assert f"| {of_input} | {of_input} |" in page["tensor_parallel"]


def test_quoted_messages_are_of_the_mistakes_that_there_are():
    rows = json.loads((ROOT / "handouts" / "messages.json").read_text())["rows"]
    tasks = tasks_of(sorted(TITLES))
    assert [(row["module"], row["mutant"], row["check"]) for row in rows] == [
        (task.module, task.mutant, task.check) for task in tasks
    ]
    assert all(row["line"] for row in rows)
