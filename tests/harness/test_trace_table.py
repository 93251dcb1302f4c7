"""The table of a trace: what meets stands in one row, each rank in its order, and what never started is said."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from grader.checking.context import Ran
from grader.checking.trace_order import Step, rows
from grader.checking.trace_record import trace_record
from grader.checking.trace_table import trace_table
from grader.world.failure import Failure, Kind, RankFailure
from grader.world.operation import Operation, Place, Spec
from grader.world.trace import Doing, Event, Trace

VECTOR = (Spec("float32", (4,)),)
FAILURE = Failure(RankFailure(0, Kind.REPORTED, "program", 0), False, (), 0.1)


def at(line: int, file: str = "ring.py") -> Place:
    return Place(file, line, "f", "submission")


def send(rank: int, seq: int, peer: int, line: int, size: int = 2) -> Operation:
    group = tuple(range(size))
    return Operation(rank, seq, "send", group, reads=VECTOR, peer=peer, is_async=True, place=at(line))


def recv(rank: int, seq: int, peer: int | None, line: int, size: int = 2) -> Operation:
    group = tuple(range(size))
    return Operation(rank, seq, "recv", group, writes=VECTOR, peer=peer, is_async=True, place=at(line))


def all_reduce(rank: int, seq: int, line: int, *, size: int = 2, is_async: bool = False) -> Operation:
    group = tuple(range(size))
    return Operation(rank, seq, "all_reduce", group, reads=VECTOR, is_async=is_async, place=at(line))


def issue(operation: Operation, *missing: int, case: int = 0) -> Event:
    return Event(operation.rank, Doing.ISSUE, case, operation, missing=missing, place=operation.place)


def wait(operation: Operation, line: int, *missing: int, case: int = 0) -> Event:
    return Event(operation.rank, Doing.WAIT, case, operation, missing=missing, place=at(line))


def form(rank: int, seq: int, *missing: int, line: int = 0) -> Event:
    place = at(line) if line else Place()
    return Event(
        rank, Doing.FORM, 0, Operation(rank, seq, "new_group", (0, 1), place=place), missing=missing, place=place
    )


def shown(trace: Trace, size: int = 2, *, width: int = 80, failed: bool = False, cases: tuple[str, ...] = ()) -> str:
    ran = Ran(size, "programs.ring", cases, trace, FAILURE if failed else None)
    return "\n".join(trace_table([ran], own_file="ring.py", width=width)) + "\n"


# The order of rows


def steps(*meetings: int | None, rank: int) -> list[Step]:
    return [Step(rank, f"{rank}.{index}", meeting=meeting) for index, meeting in enumerate(meetings)]


def words(*columns: list[Step]) -> list[dict[int, str]]:
    return [{rank: step.words for rank, step in row.items()} for row in rows(columns)]


def test_what_meets_stands_in_one_row() -> None:
    assert words(steps(None, None, 1, rank=0), steps(1, None, rank=1)) == [
        {0: "0.0"},
        {0: "0.1"},
        {0: "0.2", 1: "1.0"},
        {1: "1.1"},
    ]


def test_orders_that_cross_are_kept_and_the_rest_still_meets() -> None:
    """A ring: each rank sends first, then receives from the other side; then all meet."""
    ring = words(steps(0, 2, 9, rank=0), steps(1, 0, 9, rank=1), steps(2, 1, 9, rank=2))
    assert ring == [{0: "0.0", 1: "1.0", 2: "2.0"}, {0: "0.1", 1: "1.1", 2: "2.1"}, {0: "0.2", 1: "1.2", 2: "2.2"}]


def test_who_waits_for_a_crossing_pair_stands_with_those_it_meets() -> None:
    assert words(steps(0, 1, 2, rank=0), steps(1, 0, rank=1), steps(2, rank=2)) == [
        {0: "0.0", 1: "1.0"},
        {0: "0.1", 1: "1.1"},
        {0: "0.2", 2: "2.0"},
    ]


def test_a_message_to_itself_has_no_partner() -> None:
    assert words(steps(0, 0, rank=0)) == [{0: "0.0"}, {0: "0.1"}]


# The table


def test_a_deadlock() -> None:
    first, second = send(0, 0, 1, 41), send(1, 0, 0, 41)
    trace = Trace([form(1, -1, 0), form(0, -2), issue(first), wait(first, 41, 1), issue(second), wait(second, 41, 0)])
    assert shown(trace, failed=True) == (
        "programs.ring in a world of 2, which failed\n"
        "rank 0                                   rank 1\n"
        "------                                   ------\n"
        "send to rank 1 of float32 (4,)           send to rank 0 of float32 (4,)\n"
        "  line 41, waits for rank 1, never         line 41, waits for rank 0, never\n"
        "  starts                                   starts\n"
    )


def test_asynchronous_operations_waits_marks_and_cases() -> None:
    sent, got = send(0, 0, 1, 10), recv(1, 0, 0, 20)
    ours, theirs = all_reduce(0, 1, 30, is_async=True), all_reduce(1, 1, 30)
    events = [
        issue(sent, 1),
        Event(0, Doing.MARK, 0, name="computed"),
        wait(sent, 12, 1),
        Event(1, Doing.HOLD, 0, name="computed"),
        issue(got),
        wait(got, 20),
        issue(ours, 1, case=1),
        issue(theirs, case=1),
        Event(0, Doing.POLL, 1, ours, place=at(31)),
    ]
    trace = Trace(events, [(sent, replace(got)), (ours, theirs)])
    assert shown(trace, cases=("small", "large")) == (
        "programs.ring in a world of 2\n"
        "rank 0                                   rank 1\n"
        "------                                   ------\n"
        "-- case 1 of 2: small ----------------------------------------------------------\n"
        "                                         held until another rank has marked:\n"
        "                                           computed\n"
        "isend to rank 1 of float32 (4,)          recv from rank 0 of float32 (4,)\n"
        "  line 10                                  line 20\n"
        "mark: computed\n"
        "wait for isend to rank 1 (line 10)\n"
        "  line 12, waited for rank 1\n"
        "-- case 2 of 2: large ----------------------------------------------------------\n"
        "all_reduce of float32 (4,),              all_reduce of float32 (4,)\n"
        "  asynchronous                             line 30\n"
        "  line 30\n"
        "is complete: all_reduce (line 30)\n"
        "  line 31\n"
    )


def test_a_group_that_is_never_formed_is_shown_and_the_harness_own_is_not() -> None:
    assert "no rank asked anything" in shown(Trace([form(1, -1, 0), form(0, -2)]))
    stuck = shown(Trace([form(0, -1, 1), form(1, -2), form(1, -3, 0, line=7)]), failed=True)
    assert stuck.splitlines()[3:] == [
        " " * 41 + "form the group [0, 1]",
        " " * 41 + "  line 7, waits for rank 0, never",
        " " * 41 + "  starts",
    ]


def test_many_ranks_get_a_row_for_each_step() -> None:
    size = 5
    met = tuple(all_reduce(rank, 0, 8, size=size) for rank in range(size))
    table = shown(Trace([issue(one) for one in met], [met]), size)
    assert table.splitlines()[1:] == [f"rank {rank}   all_reduce of float32 (4,), line 8" for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("width", [30, 60, 80, 160])
def test_no_line_is_wider_than_asked(size: int, width: int) -> None:
    met = tuple(all_reduce(rank, 0, 123456, size=size) for rank in range(size))
    table = shown(Trace([issue(one) for one in met], [met]), size, width=width, cases=("a case with many words " * 9,))
    assert max(map(len, table.splitlines())) <= width
    assert table.count("line 123456") == size


def test_the_line_of_a_program_is_called_so() -> None:
    operation = replace(all_reduce(0, 0, 1, size=1), place=at(9, "programs/programs.py"))
    assert "  program line 9\n" in shown(Trace([issue(operation)], [(operation,)]), 1)


def test_text_of_a_submission_is_made_harmless() -> None:
    place = Place("\x1b[2J/evil.py", 3, "f", "submission")
    operation = replace(all_reduce(0, 0, 1, size=1), place=place)
    trace = Trace([replace(issue(operation), place=place), Event(0, Doing.MARK, 0, name="\x1b[31m")], [(operation,)])
    table = shown(trace, 1)
    assert "\x1b" not in table
    assert "\\x1b[2J/evil.py:3" in table


def test_what_is_too_long_loses_its_middle_and_keeps_the_end_of_the_last_world() -> None:
    def world(steps: int) -> Ran:
        met = [tuple(all_reduce(rank, seq, seq) for rank in range(2)) for seq in range(steps)]
        return Ran(2, "programs.ring", (), Trace([issue(one) for pair in met for one in pair], met), None)

    whole = trace_table([world(50), world(300)], own_file="ring.py")
    short = trace_table([world(50), world(300)], own_file="ring.py", max_lines=90)
    assert len(whole) == 1 + 2 * 3 + 2 * 350
    assert len(short) == 1 + 2 * 3 + 90 + 2
    assert short[-1] == whole[-1]
    assert "  line 0" in short[4]
    assert short.count("[70 lines are left out here]") == 1
    assert short.count("[540 lines are left out here]") == 1
    alone = trace_table([world(2)], own_file="ring.py", max_lines=90)
    assert "left out" not in "".join(alone)
    assert trace_table([], own_file="ring.py", max_lines=90) == []


def test_the_record_is_json() -> None:
    sent, got = send(0, 0, 1, 10), recv(1, 0, None, 20)
    ran = Ran(2, "programs.ring", ["one"], Trace([issue(sent, 1), issue(got)], [(sent, got.with_peer(0))]), None)
    record = json.loads(json.dumps(trace_record(ran)))
    assert record["met"] == [[[0, 0], [1, 0]]]
    assert record["events"][0] == {
        "rank": 0,
        "doing": "issue",
        "case": 0,
        "name": "",
        "missing": [1],
        "place": {"file": "ring.py", "line": 10, "function": "f", "asker": "submission"},
        "operation": {
            "seq": 0,
            "name": "send",
            "group": [0, 1],
            "group_id": 0,
            "reads": [{"dtype": "float32", "shape": [4]}],
            "writes": [],
            "reduce_op": "",
            "root": None,
            "peer": 1,
            "tag": 0,
            "async": True,
        },
    }
