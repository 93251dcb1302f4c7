"""The tag parser: what it accepts, and that it refuses all that could have been meant as a tag."""

from __future__ import annotations

import textwrap

import pytest

from grader.handout import tags
from grader.handout.tags import SourceError

SOURCE = '''\
"""A module."""

import math

# BEGIN SOLUTION
import random

# END SOLUTION


def area(radius: float) -> float:
    """The area of a circle."""
    # BEGIN SOLUTION
    # STUB: raise NotImplementedError("multiply")
    square = radius * radius
    return math.pi * square
    # END SOLUTION


# BEGIN SOLUTION
def _secret() -> float:
    return random.random()


# END SOLUTION


class Circle:
    """A circle."""

    radius: float

    # BEGIN SOLUTION
    def _grow(self) -> None:
        self.radius *= 2

    # END SOLUTION

    def shrink(self) -> None:
        """Halves the radius."""
        # BEGIN SOLUTION
        # STUB: if self.radius < 0:
        # STUB:     raise ValueError("negative")
        # STUB: raise NotImplementedError("halve it")
        self.radius /= 2
        # END SOLUTION
'''

STUB = '''\
"""A module."""

import math


def area(radius: float) -> float:
    """The area of a circle."""
    raise NotImplementedError("multiply")


class Circle:
    """A circle."""

    radius: float

    def shrink(self) -> None:
        """Halves the radius."""
        if self.radius < 0:
            raise ValueError("negative")
        raise NotImplementedError("halve it")
'''


def function(body: str) -> str:
    """A module with one function whose body is `body`."""
    return 'def f(x):\n    """F."""\n' + textwrap.indent(textwrap.dedent(body), "    ")


GOOD = """\
# BEGIN SOLUTION
# STUB: raise NotImplementedError("double x")
return 2 * x
# END SOLUTION
"""


def test_blocks_become_their_stub_lines_or_vanish():
    assert tags.stub(SOURCE, "circle.py") == STUB


def test_blocks_know_their_lines():
    first, second, *_ = tags.parse(SOURCE, "circle.py")
    assert (first.begin, first.end, first.indent, first.stub) == (5, 8, 0, ())
    assert first.solution == ("import random", "")
    assert (second.begin, second.end, second.indent) == (13, 17, 4)
    assert second.stub == ('raise NotImplementedError("multiply")',)
    assert second.solution == ("    square = radius * radius", "    return math.pi * square")


def test_source_without_tags_stays_as_it_is():
    assert tags.stub(STUB, "circle.py") == STUB
    assert tags.parse(STUB, "circle.py") == []


def test_outside_is_what_every_student_sees():
    outside = tags.outside(SOURCE, "circle.py")
    assert "def area" in outside
    assert "square" not in outside
    assert "STUB" not in outside
    assert "multiply" not in outside


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# BEGIN SOLUTION\n", "# BEGIN SOLUTION   \n"),
        ("# BEGIN SOLUTION\n", "#BEGIN SOLUTION\n"),
        ("# BEGIN SOLUTION\n", "#  BEGIN  SOLUTION\t\n"),
        ("# END SOLUTION\n", "#END SOLUTION \n"),
        ("# STUB: raise", "#STUB:raise"),
    ],
)
def test_blanks_in_tags_are_harmless(old: str, new: str):
    assert tags.stub(function(GOOD.replace(old, new)), "f.py") == tags.stub(function(GOOD), "f.py")


def test_windows_line_ends_are_harmless(tmp_path):
    path = tmp_path / "f.py"
    path.write_bytes(function(GOOD).replace("\n", "\r\n").encode())
    assert tags.stub(path.read_text(), "f.py") == tags.stub(function(GOOD), "f.py")


@pytest.mark.parametrize(
    "tag",
    [
        "# BEGIN SOLUTIONS",
        "# BEGIN_SOLUTION",
        "# BEGINSOLUTION",
        "# Begin Solution",
        "# begin solution",
        "# BEGIN SOLUTION:",
        "# BEGIN SOLUTION NO PROMPT",
        "# BEGNI SOLUTION",
        "# BEGIN SOLUTON",
        "# BEGIN",
        "# BEGIN HIDDEN TESTS",
        "# BEGIN PROMPT",
        "## BEGIN SOLUTION",
        "#! BEGIN SOLUTION",
        "# SOLUTION",
        "# START SOLUTION",
        "# the SOLUTION begins",
        "# STUBS: pass",
        "# STUB pass",
        "# Stub: pass",
        "# stub: pass",
        "# STB: pass",
    ],
)
def test_near_misses_are_errors_that_name_the_line(tag: str):
    with pytest.raises(SourceError, match=r"^f\.py:3: .*looks like a tag"):
        tags.stub(function(f"{tag}\nreturn 2 * x\n"), "f.py")


