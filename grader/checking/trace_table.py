"""A trace as text: a column for each rank, or a row for each step where there is no room for columns. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from grader.checking.context import Ran
from grader.checking.trace_order import Row, Step, rows
from grader.world.failure import printable
from grader.world.mismatch import describe, short
from grader.world.operation import POINT_TO_POINT, Operation, Place
from grader.world.trace import Doing, Event

MAX_COLUMNS = 4
MIN_COLUMN = 18
GAP = "  "
MAX_NAME = 120
LAST_SHARE = 2 / 3  # of the lines, for the world that ran last: it is the one that failed
HEAD_SHARE = 1 / 4  # of a world's lines, for its beginning; the rest is for its end

_Key = tuple[int, int]  # rank and seq: one operation of a world


def trace_table(ran: Sequence[Ran], *, own_file: str, width: int = 80, max_lines: int | None = None) -> list[str]:
    """The lines that show what the ranks of these worlds asked of their groups, and what each waited for.

    own_file:  "collectives.py": its lines are shown as "line 41", those of other files with their name.
    max_lines: about as many at most; of what is too long, the middle of each world is left out. None for all.
    """
    bodies = [_body(world, own_file, width) for world in ran]
    lengths = [len(body) for body in bodies]
    room = _shares(lengths, max_lines) if max_lines is not None else lengths
    lines: list[str] = []
    for world, body, most in zip(ran, bodies, room, strict=True):
        lines += ["", *_heading(world, width), *_shortened(body, most)]
    return lines[1:]


def _shares(lengths: Sequence[int], total: int) -> list[int]:
    """How many lines each world gets: the last as many as it can use, if the others can do with the rest."""
    *earlier, last = lengths or [0]
    of_last = min(last, max(total - sum(earlier), int(total * LAST_SHARE)))
    each = (total - of_last) // max(len(earlier), 1)
    return [*([each] * len(earlier)), of_last][: len(lengths)]


def _shortened(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    head = int(most * HEAD_SHARE)
    left_out = len(lines) - most
    return [*lines[:head], f"[{left_out} lines are left out here]", *lines[head + left_out :]]


def _heading(ran: Ran, width: int) -> list[str]:
    failed = ", which failed" if ran.failure is not None else ""
    size = f"a world of {ran.world_size}" if ran.world_size > 1 else "a world of one rank"
    lines = textwrap.wrap(f"{ran.program} in {size}{failed}", width)
    if not ran.trace.complete:
        lines.append("(only the beginning was kept)")
    column = _column_width(ran.world_size, width)
    if column is not None:
        ranks = [f"rank {rank}" for rank in range(ran.world_size)]
        lines += [_beside(ranks, column), _beside(["-" * len(rank) for rank in ranks], column)]
    return lines


def _body(ran: Ran, own_file: str, width: int) -> list[str]:
    by_case: dict[int, list[list[Step]]] = {}
    for rank in range(ran.world_size):
        for case, step in _steps(ran, rank, own_file):
            by_case.setdefault(case, [[] for _ in range(ran.world_size)])[rank].append(step)
    if not by_case:
        return ["(no rank asked anything of a group)"]
    column = _column_width(ran.world_size, width)
    lines = []
    for case, columns in sorted(by_case.items()):
        if len(ran.cases) > 0 or len(by_case) > 1:
            lines.append(_separator(ran.cases, case, width))
        for row in rows(columns):
            lines += _row_lines(row, width) if column is None else _row_columns(row, ran.world_size, column)
    return lines


def _separator(cases: Sequence[str], case: int, width: int) -> str:
    if case < len(cases):
        text = f"case {case + 1} of {len(cases)}: {printable(cases[case])}"
    else:
        text = "after the last case" if cases else f"value {case + 1}"
    return f"-- {textwrap.shorten(text, width - 6, placeholder=' …')} ".ljust(width, "-")


def _column_width(world_size: int, width: int) -> int | None:
    """The width of a rank's column; None where there is no room for columns."""
    column = (width - len(GAP) * (world_size - 1)) // world_size
    return column if world_size <= MAX_COLUMNS and column >= MIN_COLUMN else None


def _row_columns(row: Row, world_size: int, width: int) -> list[str]:
    cells = [_cell(row[rank], width) if rank in row else [] for rank in range(world_size)]
    height = max(len(cell) for cell in cells)
    filled = [cell + [""] * (height - len(cell)) for cell in cells]
    return [_beside(line, width) for line in zip(*filled, strict=True)]


