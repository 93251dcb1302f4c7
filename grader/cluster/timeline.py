"""A timeline drawn: a lane for each rank and stream, steps from left to right, and the same in words."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from grader.cluster.looks import IDLE, Look, Looks
from grader.cluster.steps import Timeline, Transfer
from grader.cluster.svg import Picture
from grader.world.operation import POINT_TO_POINT

LEFT, RIGHT, TOP, BOTTOM = 152, 16, 62, 62
LANE, GAP, BETWEEN = 26, 3, 13  # height of a lane; between lanes of one rank; between ranks
MAX_LISTED = 40  # things that were done, in words: more of them nobody can follow


def draw_timeline(timeline: Timeline, looks: Looks, *, title: str) -> Picture:
    """The picture. What takes no step is an arrow from the sender to the receiver (a message), or is left out."""
    lanes = _lanes(timeline)
    block = len(lanes) * (LANE + GAP) - GAP
    width = LEFT + max(timeline.steps, 1) * looks.cell + RIGHT
    width = max(width, LEFT + RIGHT + _legend_width(timeline, looks), int(len(title) * 9.6) + 2 * RIGHT)
    height = TOP + timeline.size * (block + BETWEEN) - BETWEEN + BOTTOM
    picture = Picture(width, height, title=title, description=describe(timeline, looks))
    picture.text(RIGHT, 24, title, size=15, bold=True)
    tops = [TOP + rank * (block + BETWEEN) for rank in range(timeline.size)]
    _axis(picture, timeline, looks, bottom=height - BOTTOM)
    for rank, top in enumerate(tops):
        picture.text(RIGHT, top + 17, f"{looks.lanes} {rank}", bold=True)
        for row, lane in enumerate(lanes):
            picture.text(LEFT - 8, top + row * (LANE + GAP) + 17, lane, size=11, anchor="end", muted=True)
    _computations(picture, timeline, looks, tops, lanes)
    _transfers(picture, timeline, looks, tops, lanes)
    _messages(picture, timeline, looks, tops)
    _legend(picture, timeline, looks, y=height - 22)
    return picture


def describe(timeline: Timeline, looks: Looks) -> str:
    """The numbers of the picture, and what each rank did in which step, where that is not too long to hear."""
    one = looks.lanes
    told = [f"{timeline.steps} steps on {timeline.size} {one}{'s' if timeline.size > 1 else ''}."]
    if timeline.computations:
        idle = [timeline.idle(rank) for rank in range(timeline.size)]
        listed = ", ".join(f"{one} {rank}: {steps}" for rank, steps in enumerate(idle))
        told.append(f"Idle steps: {listed}.")
        if timeline.steps:
            told.append(f"Idle share of all: {Fraction(sum(idle), timeline.steps * timeline.size)}.")
    told += _messages_told(timeline, one)
    told += _ranks_told(timeline, looks)
    return " ".join(told)


def _messages_told(timeline: Timeline, one: str) -> Iterator[str]:
    """How many messages each rank sends to which."""
    sent: dict[tuple[int, int], int] = {}
    for each in timeline.transfers:
        peer = each.operation.peer_rank
        if each.operation.name == "send" and peer is not None:
            sent[each.rank, peer] = sent.get((each.rank, peer), 0) + 1
    if sent:
        listed = ", ".join(f"{rank} to {peer}: {number}" for (rank, peer), number in sorted(sent.items()))
        yield f"Messages from {one} to {one}: {listed}."


def _ranks_told(timeline: Timeline, looks: Looks) -> Iterator[str]:
    """What each rank did in which step; ranks that did the same are told of together."""
    alike: dict[str, list[int]] = {}
    for rank in range(timeline.size):
        done = [_words(begin, end, what) for begin, end, what in _doings(timeline, looks, rank)]
        alike.setdefault(", ".join(done), []).append(rank)
    if sum(did.count(",") + 1 for did in alike) > MAX_LISTED:
        return
    for did, ranks in alike.items():
        who = (
            f"Every {looks.lanes}"
            if len(ranks) == timeline.size > 1
            else f"{looks.lanes.capitalize()} {_listed(ranks)}"
        )
        yield f"{who}: {did or 'nothing'}."


def _listed(ranks: list[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)


def _doings(timeline: Timeline, looks: Looks, rank: int) -> list[tuple[int, int, str]]:
    done = [(each.begin, each.end, each.name) for each in timeline.computations if each.rank == rank]
    for transfer in timeline.transfers:
        if transfer.rank == rank and transfer.end > transfer.begin:
            done.append((transfer.begin, transfer.end, looks.label(transfer.operation)))
    return sorted(done, key=lambda each: each[:2])


def _words(begin: int, end: int, what: str) -> str:
    steps = f"step {begin}" if end - begin == 1 else f"steps {begin} to {end - 1}"
    return f"{what} in {steps}"


def _lanes(timeline: Timeline) -> list[str]:
    """The streams in which anything takes a step: "compute", and "communicate" or "send" and "receive"."""
    lanes = ["compute"] if timeline.computations else []
    lanes += sorted({_lane(each) for each in timeline.transfers if each.end > each.begin}, key=_LANES.index)
    return lanes or ["compute"]


_LANES = ("communicate", "send", "receive")


def _lane(transfer: Transfer) -> str:
    name = transfer.operation.name
    return {"send": "send", "recv": "receive"}.get(name, "communicate")


def _axis(picture: Picture, timeline: Timeline, looks: Looks, *, bottom: int) -> None:
    every = next(every for every in (1, 2, 5, 10, 50, 100, 1000) if every * looks.cell >= 22 or every == 1000)
    picture.text(LEFT - 8, TOP - 11, "step", size=11, anchor="end", muted=True)
    for step in range(timeline.steps + 1):
        x = LEFT + step * looks.cell
        picture.line(x, TOP - 5, x, bottom + 4, width=0.5, dashed=True)
        if step % every == 0 and step < timeline.steps:
            picture.text(x + looks.cell / 2, TOP - 11, str(step), size=11, anchor="middle", muted=True)


def _computations(picture: Picture, timeline: Timeline, looks: Looks, tops: list[int], lanes: list[str]) -> None:
    if "compute" not in lanes or not timeline.computations:
        return
    for rank, top in enumerate(tops):
        own = [each for each in timeline.computations if each.rank == rank]
        for begin, end in _between([(each.begin, each.end) for each in own], timeline.steps):
            picture.rect(*_box(begin, end, top, looks), fill=IDLE.fill, pattern=IDLE.pattern, radius=0, title="idle")
        for each in own:
            look, title = looks.of(each.name), f"{looks.lanes} {rank}, step {each.begin}: {each.name}"
            box = _box(each.begin, each.end, top, looks)
            picture.rect(*box, fill=look.fill, pattern=look.pattern, label=each.name, title=title)


def _transfers(picture: Picture, timeline: Timeline, looks: Looks, tops: list[int], lanes: list[str]) -> None:
    look = looks.communication
    for each in timeline.transfers:
        if each.end == each.begin:
            continue
        top = tops[each.rank] + lanes.index(_lane(each)) * (LANE + GAP)
        if each.begin > each.issued:  # it waits for its peers, or for its stream
            x, middle = LEFT + each.issued * looks.cell, top + LANE / 2
            picture.line(x, middle, LEFT + each.begin * looks.cell, middle, stroke=look.fill, width=2, dashed=True)
            picture.line(x, top + 6, x, top + LANE - 6, stroke=look.fill, width=2)
        label = looks.label(each.operation)
        title = (
            f"{looks.lanes} {each.rank}, issued before step {each.issued}, complete after step {each.end - 1}: {label}"
        )
        box = _box(each.begin, each.end, top, looks)
        picture.rect(*box, fill=look.fill, pattern=look.pattern, label=label, title=title)


def _messages(picture: Picture, timeline: Timeline, looks: Looks, tops: list[int]) -> None:
    """Messages that take no step, as arrows between the compute lanes."""
    for each in timeline.transfers:
        peer = each.operation.peer_rank
        if each.end > each.begin or each.operation.name != "send" or peer is None or peer >= timeline.size:
            continue
        x, down = LEFT + each.end * looks.cell, peer > each.rank
        begins = tops[each.rank] + (LANE if down else 0)
        ends = tops[peer] + (0 if down else LANE)
        lean = looks.cell * 0.22
        picture.line(x - lean, begins, x + lean, ends, stroke=looks.communication.fill, width=1.5, arrow=True)


def _legend(picture: Picture, timeline: Timeline, looks: Looks, *, y: float) -> None:
    x: float = LEFT
    for look, is_arrow in _shown(timeline, looks):
        if is_arrow:
            picture.line(x, y - 4, x + 22, y - 4, stroke=look.fill, width=1.5, arrow=True)
        else:
            picture.rect(x, y - 12, 22, 16, fill=look.fill, pattern=look.pattern, radius=2)
        picture.text(x + 28, y + 1, look.meaning, size=12)
        x += _entry_width(look)


def _legend_width(timeline: Timeline, looks: Looks) -> int:
    return sum(_entry_width(look) for look, _ in _shown(timeline, looks))


def _entry_width(look: Look) -> int:
    return 46 + int(len(look.meaning) * 7.4)


def _shown(timeline: Timeline, looks: Looks) -> Iterator[tuple[Look, bool]]:
    """(look, whether it is drawn as an arrow) of all that the picture shows."""
    for _, look in looks.computations:
        if any(looks.of(each.name) == look for each in timeline.computations):
            yield look, False
    if any(each.end > each.begin for each in timeline.transfers):
        yield looks.communication, False
    elif any(each.operation.name in POINT_TO_POINT for each in timeline.transfers):
        yield Look(looks.communication.fill, "", "message"), True
    if timeline.computations and any(timeline.idle(rank) for rank in range(timeline.size)):
        yield IDLE, False


def _box(begin: int, end: int, top: int, looks: Looks) -> tuple[float, float, float, float]:
    return LEFT + begin * looks.cell + 1, top, (end - begin) * looks.cell - 2, LANE


def _between(spans: list[tuple[int, int]], steps: int) -> Iterator[tuple[int, int]]:
    """The gaps that disjoint spans, in order, leave in range(steps)."""
    now = 0
    for begin, end in [*spans, (steps, steps)]:
        if begin > now:
            yield now, begin
        now = max(now, end)
