"""The handout's pictures: their values are those of one process, they are whole, and the same each time."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.collectives import COLLECTIVES, Exchange, draw_exchange, run_collective
from grader.handout.figures.curves import MICROBATCHES, RING_SIZE, SIZES, STAGES, run_ring_seconds
from grader.handout.figures.cuts import run_cuts
from grader.handout.figures.drawing import by_name, draw_values, read_modules
from grader.handout.figures.origins import WORLD_SIZE, mark, number_of
from grader.handout.figures.ring import STEPS, RingRun, run_ring, states_of
from grader.handout.figures.running import FigureError, returned_of, run
from grader.handout.figures.shards import BATCH, WEIGHT_DF, X_BD
from grader.world import Launcher, PerRank, Submitted

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    *(f"collectives-{each.name}" for each in COLLECTIVES),
    *("ring-steps", "column-shards", "batch-shards", "network-cuts", "bubble-curve", "ring-seconds"),
}
MATRIX = torch.tensor([[rank + place for place in range(WORLD_SIZE)] for rank in range(WORLD_SIZE)])
SUMS: list[int] = MATRIX.sum(dim=0).tolist()
RANKS = range(WORLD_SIZE)
TRANSPOSED: list[list[int]] = torch.arange(WORLD_SIZE**2).reshape(WORLD_SIZE, WORLD_SIZE).T.tolist()
EXPECTED: dict[str, list[list[int] | None]] = {
    "broadcast": [[0, 1, 2, 3]] * WORLD_SIZE,
    "scatter": [[rank] for rank in RANKS],
    "gather": [[0, 1, 2, 3], None, None, None],
    "reduce": [SUMS, None, None, None],
    "all_gather": [[0, 1, 2, 3]] * WORLD_SIZE,
    "reduce_scatter": [[each] for each in SUMS],
    "all_reduce": [SUMS] * WORLD_SIZE,
    "all_to_all": [*TRANSPOSED],
}
FROM_PLACE = ("gather", "all_gather", "all_to_all")  # entry i of a result came from rank i


@pytest.fixture(scope="module")
def modules() -> dict[str, Submitted]:
    return read_modules(ROOT)


@pytest.fixture(scope="module")
def figures(modules: dict[str, Submitted], launcher: Launcher) -> dict[str, Figure]:
    return by_name(draw_values(modules, launcher))


@pytest.fixture(scope="module")
def exchanges(modules: dict[str, Submitted], launcher: Launcher) -> dict[str, Exchange]:
    return {each.name: run_collective(each, modules["collectives"], launcher) for each in COLLECTIVES}


@pytest.fixture(scope="module")
def ring(modules: dict[str, Submitted], launcher: Launcher) -> RingRun:
    return run_ring(modules["collectives"], launcher)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_collective_gives_what_one_process_computes(name: str, exchanges: dict[str, Exchange]) -> None:
    after = exchanges[name].after
    assert [own and [number.value for number in own] for own in after] == EXPECTED[name]
    for own in after:
        for place, number in enumerate(own or []):
            assert number.origins == origins_of(name, place)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_picture_of_a_collective_shows_its_values(name: str, exchanges: dict[str, Exchange]) -> None:
    exchange = exchanges[name]
    words = words_of(draw_exchange(exchange).picture)
    for number in (number for own in [*exchange.before, *exchange.after] for number in own or []):
        assert str(number.value) in words
    shown = sum(len(own or []) for own in [*exchange.before, *exchange.after])
    assert len([word for word in words if word.isdigit()]) == shown


def test_the_ring_ends_with_the_sums_after_a_reduce_scatter(ring: RingRun) -> None:
    states = states_of(ring)
    assert len(states) == STEPS + 1
    assert [[held.number and held.number.value for held in own] for own in states[0]] == MATRIX.tolist()
    halfway = [[held.number and held.number.value for held in own] for own in states[STEPS // 2]]
    assert halfway == [[SUMS[chunk] if chunk == rank else None for chunk in RANKS] for rank in RANKS]
    assert [[held.number and held.number.value for held in own] for own in states[-1]] == [SUMS] * WORLD_SIZE


def test_each_partial_sum_of_the_ring_is_the_sum_of_the_ranks_that_its_slots_name(ring: RingRun) -> None:
    for state in states_of(ring):
        for own in state:
            for chunk, held in enumerate(own):
                if held.number is not None:
                    assert held.number.place == chunk
                    assert held.number.value == MATRIX[list(held.number.origins), chunk].sum().item()


def test_the_messages_of_the_ring_are_those_of_the_trace(
    ring: RingRun, modules: dict[str, Submitted], launcher: Launcher
) -> None:
    tensors = PerRank([[row] for row in MATRIX])
    trace = returned_of(modules["collectives"], "ring_all_reduce", WORLD_SIZE, launcher, tensors=tensors).trace
    for rank in RANKS:
        issued = trace.of(rank).issued(by=("program",))  # the line that calls torch is that of the notes' program
        sends = [operation.peer_rank for operation in issued if operation.name == "send"]
        assert sends == [message.target for message in ring.messages if message.source == rank]
        assert sends == [(rank + 1) % WORLD_SIZE] * STEPS


def test_the_column_shards_are_those_of_the_whole_weight(modules: dict[str, Submitted], launcher: Launcher) -> None:
    x_BD, weight_DF = torch.tensor(X_BD), torch.tensor(WEIGHT_DF)
    found = run(
        modules["tensor_parallel"],
        "column_shards",
        WORLD_SIZE,
        launcher,
        x_BD=x_BD.float(),
        weight_DF=weight_DF.float(),
    )
    results = [own[0] for own in found]
    assert torch.equal(torch.cat([torch.tensor(each["own"]) for each in results], dim=-1), weight_DF)
    assert torch.equal(torch.cat([torch.tensor(each["local"]) for each in results], dim=-1), x_BD @ weight_DF)
    assert all(each["gathered"] == (x_BD @ weight_DF).tolist() for each in results)


def test_the_shards_of_the_pictures_are_whole(figures: dict[str, Figure]) -> None:
    words = words_of(figures["batch-shards"].picture)
    for value in (value for row in BATCH for value in row if value > 9):
        assert words.count(str(value)) == 2  # in the batch, and with its rank
    words = words_of(figures["column-shards"].picture)
    for value in (torch.tensor(X_BD) @ torch.tensor(WEIGHT_DF))[0].tolist():
        assert words.count(str(value)) == 2  # on its rank, and gathered


def test_the_cuts_own_everything_once_and_in_order(modules: dict[str, Submitted], launcher: Launcher) -> None:
    cuts = run_cuts(modules, launcher)
    assert cuts.rows == cuts.columns == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert cuts.layers == [[0], [1], [2], [3]]


def test_the_bubble_curve_tells_the_formula(figures: dict[str, Figure]) -> None:
    alt = figures["bubble-curve"].alt
    for stages in STAGES:
        for m in MICROBATCHES:
            assert f"{Fraction(stages - 1, m + stages - 1)} for m = {m}" in alt


def test_the_seconds_of_the_ring_are_latency_and_bytes(modules: dict[str, Submitted], launcher: Launcher) -> None:
    ring = run_ring_seconds(modules["accounting"], launcher)
    for size, total, latency, bandwidth in zip(SIZES, ring.total, ring.latency, ring.bandwidth, strict=True):
        assert total == latency + bandwidth
        assert latency == 2 * (RING_SIZE - 1) * Fraction(5, 10**6)
        assert bandwidth == Fraction(2 * (RING_SIZE - 1) * size, RING_SIZE * 100 * 10**9)
    assert ring.even_bytes == 2 * 10**6


def test_every_picture_is_there_with_its_words(figures: dict[str, Figure]) -> None:
    assert set(figures) == NAMES
    for name, figure in figures.items():
        assert figure.name == name
        assert figure.caption.endswith(".")
        assert len(re.findall(r"\d+", figure.alt)) >= 8
        assert figure.picture.width <= 760
        for text in (figure.picture.svg(), figure.picture.plain()):
            assert ElementTree.fromstring(text).tag.endswith("svg")


def test_no_words_are_small_or_cut_off(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        for element in ElementTree.fromstring(figure.picture.plain()).iter("{http://www.w3.org/2000/svg}text"):
            x, y, size = (float(element.attrib[key]) for key in ("x", "y", "font-size"))
            width = 0.64 * size * len(element.text or "")
            before = {"middle": 0.5, "end": 1.0}.get(element.attrib.get("text-anchor", ""), 0.0) * width
            assert size >= 12, f"{figure.name}: {element.text}"
            assert x - before >= 0, f"{figure.name}: {element.text}"
            assert x - before + width <= figure.picture.width, f"{figure.name}: {element.text}"
            assert size <= y <= figure.picture.height, f"{figure.name}: {element.text}"


def test_the_same_bytes_each_time(
    figures: dict[str, Figure], modules: dict[str, Submitted], launcher: Launcher
) -> None:
    again = by_name(draw_values(modules, launcher))
    for name, figure in figures.items():
        assert again[name].picture.svg() == figure.picture.svg()
        assert (again[name].alt, again[name].caption) == (figure.alt, figure.caption)


def test_a_number_that_mixes_places_is_refused() -> None:
    assert number_of(3, mark(2, 1) + mark(0, 1)).origins == (0, 2)
    with pytest.raises(ValueError, match="places"):
        number_of(3, mark(2, 1) + mark(0, 2))


def test_a_reference_that_fails_gives_no_picture(launcher: Launcher) -> None:
    broken = Submitted("collectives", b"def all_gather(piece):\n    return piece.no_such_name\n", "broken.py")
    (collective,) = [each for each in COLLECTIVES if each.name == "all_gather"]
    with pytest.raises(FigureError, match=r"broken\.py failed in collective on 4 ranks"):
        run_collective(collective, broken, launcher)


def test_two_pictures_of_one_name_are_refused(figures: dict[str, Figure]) -> None:
    with pytest.raises(FigureError, match="ring-steps"):
        by_name([figures["ring-steps"], figures["ring-steps"]])


def words_of(picture: Picture) -> list[str]:
    """What is written in a picture."""
    root = ElementTree.fromstring(picture.plain())
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def origins_of(name: str, place: int) -> tuple[int, ...]:
    """The ranks that entry `place` of a result is made of."""
    if name in ("broadcast", "scatter"):
        return (0,)
    return (place,) if name in FROM_PLACE else tuple(RANKS)