@pytest.mark.parametrize("tag", ["# END SOLUTIONS", "# END", "# END_SOLUTION", "# END SOLUTION.", "# end solution"])
def test_near_misses_of_the_end_are_errors_too(tag: str):
    with pytest.raises(SourceError, match=r"^f\.py:6: .*looks like a tag"):
        tags.stub(function(GOOD.replace("# END SOLUTION", tag)), "f.py")


@pytest.mark.parametrize(
    "comment",
    [
        "# begin with the own piece",
        "# the end of the ring",
        "# end: the right neighbour",
        "# SEND_ACTIVATION comes after FORWARD",
        "# AVG needs a floating-point dtype",
        "# a closed solution of the recurrence is in the docstring",
        "# sum: of all ranks",
        "# W - 1 steps",
        "#",
        "# isort: split",
    ],
)
def test_other_comments_are_no_tags(comment: str):
    assert comment in tags.stub(function(f"{comment}\nreturn x\n"), "f.py")


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("return x\n# END SOLUTION\n", 4, "END without a BEGIN"),
        ("# STUB: return x\nreturn x\n", 3, "STUB without a BEGIN"),
        ("# BEGIN SOLUTION\nreturn x\n", 3, "without an END"),
        ("# BEGIN SOLUTION\n# BEGIN SOLUTION\nreturn x\n# END SOLUTION\n", 4, "inside the block"),
        ("# BEGIN SOLUTION\nx += 1\n# STUB: return x\nreturn x\n# END SOLUTION\n", 5, "straight after BEGIN"),
        ("# BEGIN SOLUTION\n# STUB:\nreturn x\n# END SOLUTION\n", 4, "without text"),
        ("# BEGIN SOLUTION\n# STUB: return x\n# END SOLUTION\nreturn x\n", 3, "hides nothing"),
        ("return x  # BEGIN SOLUTION\n", 3, "after code"),
        ("return [\n    # BEGIN SOLUTION\n    x,\n    # END SOLUTION\n]\n", 4, "inside brackets"),
        ('return """\n# BEGIN SOLUTION\n"""\n', 4, "inside a string"),
        ("# BEGIN SOLUTION\nif x:\n    x += 1\n    # END SOLUTION\nreturn x\n", 6, "indented by 8"),
        ("if x:\n    x += 1\n# BEGIN SOLUTION\n    x += 2\n# END SOLUTION\nreturn x\n", 6, "indented by 8"),
        ("if x:\n    # BEGIN SOLUTION\n    x += 1\nreturn x\n    # END SOLUTION\n", 6, "indented by 4"),
        ("if x:\n    # BEGIN SOLUTION\n    return x\n    # END SOLUTION\n", 3, "does not compile"),
        ("# BEGIN SOLUTION\n# STUB: return (\nreturn x\n# END SOLUTION\n", 3, "does not compile"),
        ("BEGIN SOLUTION\n", 3, "not valid Python"),
    ],
)
def test_misplaced_tags_are_errors_that_name_file_and_line(body: str, line: int, message: str):
    with pytest.raises(SourceError) as caught:
        tags.stub(function(body), "f.py")
    assert str(caught.value).startswith(f"f.py:{line}: ")
    assert message in str(caught.value)


def test_a_stub_that_does_not_compile_is_reported_at_the_source_line():
    before = "# BEGIN SOLUTION\ny = 1\ny = 2\n# END SOLUTION\n"
    after = "# BEGIN SOLUTION\n# STUB: return (\nreturn x\n# END SOLUTION\n"
    with pytest.raises(SourceError) as caught:
        tags.stub(function(before + after), "f.py")
    assert str(caught.value).startswith("f.py:7: the stub does not compile here: ")
    assert " on line " not in str(caught.value)
