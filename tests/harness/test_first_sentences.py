"""The first sentence and the help for what students do: pure, on worlds that did not run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.checking.explain import explain
from grader.checking.failed import CheckFailed
from grader.checking.suspects import suspects
from grader.world import Failure, Frame, Kind, RankFailure, Submitted, Trace
from grader.world.mismatch import mismatch
from grader.world.operation import Operation, Place, Spec
from grader.world.report import Finding, Report, Stand
from grader.world.waiting import Blocked, deadlock

MINE = "collectives.py"
LINE = Place(MINE, 3, "gather", "submission")
SOURCES = {MINE: ["def gather():", "    for r in range(2):", "        call(r)", "    return whole"]}
PAIR = (0, 1)
VECTOR = (Spec("float32", (4,)),)


def receive(rank: int, peer: int, place: Place = LINE) -> Operation:
    return Operation(rank, 0, "recv", PAIR, writes=VECTOR, peer=peer, is_async=True, place=place)


def send(rank: int, peer: int, place: Place = LINE) -> Operation:
    return Operation(rank, 0, "send", PAIR, reads=VECTOR, peer=peer, is_async=True, place=place)


def collective(rank: int, name: str = "all_reduce", *, asker: str = "submission", case: int = 0) -> Operation:
    return Operation(rank, 0, name, PAIR, reads=VECTOR, place=LINE._replace(asker=asker), case=case)


def blocked(operation: Operation, *missing: int, case: int = 0, line: int = 3) -> Blocked:
    return Blocked(operation.rank, LINE._replace(line=line), missing, operation, case=case)


def stuck(*waiting: Blocked) -> Report:
    return deadlock({one.rank: one for one in waiting}, [], [])


def explained(cause: RankFailure, *others: RankFailure, **facts: object) -> CheckFailed:
    failure = Failure(cause, others=others, seconds=20.0, sources=SOURCES, **{"stuck": False, **facts})  # type: ignore[arg-type]
    return explain(failure, world_size=1 + len(others), cases=["root 0", "root 1", "root 2"])


def raised(error: str, message: str, frames: tuple[Frame, ...] = (Frame(MINE, 3, "gather"),)) -> RankFailure:
    return RankFailure(0, Kind.RAISED, "program", 0, error_type=error, message=message, frames=frames)


# Who waits for whom


@pytest.mark.parametrize(("case", "call"), [(1, "the next call"), (3, "a later call")])
def test_a_rank_that_has_gone_on_is_named_and_not_taken_for_the_other_end_of_a_circle(case: int, call: str) -> None:
    report = stuck(blocked(receive(0, 1), 1, case=case), blocked(receive(1, 0), 0))
    assert report.sentence == (
        f"rank 1 waits in recv from rank 0, and rank 0 has gone on to {call} without it: "
        "there it waits in recv from rank 1"
    )
    assert "leave a loop too early" in report.help


def test_a_rank_alone_is_not_told_of_another_side() -> None:
    report = stuck(blocked(receive(0, 0), 0))
    assert report.sentence.startswith("rank 0 waits for itself")
    assert report.help.startswith("a rank sends nothing to itself")


def test_who_has_isend_already_is_not_told_to_use_it() -> None:
    at_once = stuck(blocked(send(0, 1), 1), blocked(send(1, 0), 0))
    later = stuck(blocked(send(0, 1), 1, line=4), blocked(send(1, 0), 0, line=4))
    assert at_once.sentence == later.sentence
    assert "use isend" in at_once.help
    assert "use isend" not in later.help
    assert "post the receives first" in later.help


def test_a_collective_and_a_message_that_wait_for_each_other() -> None:
    report = stuck(blocked(collective(0, "barrier"), 1), blocked(send(1, 0), 0))
    assert report.sentence.endswith("rank 0 waits in barrier, rank 1 waits in send to rank 0")
    assert report.help.startswith("a collective ends when every rank of its group has called it")


# By the names that a student has written


def test_what_given_sends_has_the_name_of_the_function_called() -> None:
    told = stuck(blocked(collective(0, "all_gather_into_tensor", asker="given"), 1), blocked(send(1, 0), 0)).sentence
    assert "rank 0 waits in exchange_sizes of grader.given" in told
    assert "all_gather_into_tensor" not in told
    report = mismatch(collective(0, "broadcast", asker="given"), collective(1))
    assert report is not None
    assert report.sentence.endswith("broadcast_spec of grader.given on rank 0, all_reduce on rank 1")


def test_the_ends_of_a_message_are_told_by_rank() -> None:
    report = mismatch(send(0, 1), replace(receive(1, 0), writes=(Spec("int32", (2, 2)),)))
    assert report is not None
    assert report.sentence.endswith("the dtype of a message: rank 0 sends float32 (4,), rank 1 receives int32 (2, 2)")
    report = mismatch(send(0, 1), replace(receive(1, 0), writes=(Spec("float32", (2, 3)),)))
    assert report is not None
    assert report.sentence.endswith("rank 0 sends float32 (4,), rank 1 receives 6 elements, float32 (2, 3)")


def met(first: Stand, second: Stand) -> CheckFailed:
    report = Report(Finding.MISMATCH, "ranks 0 and 1 disagree on the operation", (first, second), "the usual help")
    cause = RankFailure(0, Kind.REPORTED, "program", 0, message=report.sentence)
    return explained(cause, RankFailure(1, Kind.UNFINISHED, "program", 0), report=report)


def test_what_the_check_itself_asks_for_is_no_operation_of_the_submission() -> None:
    outside = Place("programs/collectives.py", 9, "call", "program")
    why = met(Stand(0, "calls broadcast", LINE, 0), Stand(1, "calls all_reduce", outside, 0)).explanation
    assert why.rationale.startswith("rank 0 calls broadcast, and rank 1 has returned without it (")
    assert "leave a loop too early" in why.help
    inside = LINE._replace(asker="program")  # the barrier that the check passes to a function of the submission
    why = met(Stand(0, "calls broadcast", LINE, 0), Stand(1, "calls barrier", inside, 0)).explanation
    assert why.rationale.startswith("ranks 0 and 1 disagree on the operation (")
    assert why.help == "the usual help"


def test_ranks_in_two_calls_are_not_told_to_agree() -> None:
    why = met(Stand(0, "calls recv from rank 1", LINE, 0), Stand(1, "calls send to rank 0", LINE, 1)).explanation
    assert "rank 1 has gone on to the next call without it" in why.rationale
    assert "leave a loop too early" in why.help


# Loops that do not end, and errors


def test_a_rank_in_a_loop_is_told_from_those_that_wait_for_it() -> None:
    loops = RankFailure(0, Kind.UNFINISHED, "program", 0, frames=(Frame(MINE, 2, "gather"),))
    waits = RankFailure(1, Kind.UNFINISHED, "program", 0, frames=(Frame(MINE, 3, "gather"),))
    stands = (Stand(1, "waits in send to rank 0", LINE),)
    failed = explained(loops, waits, stuck=True, stands=stands)
    assert failed.explanation.rationale.startswith("after 20 s rank 0 still ran, in no operation, and rank 1 waits (")
    assert failed.explanation.help.startswith("no operation is waited for by rank 0: look at the line shown")
    both = explained(loops, waits, stuck=True, stands=(*stands, Stand(0, "waits in recv from any rank", LINE)))
    assert both.explanation.rationale.startswith("ranks 0, 1 had not finished after 20 s (")


@pytest.mark.parametrize(
    ("error", "message", "words"),
    [
        ("ValueError", "Default process group has not been initialized, please make sure to call", "cleanup()"),
        ("AssertionError", "Process group cannot be None", "cleanup()"),
        ("ValueError", "destination rank should not be the same as the rank of the current process.", "own rank"),
        ("AttributeError", "'NoneType' object has no attribute 'wait'", "async_op=True"),
    ],
)
def test_errors_of_torch_that_do_not_say_what_to_do(error: str, message: str, words: str) -> None:
    assert words in explained(raised(error, message)).explanation.help


def test_what_where_says_is_not_said_again_and_no_line_of_the_harness_is_shown() -> None:
    assert explained(raised("NameError", "name 'totl' is not defined")).output == ""
    frames = (
        Frame("programs/collectives.py", 33, "call"),
        Frame(MINE, 3, "gather"),
        Frame("/home/ada/.venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 9, "recv"),
        Frame("/home/ada/assignment/grader/world/traced/work.py", 68, "wait"),
    )
    other = RankFailure(1, Kind.UNFINISHED, "program", 0, frames=frames)
    output = explained(raised("NameError", "name 'totl' is not defined"), other).output
    assert output.splitlines() == [
        "rank 0 raised NameError: name 'totl' is not defined",
        f"  {MINE}:3 in gather: call(r)",
        "rank 1 had not finished",
        "  programs/collectives.py:33 in call",
        f"  {MINE}:3 in gather: call(r)",
    ]


# Wrong values


def test_a_collective_that_met_that_of_a_later_call() -> None:
    mine = Submitted("collectives", "\n".join(SOURCES[MINE]).encode(), MINE)
    apart = Trace(met=[(collective(0), collective(1, case=1))])
    assert suspects(apart, mine, read_too_early=False) == [
        f"all_reduce of rank 0 at {MINE}:3: call(r)\n"
        f"  met that of rank 1 in a later call (rank 1 has left one out) at {MINE}:3: call(r)"
    ]
    assert suspects(Trace(met=[(collective(0), collective(1))]), mine, read_too_early=False) == []
