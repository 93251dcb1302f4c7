"""Two curves of module accounting: the bubble by number of microbatches, and the ring's seconds by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.axes import Axis, draw_axes
from grader.handout.figures.running import run
from grader.world import Launcher, Submitted

STAGES = (2, 4, 8)
MICROBATCHES = (1, 2, 4, 8, 16, 32, 64)
RING_SIZE = 4
LATENCY = Fraction(5, 10**6)  # seconds a step
BANDWIDTH = 100 * 10**9  # bytes per second
SIZES = tuple(10**exponent for exponent in range(3, 10))  # bytes
WIDTH, HEIGHT = 620, 380


@dataclass(frozen=True)
class RingSeconds:
    """Seconds of an all-reduce by number of bytes, and their two parts: all steps' latency, and the bytes' time."""

    total: list[Fraction]
    latency: list[Fraction]
    bandwidth: list[Fraction]

    @property
    def even_bytes(self) -> Fraction:
        """The size at which the two parts are equal; the bytes' time is proportional to the size."""
        seconds_per_byte = self.bandwidth[-1] / SIZES[-1]
        return Fraction(self.latency[-1] / seconds_per_byte)


def draw_bubble(submission: Submitted, launcher: Launcher) -> Figure:
    """The picture bubble-curve; `submission` is module accounting. Raises FigureError."""
    ((fractions,),) = run(
        submission, "bubble_fractions", 1, launcher, stages=list(STAGES), microbatches=list(MICROBATCHES)
    )
    return bubble_figure(fractions)


def bubble_figure(fractions: Sequence[Sequence[Fraction]]) -> Figure:
    """A curve for each number of stages."""
    alt = "The bubble, as a part of the step. " + " ".join(
        f"With {stages} stages: {', '.join(f'{each} for m = {m}' for m, each in zip(MICROBATCHES, own, strict=True))}."
        for stages, own in zip(STAGES, fractions, strict=True)
    )
    picture = Picture(WIDTH, HEIGHT, title="The bubble by number of microbatches", description=alt)
    x = Axis(MICROBATCHES[0], MICROBATCHES[-1], 70, WIDTH - 90, logarithmic=True)
    y = Axis(0, 1, HEIGHT - 60, 52)
    draw_axes(
        picture,
        x,
        y,
        x_ticks=[(m, str(m)) for m in MICROBATCHES],
        y_ticks=[(percent / 100, f"{percent} %") for percent in (0, 25, 50, 75, 100)],
        x_name="microbatches m",
        y_name="part of the step in which a stage is idle",
    )
    for index, (stages, own) in enumerate(zip(STAGES, fractions, strict=True)):
        points = [(x.at(m), y.at(float(each))) for m, each in zip(MICROBATCHES, own, strict=True)]
        picture.polyline(points, stroke=f"rank{index}", markers=True, dashed=index == 1)
        picture.text(points[1][0] + 8, points[1][1] - 8, f"p = {stages}", size=13, bold=True)
    last = ", ".join(f"{_percent(own[-1])} for {stages} stages" for stages, own in zip(STAGES, fractions, strict=True))
    caption = (
        "The bubble (p - 1) / (m + p - 1) of p stages and m microbatches, as the reference's bubble_fraction computes "
        f"it: at m = {MICROBATCHES[-1]} it is {last}."
    )
    return Figure(name="bubble-curve", caption=caption, alt=alt, picture=picture)


def draw_ring_seconds(submission: Submitted, launcher: Launcher) -> Figure:
    """The picture ring-seconds; `submission` is module accounting. Raises FigureError."""
    return ring_seconds_figure(run_ring_seconds(submission, launcher))


def run_ring_seconds(submission: Submitted, launcher: Launcher) -> RingSeconds:
    """The seconds, and their parts: of nothing (latency alone), and of a link without latency."""

    def seconds(sizes: Sequence[int], latency: Fraction) -> list[Fraction]:
        ((found,),) = run(
            submission,
            "all_reduce_seconds",
            1,
            launcher,
            sizes=list(sizes),
            num_ranks=RING_SIZE,
            latency=latency,
            bandwidth=BANDWIDTH,
        )
        own: list[Fraction] = found
        return own

    return RingSeconds(seconds(SIZES, LATENCY), seconds([0] * len(SIZES), LATENCY), seconds(SIZES, Fraction(0)))


