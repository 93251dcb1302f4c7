"""The ring all-reduce step by step: what each rank holds of each chunk, from the messages that the reference sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.cluster.svg import Figure, Picture
from grader.handout.figures.cells import HEIGHT, draw_legend, draw_number
from grader.handout.figures.origins import WORLD_SIZE, Number, marks, numbers_of
from grader.handout.figures.running import FigureError, run
from grader.world import Launcher, PerRank, Submitted

STEPS = 2 * (WORLD_SIZE - 1)


@dataclass(frozen=True)
class Message:
    """One message of the ring: step `step` of the rank `source`; `number.place` is the chunk."""

    step: int
    source: int
    target: int
    number: Number


@dataclass(frozen=True)
class Held:
    """What a rank holds of one chunk after a step; arrived: whether a message of that step brought it.

    number is None where a partial sum has been sent on: it is of no use here any more.
    """

    number: Number | None
    arrived: bool = False


State = list[list[Held]]  # by rank, then chunk


@dataclass(frozen=True)
class RingRun:
    """A run of all_reduce: each rank's tensor of one number a chunk, all messages, and each rank's result."""

    given: list[list[Number]]
    messages: list[Message]
    results: list[list[Number]]


def run_ring(submission: Submitted, launcher: Launcher) -> RingRun:
    """Runs the reference's all_reduce of r, r+1, r+2, r+3 and, in the same world, of the marks of their origin.

    Raises FigureError where it is no ring of 2 (W - 1) steps.
    """
    import torch

    values = [[rank + chunk for chunk in range(WORLD_SIZE)] for rank in range(WORLD_SIZE)]
    marked = [marks(rank, WORLD_SIZE) for rank in range(WORLD_SIZE)]
    tensors = PerRank([[torch.tensor(each) for each in pair] for pair in zip(values, marked, strict=True)])
    returned = run(submission, "ring_all_reduce", WORLD_SIZE, launcher, tensors=tensors)
    messages = [message for rank, (first, second) in enumerate(returned) for message in _messages(rank, first, second)]
    return RingRun(
        given=[numbers_of(*pair) for pair in zip(values, marked, strict=True)],
        messages=messages,
        results=[numbers_of(first["result"], second["result"]) for first, second in returned],
    )


def _messages(rank: int, first: dict[str, Any], second: dict[str, Any]) -> list[Message]:
    if not len(first["sent"]) == len(second["sent"]) == STEPS:
        raise FigureError(f"rank {rank} of the ring sent {len(first['sent'])} messages; expected {STEPS}")
    messages = []
    for step, (sent, twin) in enumerate(zip(first["sent"], second["sent"], strict=True)):
        (number,) = numbers_of(sent["payload"], twin["payload"])
        messages.append(Message(step, rank, sent["to"], number))
    return messages


def states_of(ring: RingRun) -> list[State]:
    """What each rank holds at the start and after each step. Pure.

    What a message turned into on its target is what the target sends of that chunk later, or else returns.
    """
    states = [[[Held(number) for number in own] for own in ring.given]]
    for step in range(STEPS):
        state = [[replace(held, arrived=False) for held in own] for own in states[-1]]
        moved = [message for message in ring.messages if message.step == step]
        for message in moved:
            if len(message.number.origins) < WORLD_SIZE:
                state[message.source][_chunk(message)] = Held(None)
        for message in moved:
            state[message.target][_chunk(message)] = Held(_became(ring, message), arrived=True)
        states.append(state)
    return states


def _became(ring: RingRun, arrived: Message) -> Number:
    later = [
        message.number
        for message in ring.messages
        if message.source == arrived.target
        and message.step > arrived.step
        and message.number.place == arrived.number.place
    ]
    return later[0] if later else ring.results[arrived.target][_chunk(arrived)]


def _chunk(message: Message) -> int:
    if message.number.place is None:
        raise FigureError(f"the message of rank {message.source} in step {message.step + 1} holds no rank's number")
    return message.number.place


def draw_ring(submission: Submitted, launcher: Launcher) -> Figure:
    """The picture ring-steps; `submission` is module collectives. Raises FigureError."""
    return ring_figure(states_of(run_ring(submission, launcher)))


def ring_figure(states: Sequence[State]) -> Figure:
    """A row for the start and for each step, four chunks for each rank; what has just arrived is framed."""
    alt = (
        f"A ring all-reduce on {WORLD_SIZE} ranks in {STEPS} steps; rank r starts with r, r+1, r+2, r+3, a chunk each. "
        + " ".join(_step_text(step, state) for step, state in enumerate(states) if step > 0)
    )
    cell, gap, row, left, top = 37, 16, 50, 82, 44
    picture = Picture(
        left + WORLD_SIZE * (WORLD_SIZE * cell + gap),
        top + len(states) * row + 34,
        title="The steps of a ring all-reduce",
        description=alt,
    )
    for rank in range(WORLD_SIZE):
        x = left + rank * (WORLD_SIZE * cell + gap)
        picture.text(x, 18, f"rank {rank}", size=14, bold=True)
        for chunk in range(WORLD_SIZE):
            picture.text(x + (chunk + 0.5) * cell, 36, str(chunk), size=12, anchor="middle", muted=True)
    picture.text(10, 36, "chunk", size=12, muted=True)
    for step, state in enumerate(states):
        y = top + step * row
        picture.text(10, y + 15, f"step {step}" if step else "start", size=14, bold=True)
        if step:
            picture.text(10, y + 30, "reduce" if step <= STEPS // 2 else "gather", size=12, muted=True)
        for rank, own in enumerate(state):
            x = left + rank * (WORLD_SIZE * cell + gap)
            for chunk, held in enumerate(own):
                _draw_held(picture, x + chunk * cell, y, held, cell)
    draw_legend(picture, 10, top + len(states) * row + 8, sums=True)
    caption = (
        "The ring all-reduce on four ranks, step by step; the numbers are those of the messages that the reference "
        "sent, and of its results. What has arrived in a step is framed, with the own number added while reducing; a "
        "partial sum that was sent on is drawn empty. After step 3 each rank has its own chunk of the sum, after step "
        "6 all of them."
    )
    return Figure(name="ring-steps", caption=caption, alt=alt, picture=picture)


def _draw_held(picture: Picture, x: float, y: float, held: Held, cell: int) -> None:
    if held.number is None:
        picture.rect(x + 1, y, cell - 2, HEIGHT, fill="none")
        return
    draw_number(picture, x + 1, y, held.number, width=cell - 2)
    if held.arrived:
        corners = [(x, y - 1), (x + cell, y - 1), (x + cell, y + HEIGHT + 1), (x, y + HEIGHT + 1), (x, y - 1)]
        picture.polyline(corners, stroke="highlight", width=2.5)


def _step_text(step: int, state: State) -> str:
    arrived = [
        f"rank {rank} has {held.number.value} in chunk {chunk}"
        for rank, own in enumerate(state)
        for chunk, held in enumerate(own)
        if held.arrived and held.number is not None
    ]
    return f"After step {step}: {', '.join(arrived)}."
