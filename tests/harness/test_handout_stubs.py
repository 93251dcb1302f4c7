"""Stubs from tagged sources: what is refused, and the command that writes and compares them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.checking.spec import MODULES
from grader.handout.cli import handout
from grader.handout.leaks import find_leaks, hidden_lines
from grader.handout.stubs import build_stubs, with_instructions
from grader.handout.tags import SourceError

MODULE = '''\
"""Circles."""


def area(radius: float) -> float:
    """The area of a circle."""
    # BEGIN SOLUTION
    # STUB: raise NotImplementedError("multiply the square of the radius by pi")
    # pi to ten decimals is enough for a circle
    return 3.1415926536 * radius * radius
    # END SOLUTION
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with six small modules."""
    (tmp_path / "reference").mkdir()
    for module in MODULES:
        (tmp_path / "reference" / f"{module}.py").write_text(MODULE)
    return tmp_path


def test_the_stub_says_what_to_do():
    stub = build_stubs({"benchmark.py": MODULE})["benchmark.py"]
    docstring = ast.get_docstring(ast.parse(stub)) or ""
    assert docstring.startswith("Circles.\n\nTo do: ")
    assert docstring.endswith("pytest -k test_benchmark")
    assert stub.endswith('    raise NotImplementedError("multiply the square of the radius by pi")\n')


def test_instructions_keep_a_long_docstring():
    stub = with_instructions('"""One.\n\nTwo.\n"""\n\nx = 1\n', "m")
    assert (ast.get_docstring(ast.parse(stub)) or "").startswith("One.\n\nTwo.\n\nTo do: ")
    assert stub.endswith('\n"""\n\nx = 1\n')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"""Circles."""', "'''Circles.'''", "m.py:1: the module begins with a docstring"),
        ('"""Circles."""\n', "", "m.py:1: the module begins with a docstring"),
        ('    """The area of a circle."""\n', "", "m.py:4: area has no docstring"),
        ("raise NotImplementedError(", "return print(", "m.py:4: the stub of area does not raise"),
        ('"multiply the', '"Multiply the', "m.py:4: the stub of area does not raise"),
        ('("multiply the square of the radius by pi")', "", "m.py:4: the stub of area does not raise"),
        ("# BEGIN SOLUTION", "# BEGIN SOLUTIONS", "m.py:6: "),
        (
            '# STUB: raise NotImplementedError("multiply the square of the radius by pi")\n',
            '# STUB: raise NotImplementedError("do return 3.1415926536*radius * radius")\n',
            "m.py:9: the stub of m.py shows this line",
        ),
    ],
)
def test_a_faulty_source_is_refused_with_its_line(old: str, new: str, message: str):
    assert old in MODULE
    with pytest.raises(SourceError) as caught:
        build_stubs({"m.py": MODULE.replace(old, new)})
    assert str(caught.value).startswith(message)


def test_a_solution_line_that_others_show_anyway_is_no_leak():
    line = "return 3.1415926536*radius*radius"
    leaks = find_leaks(line, hidden_lines({"m.py": MODULE}))
    assert [(leak.filename, leak.line, leak.text) for leak in leaks] == [
        ("m.py", 9, "return 3.1415926536 * radius * radius")
    ]
    given = MODULE + '\n\ndef again(radius):\n    """Again."""\n    return 3.1415926536 * radius * radius\n'
    assert find_leaks(line, hidden_lines({"m.py": MODULE, "n.py": given})) == []


def test_leaks_are_found_by_tokens_in_any_kind_of_text():
    hidden = hidden_lines({"m.py": MODULE})
    assert find_leaks("```\n  return   3.1415926536\n    * radius * radius\n```", hidden)
    assert find_leaks("A hint: pi to ten decimals is enough for a circle.", hidden)
    assert not find_leaks("return 3.1415926536 * radius * radius_2", hidden)


def test_a_line_with_a_comment_is_found_without_it_and_so_is_the_comment():
    source = MODULE.replace("radius * radius\n", "radius * radius  # the square times pi, once and for all\n")
    hidden = hidden_lines({"m.py": source})
    assert find_leaks("return 3.1415926536 * radius * radius", hidden)
    assert find_leaks("The square times pi, once and for all: the square times pi, once and for all.", hidden)


def test_the_opening_of_a_bracket_may_stand_in_the_stub():
    answers = "# BEGIN SOLUTION\n# STUB: ANSWERS: dict[str, str] = {}\nANSWERS: dict[str, str] = {\n"
    answers += '    "first_question_on_rings": "b",\n}\n# END SOLUTION\n'
    stub = build_stubs({"m.py": f"{MODULE}\n\n{answers}"})["m.py"]
    assert stub.endswith("ANSWERS: dict[str, str] = {}\n")
    hidden = hidden_lines({"m.py": f"{MODULE}\n\n{answers}"})
    assert find_leaks('{"first_question_on_rings":"b", "second": "a"}', hidden)
    assert not find_leaks('{"first_question_on_rings":"c", "second": "a"}', hidden)


def test_stubs_command_writes_and_then_finds_nothing_to_do(root: Path):
    first = CliRunner().invoke(handout, ["stubs", "--root", str(root)])
    assert (first.exit_code, "6 of 6" in first.output) == (0, True)
    stub = (root / "assignment" / "collectives.py").read_bytes()
    again = CliRunner().invoke(handout, ["stubs", "--root", str(root)])
    assert (again.exit_code, "0 of 6" in again.output) == (0, True)
    assert (root / "assignment" / "collectives.py").read_bytes() == stub
    assert CliRunner().invoke(handout, ["stubs", "--check", "--root", str(root)]).exit_code == 0


def test_stubs_check_names_what_differs_and_writes_nothing(root: Path):
    CliRunner().invoke(handout, ["stubs", "--root", str(root)])
    edited = root / "assignment" / "benchmark.py"
    edited.write_text("# by hand\n")
    (root / "assignment" / "accounting.py").unlink()
    result = CliRunner().invoke(handout, ["stubs", "--check", "--root", str(root)])
    assert result.exit_code == 1
    named = [module for module in MODULES if f"{module}.py is not" in result.output]
    assert named == ["benchmark", "accounting"]
    assert edited.read_text() == "# by hand\n"


def test_stubs_command_names_a_faulty_source(root: Path):
    path = root / "reference" / "data_parallel.py"
    path.write_text(path.read_text().replace("# END SOLUTION", "# END SOLUTON"))
    result = CliRunner().invoke(handout, ["stubs", "--root", str(root)])
    assert result.exit_code == 1
    assert "data_parallel.py:10: " in result.output
    assert not (root / "assignment").exists()


def test_stubs_command_names_a_missing_module(root: Path):
    (root / "reference" / "benchmark.py").unlink()
    result = CliRunner().invoke(handout, ["stubs", "--root", str(root)])
    assert result.exit_code == 1
    assert "benchmark.py" in result.output