def ring_seconds_figure(ring: RingSeconds) -> Figure:
    """Both axes logarithmic: flat where latency rules, a line where bandwidth does."""
    pairs = ", ".join(f"{_bytes(size)} take {_seconds(each)}" for size, each in zip(SIZES, ring.total, strict=True))
    setting = f"{RING_SIZE} ranks, {_seconds(LATENCY)} a step and {BANDWIDTH // 10**9} GB/s"
    alt = (
        f"A ring all-reduce on {setting}: {pairs}. The latency of all steps is {_seconds(ring.latency[0])} at every "
        f"size; the bytes take as long at {_bytes(ring.even_bytes)}."
    )
    picture = Picture(WIDTH, HEIGHT, title="Seconds of a ring all-reduce by size", description=alt)
    x = Axis(SIZES[0], SIZES[-1], 76, WIDTH - 24, logarithmic=True)
    y = Axis(1e-6, 1e-1, HEIGHT - 60, 52, logarithmic=True)
    draw_axes(
        picture,
        x,
        y,
        x_ticks=[(size, _bytes(size)) for size in SIZES],
        y_ticks=[(10.0**-exponent, _seconds(Fraction(1, 10**exponent))) for exponent in range(6, 0, -1)],
        x_name="bytes of the whole array",
        y_name="time of one all-reduce",
    )
    _curve(picture, x, y, SIZES, ring.latency, "rank1", dashed=True)
    shown = [(size, each) for size, each in zip(SIZES, ring.bandwidth, strict=True) if each >= Fraction(1, 10**6)]
    _curve(picture, x, y, [size for size, _ in shown], [each for _, each in shown], "rank2", dashed=True)
    _curve(picture, x, y, SIZES, ring.total, "rank0", markers=True)
    latency_y, even_x = y.at(float(ring.latency[0])), x.at(float(ring.even_bytes))
    picture.line(even_x, y.start, even_x, latency_y, dashed=True)
    picture.text(even_x + 8, y.start - 10, f"equal at {_bytes(ring.even_bytes)}", size=12)
    steps = 2 * (RING_SIZE - 1)
    picture.text(x.end, latency_y + 18, f"latency of {steps} steps: {_seconds(ring.latency[0])}", anchor="end")
    picture.text(x.start + 6, latency_y - 10, "latency + bytes / bandwidth", bold=True)
    picture.text(x.at(3e5), y.at(6e-6), "bytes / bandwidth", anchor="end")
    caption = (
        f"Seconds of a ring all-reduce on {setting}, from the reference's ring_seconds: below "
        f"{_bytes(ring.even_bytes)} latency is most of it, above it bandwidth."
    )
    return Figure(name="ring-seconds", caption=caption, alt=alt, picture=picture)


def _curve(
    picture: Picture,
    x: Axis,
    y: Axis,
    sizes: Sequence[int],
    seconds: Sequence[Fraction],
    stroke: str,
    *,
    dashed: bool = False,
    markers: bool = False,
) -> None:
    points = [(x.at(size), y.at(float(each))) for size, each in zip(sizes, seconds, strict=True)]
    picture.polyline(points, stroke=stroke, dashed=dashed, markers=markers)


def _percent(part: Fraction) -> str:
    return f"{float(part) * 100:.3g} %"


def _bytes(size: Fraction | int) -> str:
    return _in_units(Fraction(size), ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")))


def _seconds(seconds: Fraction) -> str:
    microsecond = Fraction(1, 10**6)
    return _in_units(seconds, ((Fraction(1), "s"), (Fraction(1, 1000), "ms"), (microsecond, "µs")))


def _in_units(amount: Fraction, units: Sequence[tuple[Fraction | int, str]]) -> str:
    unit, name = next((each for each in units if amount >= each[0]), units[-1])
    return f"{float(amount / unit):.4g} {name}"
