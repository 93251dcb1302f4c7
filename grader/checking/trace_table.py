"""A trace as text: a column for each rank, or a row for each step where there is no room for columns. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from grader.checking.context import Ran
from grader.checking.trace_order import Row, Step, rows
from grader.world.failure import printable
from grader.world.mismatch import describe, short
from grader.world.operation import POINT_TO_POINT, Operation, Place
from grader.world.trace import Doing, Event, Trace

MAX_COLUMNS = 4
MIN_COLUMN = 18
GAP = "  "
MAX_NAME = 120
LAST_SHARE = 2 / 3  # of the lines, for the world that ran last: it is the one that failed
HEAD_SHARE = 1 / 4  # of a world's lines, for its beginning; the rest is for its end

_Key = tuple[int, int]  # rank and seq: one operation of a world
_Files = Mapping[str, str]  # what a line of a file is called, for files whose name goes without saying


def trace_table(ran: Sequence[Ran], *, own_file: str, width: int = 80, max_lines: int | None = None) -> list[str]:
    """The lines that show what the ranks of these worlds asked of their groups, and what each waited for.

    own_file:  "collectives.py": its lines are shown as "line 41", the program's as "program line 41".
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
    meetings = _meetings(ran.trace)
    files = {own_file: "line", f"programs/{ran.program.partition('.')[0]}.py": "program line"}
    for rank in range(ran.world_size):
        for case, step in _steps(ran.trace.of(rank), meetings, files):
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


def _meetings(trace: Trace) -> dict[_Key, int]:
    """The number of the meeting that each operation took part in; those that never started are not there."""
    meetings = {(one.rank, one.seq): number for number, met in enumerate(trace.met) for one in met}
    number = len(trace.met)
    forming: dict[tuple[int, ...], list[_Key]] = {}
    for event in trace:
        if event.doing is Doing.FORM and event.operation is not None:
            asked = forming.setdefault(event.operation.group, [])
            asked.append((event.rank, event.operation.seq))
            if not event.missing:  # the last member has asked; the others wait until then, and ask for no other
                meetings.update(dict.fromkeys(forming.pop(event.operation.group), number))
                number += 1
    return meetings


def _steps(events: Sequence[Event], meetings: Mapping[_Key, int], files: _Files) -> Iterator[tuple[int, Step]]:
    """A rank's steps, each with its case; a blocking send or receive is one, though torch waits for a handle."""
    index = 0
    while index < len(events):
        event = events[index]
        following = events[index + 1] if index + 1 < len(events) else None
        index += 1
        operation = event.operation
        if operation is None:
            verb = "held until another rank has marked" if event.doing is Doing.HOLD else "mark"
            yield event.case, Step(event.rank, f"{verb}: {printable(event.name, MAX_NAME)}")
            continue
        waits = event
        if following is not None and _is_blocking(event, following):
            waits = following
            index += 1
        meeting = meetings.get((operation.rank, operation.seq))
        if event.doing is Doing.FORM and not event.place.file and meeting is not None:
            continue  # the harness's own, before the program began
        yield event.case, _operation_step(event, waits, operation, meeting, files)


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


def _operation_step(event: Event, waits: Event, operation: Operation, meeting: int | None, files: _Files) -> Step:
    """The step of a form, an issue, a wait or a poll. waits: where the rank waited for it, if it did; else `event`."""
    met = meeting is not None
    line = _line(event.place, files)
    match event.doing:
        case Doing.FORM:
            words = f"form the group {list(operation.group)}"
            return Step(event.rank, words, (*line, *_waited(event.missing, met=met)), meeting)
        case Doing.ISSUE if waits is not event or not operation.is_async:
            return Step(event.rank, describe(operation), (*line, *_waited(waits.missing, met=met)), meeting)
        case Doing.ISSUE:
            is_message = operation.name in POINT_TO_POINT
            words = f"i{describe(operation)}" if is_message else f"{describe(operation)}, asynchronous"
            return Step(event.rank, words, (*line, *(() if met else ("never starts",))), meeting)
        case Doing.WAIT:
            remarks = (*line, *_waited(event.missing, met=met))
            return Step(event.rank, f"wait for {_named(operation, files)}", remarks)
        case _:
            return Step(event.rank, f"is complete: {_named(operation, files)}", line)


def _named(operation: Operation, files: _Files) -> str:
    """An operation that has been shown, by its name and line."""
    name = f"i{short(operation)}" if operation.name in POINT_TO_POINT else short(operation)
    return " ".join([name, *(f"({line})" for line in _line(operation.place, files))])


def _line(place: Place, files: _Files) -> tuple[str, ...]:
    if not place.file:
        return ()
    return (f"{files[place.file]} {place.line}" if place.file in files else f"{printable(place.file)}:{place.line}",)


def _waited(missing: Sequence[int], *, met: bool) -> tuple[str, ...]:
    """What a rank waited for. missing: who had not come when it began to wait; of what never met, perhaps nobody."""
    ranks = ", ".join(map(str, missing))
    who = f"rank {ranks}" if len(missing) == 1 else f"ranks {ranks}"
    if met:
        return (f"waited for {who}",) if missing else ()
    return (f"waits for {who}", "never starts") if missing else ("never starts",)
