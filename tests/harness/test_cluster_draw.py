"""The timelines of the reference, drawn from real worlds, and `grader draw`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.cli import main
from grader.cluster.demos import DEMOS, draw
from grader.cluster.demos.every import WEIGHTS, gradients_of
from grader.world import Submitted
from grader.world.world import shared_launcher

ROOT = Path(__file__).parents[2]
IDLE = {
    "timeline-collectives": None,
    "timeline-benchmark": Fraction(9, 26),
    "timeline-naive": Fraction(4, 12),
    "timeline-overlapped": Fraction(1, 9),
    "timeline-buckets": Fraction(1, 9),
    "timeline-tensor_parallel": Fraction(4, 8),
    **{f"timeline-pipeline-{m}": Fraction(3, m + 3) for m in (1, 4, 16)},
}


def submitted(module: str) -> Submitted:
    return Submitted(module, (ROOT / "reference" / f"{module}.py").read_bytes(), f"{module}.py")


@pytest.mark.parametrize("module", DEMOS)
def test_the_reference_is_drawn_and_two_runs_are_the_same_bytes(module: str) -> None:
    """The idle share is what can be counted by hand: of a pipeline (p - 1) / (m + p - 1)."""
    figures = draw(module, submitted(module), shared_launcher())
    assert [figure.name for figure in figures] == [demo.name for demo in DEMOS[module]]
    for figure in figures:
        ElementTree.fromstring(figure.picture.svg())
        ElementTree.fromstring(figure.picture.plain())
        share = IDLE[figure.name]
        assert share is None or f"Idle share of all: {share}." in figure.alt
    again = draw(module, submitted(module), shared_launcher())
    assert [(one.alt, one.picture.svg()) for one in again] == [(one.alt, one.picture.svg()) for one in figures]


def test_the_ring_takes_two_rounds_of_messages() -> None:
    """2 (W - 1) steps, one message from each rank to the next in each."""
    (figure,) = draw("collectives", submitted("collectives"), shared_launcher(), ranks=3)
    assert "4 steps on 3 ranks. Messages from rank to rank: 0 to 1: 4, 1 to 2: 4, 2 to 0: 4." in figure.alt


def test_gradients_are_known_by_their_number_of_elements() -> None:
    """Of neighbouring layers; others are numbers."""
    assert [gradients_of(elements, WEIGHTS) for elements in (24, 36, 35, 1)] == ["g1", "g1+g2", "g3+g4", "1 elements"]


def test_the_command_writes_a_file_for_each_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FILE-NAME.svg."""
    arguments = ["--submission", str(ROOT / "reference"), "--out", str(tmp_path / "mine.svg")]
    assert main(["draw", "data_parallel", *arguments]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        f"mine-{name}.svg" for name in ("naive", "overlapped", "buckets")
    }
    assert "Idle steps" in capsys.readouterr().out


def test_an_unwritten_function_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and no picture."""
    picture = tmp_path / "ring.svg"
    assert main(["draw", "collectives", "--submission", str(ROOT / "assignment"), "--out", str(picture)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("collectives.all_reduce is not written yet (collectives.py:")
    assert not picture.exists()


@pytest.mark.parametrize("wrong", [["--submission", "nowhere"], ["--world", "0"], ["--out", "picture.png"]])
def test_wrong_arguments_are_one_line(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2."""
    assert main(["draw", "collectives", *wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
