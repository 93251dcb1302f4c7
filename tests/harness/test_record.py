"""Which rank is named as the cause, from what was heard in which order. No processes."""

from __future__ import annotations

from typing import Any

import pytest

from grader.world.failure import Failure, Frame, Kind, RankFailure, printable
from grader.world.record import MAX_OUTPUT, Record
from grader.world.stacks import parse_stacks
from grader.world.wire import Message


def error(kind: str, message: str, *, file: str = "collectives.py") -> Message:
    frames = [{"file": file, "line": 4, "function": "reduce"}]
    return Message(
        {"event": "failed", "phase": "program", "error": {"type": kind, "message": message, "frames": frames}}, b""
    )


def record(size: int = 3) -> Record:
    heard = Record(size, "programs/p.py")
    for rank in range(size):
        heard.heard(rank, Message({"event": "ready"}, b""))
    return heard


LOST = error("RuntimeError", "Connection closed by peer [127.0.0.1]:6", file="torch/distributed/c10d.py")
WAITED = error("RuntimeError", "Timed out waiting 1800ms for recv", file="torch/distributed/c10d.py")


def test_the_first_error_heard_of_is_the_cause() -> None:
    heard = record()
    heard.heard(2, error("ValueError", "mine"))
    heard.heard(0, error("KeyError", "later"))
    failure = heard.failure(1.0)
    assert (failure.cause.rank, failure.stuck) == (2, False)
    assert [one.rank for one in failure.others] == [0, 1]


def test_a_death_is_the_cause_of_lost_connections_heard_of_before_it() -> None:
    heard = record()
    heard.heard(0, LOST)
    heard.ended(1, 7, 0)
    failure = heard.failure(1.0)
    assert failure.cause.headline() == "rank 1 left the interpreter with exit code 7"


def test_an_error_is_the_cause_of_a_timeout_heard_of_before_it() -> None:
    heard = record()
    heard.heard(0, WAITED)
    heard.heard(1, error("ValueError", "late"))
    assert heard.failure(1.0).cause.rank == 1


def test_ranks_that_waited_too_long_were_stuck() -> None:
    heard = record(2)
    heard.heard(1, WAITED)
    failure = heard.failure(12.0)
    assert failure.stuck
    assert [(one.rank, one.kind) for one in (failure.cause, *failure.others)] == [
        (0, Kind.UNFINISHED),
        (1, Kind.RAISED),
    ]


def test_peers_that_lose_a_connection_to_one_that_waited_too_long_were_stuck_with_it() -> None:
    heard = record(3)
    heard.heard(1, WAITED)
    heard.heard(2, LOST)
    failure = heard.failure(12.0)
    assert failure.stuck
    assert {failure.cause.rank, *(one.rank for one in failure.others)} == {0, 1, 2}


def test_nobody_failed_in_time() -> None:
    heard = record(2)
    heard.heard(0, Message({"event": "done"}, b""))
    failure = heard.failure(20.0)
    assert failure.stuck
    assert failure.cause.rank == 1
    assert failure.others == ()


def test_only_a_lost_connection_is_still_a_cause() -> None:
    heard = record(2)
    heard.heard(0, LOST)
    failure = heard.failure(1.0)
    assert (failure.cause.rank, failure.stuck) == (0, False)


def test_a_rank_that_ends_after_done_is_no_failure() -> None:
    heard = record(1)
    heard.heard(0, Message({"event": "done"}, b""))
    heard.ended(0, 0, 0)
    assert heard.all_done


@pytest.mark.parametrize("head", [{}, {"event": "go"}, {"event": ["ready"]}, {"event": "value"}, {"event": "done"}])
def test_messages_out_of_turn_are_refused(head: dict[str, Any]) -> None:
    heard = Record(1, "programs/p.py")
    heard.heard(0, Message(head, b""))
    assert heard.failure(0.1).cause.kind is Kind.REFUSED


def test_output_is_cut_and_counted() -> None:
    heard = record(1)
    heard.printed(0, b"a" * (MAX_OUTPUT - 2))
    heard.printed(0, b"\xc3\xa9\x1b[31m")
    assert heard.outputs()[0].endswith("aé\n(… 5 more bytes)")


def test_printable_keeps_text_and_shows_control_characters() -> None:
    assert printable("é\t中\n\x1b[2J\r\x00\u202e\x9b\ud800") == "é\t中\n\\x1b[2J\\x0d\\x00\\u202e\\x9b\\ud800"
    assert printable("x" * 50, 10) == "x" * 10 + " …"


def test_the_text_of_a_failure_shows_the_lines_of_the_submission() -> None:
    cause = RankFailure(
        1, Kind.RAISED, "program", 0, "ValueError", "no", frames=(Frame("a.py", 2, "f"), Frame("torch.py", 9, "g"))
    )
    failure = Failure(cause, False, (), 0.5, (), {"a.py": ["def f():", "    g()"]})
    assert failure.text() == "rank 1 raised ValueError: no\n  a.py:2 in f: g()"


DUMP = """Thread 0x00007f0 (most recent call first):
  File "threading.py", line 320 in wait

Current thread 0x00007f1 (most recent call first):
  File "/site/torch/distributed/c10d.py", line 2753 in send
  File "collectives.py", line 41 in all_to_all
  File "programs/p.py", line 7 in all_to_all
  File "grader/world/rank.py", line 84 in _work
  File "grader/world/rank.py", line 47 in run_rank
"""


def test_a_stack_dump_is_read_with_the_innermost_frame_last() -> None:
    stacks = parse_stacks(DUMP)
    assert [len(stack) for stack in stacks] == [1, 5]
    heard = record(1)
    heard.dumped(0, DUMP.encode())
    frames = heard.failure(20.0).cause.frames
    assert [frame.function for frame in frames] == ["all_to_all", "all_to_all", "send"]
    assert frames[1] == Frame("collectives.py", 41, "all_to_all")