def _cell(step: Step, width: int) -> list[str]:
    remarks = textwrap.wrap(", ".join(step.remarks), width, initial_indent="  ", subsequent_indent="  ")
    return [*textwrap.wrap(step.words, width, subsequent_indent="  "), *remarks]


def _beside(cells: Sequence[str], width: int) -> str:
    return GAP.join(f"{cell:<{width}}" for cell in cells).rstrip()


def _row_lines(row: Row, width: int) -> Iterator[str]:
    for rank, step in sorted(row.items()):
        label = f"rank {rank:<3} "
        text = ", ".join([step.words, *step.remarks])
        yield from textwrap.wrap(text, width, initial_indent=label, subsequent_indent=" " * (len(label) + 2))


def _steps(ran: Ran, rank: int, own_file: str) -> Iterator[tuple[int, Step]]:
    """A rank's steps, each with its case; a blocking send or receive is one, though torch waits for a handle."""
    meetings = {(one.rank, one.seq): number for number, met in enumerate(ran.trace.met) for one in met}
    events = [event for event in ran.trace if event.rank == rank]
    stuck = ran.failure is not None
    index = 0
    while index < len(events):
        event = events[index]
        following = events[index + 1] if index + 1 < len(events) else None
        blocking = following is not None and _is_blocking(event, following)
        index += 2 if blocking else 1
        is_last = index == len(events)
        if event.doing is Doing.FORM:
            if event.place.file or (is_last and stuck):  # else it is the harness's own, before the program began
                yield event.case, _form_step(event, own_file, waits=is_last and stuck)
        elif event.operation is None:
            verb = "held until another rank has marked" if event.doing is Doing.HOLD else "mark"
            yield event.case, Step(rank, f"{verb}: {printable(event.name, MAX_NAME)}")
        else:
            waits = following if blocking else event
            yield event.case, _operation_step(event, waits or event, event.operation, meetings, own_file)


def _is_blocking(event: Event, following: Event) -> bool:
    """Whether these two are dist.send or dist.recv: a message that is waited for where it is asked for."""
    return (
        event.doing is Doing.ISSUE
        and following.doing is Doing.WAIT
        and event.operation is not None
        and event.operation.name in POINT_TO_POINT
        and event.operation == following.operation
        and event.case == following.case
        and event.place[:3] == following.place[:3]
    )


def _form_step(event: Event, own_file: str, *, waits: bool) -> Step:
    assert event.operation is not None
    remarks = (*_line(event.place, own_file), *_waited(event.missing, met=not waits))
    return Step(event.rank, f"form the group {list(event.operation.group)}", remarks)


def _operation_step(
    event: Event, waits: Event, operation: Operation, meetings: Mapping[_Key, int], own_file: str
) -> Step:
    """The step of an issue, a wait or a poll. waits: where the rank waited for it; the event itself if it did not."""
    meeting = meetings.get((operation.rank, operation.seq))
    met = meeting is not None
    line = _line(event.place, own_file)
    match event.doing:
        case Doing.ISSUE if waits is not event or not operation.is_async:
            return Step(event.rank, describe(operation), (*line, *_waited(waits.missing, met=met)), meeting)
        case Doing.ISSUE:
            is_message = operation.name in POINT_TO_POINT
            words = f"i{describe(operation)}" if is_message else f"{describe(operation)}, asynchronous"
            return Step(event.rank, words, (*line, *(() if met else ("never starts",))), meeting)
        case Doing.WAIT:
            remarks = (*line, *_waited(event.missing, met=met))
            return Step(event.rank, f"wait for {_named(operation, own_file)}", remarks)
        case _:
            return Step(event.rank, f"is complete: {_named(operation, own_file)}", line)


def _named(operation: Operation, own_file: str) -> str:
    """An operation that has been shown, by its name and line."""
    name = f"i{short(operation)}" if operation.name in POINT_TO_POINT else short(operation)
    return " ".join([name, *(f"({line})" for line in _line(operation.place, own_file))])


def _line(place: Place, own_file: str) -> tuple[str, ...]:
    if not place.file:
        return ()
    return (f"line {place.line}" if place.file == own_file else f"{printable(place.file, MAX_NAME)}:{place.line}",)


def _waited(missing: Sequence[int], *, met: bool) -> tuple[str, ...]:
    """What a rank waited for. missing: who had not come when it began to wait; of what never met, perhaps nobody."""
    ranks = ", ".join(map(str, missing))
    who = f"rank {ranks}" if len(missing) == 1 else f"ranks {ranks}"
    if met:
        return (f"waited for {who}",) if missing else ()
    return (f"waits for {who}", "never starts") if missing else ("never starts",)
