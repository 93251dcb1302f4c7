"""The conductor without processes: what is valid completes in every interleaving, and what is not is named."""

from __future__ import annotations

import re
from random import Random

from grader.world.conductor import MAX_IDLE_POLLS, Conductor
from grader.world.report import Finding, Report
from tests.harness.simulated import Form, Hold, Issue, Mark, SimulatedWorld, Step, Wait


def reported(programs: list[list[Step]]) -> Report:
    """The report of a world, which must be the same in every order of the ranks that is tried, if it is stuck."""
    reports = []
    for choose in (min, max, Random(1).choice, Random(2).choice):
        world = SimulatedWorld(programs)
        report = world.run(choose)
        assert report is not None, "no rank can be at fault without a report"
        reports.append(report)
    if reports[0].finding in (Finding.DEADLOCK, Finding.LIVELOCK):  # else those that come first are named
        assert len({report.sentence for report in reports}) == 1, [report.sentence for report in reports]
    return reports[0]


def completes(programs: list[list[Step]], *, threads: tuple[int, ...] = ()) -> SimulatedWorld:
    for choose in (max, Random(1).choice, Random(2).choice, min):
        world = SimulatedWorld(programs, threads=threads)
        report = world.run(choose)
        assert report is None, report
        assert all(rank.ended for rank in world.ranks)
    return world


def test_while_a_rank_computes_nothing_is_reported() -> None:
    world = SimulatedWorld([[Issue("0")], [Issue("0")], [Issue("0")]])
    assert world.run(until=lambda: not world.ranks[0].can_speak and not world.ranks[1].can_speak) is None
    for _ in range(3):
        world.conductor.settle()
    assert world.conductor.report is None


def test_ranks_that_return_before_a_collective() -> None:
    report = reported([[Issue("0", line=7)], [Issue("0")], []])
    assert report.sentence == "ranks 0 and 1 wait in all_reduce: rank 2 has returned without calling it"
    assert report.stands[0].place.line == 7
    assert report.stands[-1].doing == "has returned from the program"


def test_both_send_first() -> None:
    programs: list[list[Step]] = [
        [Issue("0", "send", "s", peer=1 - rank), Wait("s"), Issue("0", "recv", "r", peer=1 - rank), Wait("r")]
        for rank in (0, 1)
    ]
    report = reported(programs)
    assert report.sentence == (
        "ranks 0 and 1 wait for each other: rank 0 waits in send to rank 1, rank 1 waits in send to rank 0"
    )
    assert "isend" in report.help


def test_a_circle_of_receives() -> None:
    programs: list[list[Step]] = [
        [Issue("0", "recv", "r", peer=(rank - 1) % 3), Wait("r"), Issue("0", "send", "s", peer=(rank + 1) % 3)]
        for rank in range(3)
    ]
    report = reported(programs)
    assert report.sentence.startswith("ranks 0, 2 and 1 wait in a circle: rank 0 waits in recv from rank 2, ")
    assert report.help == "each waits for the other's message: let one side send first"


def test_messages_meet_by_tag_and_not_by_order() -> None:
    programs: list[list[Step]] = [
        [Issue("0", "send", "a", peer=1, tag=1), Issue("0", "send", "b", peer=1, tag=2), Wait("a"), Wait("b")],
        [Issue("0", "recv", "b", peer=0, tag=2), Wait("b"), Issue("0", "recv", "a", peer=0, tag=1), Wait("a")],
    ]
    completes(programs)


def test_the_other_tag() -> None:
    programs: list[list[Step]] = [
        [Issue("0", "send", "s", peer=1, tag=3), Wait("s")],
        [Issue("0", "recv", "r", peer=0, tag=4), Wait("r")],
    ]
    assert reported(programs).sentence == "rank 0 sends to rank 1 with tag 3, and rank 1 waits for tag 4"


def test_a_message_in_another_group() -> None:
    programs: list[list[Step]] = [
        [Form((0, 1), "1"), Issue("1", "send", "s", peer=1), Wait("s")],
        [Form((0, 1), "1"), Issue("0", "recv", "r", peer=0), Wait("r")],
        [],
    ]
    assert "in the group [0, 1, 2], and its peer uses the group [0, 1]" in reported(programs).sentence.replace(
        "group [0, 1], and its peer uses the group [0, 1, 2]", "group [0, 1, 2], and its peer uses the group [0, 1]"
    )


def test_groups_of_the_same_ranks_are_told_apart() -> None:
    forms: list[Step] = [Form((0, 1), "1"), Form((0, 1), "2")]
    completes([[*forms, Issue("1"), Issue("2", shape=(9,))] for _ in range(2)])
    completes(
        [
            [*forms, Issue("1", key="a"), Issue("2", key="b", shape=(9,)), Wait("a"), Wait("b")],
            [*forms, Issue("2", key="b", shape=(9,)), Issue("1", key="a"), Wait("b"), Wait("a")],
        ]
    )
    report = reported([[*forms, Issue("1"), Issue("2")], [*forms, Issue("2"), Issue("1")]])
    assert report.finding is Finding.DEADLOCK
    assert "rank 0 waits in all_reduce in the group [0, 1]" in report.sentence
    assert "two groups of the same ranks are not one" in report.help


def test_crossing_groups() -> None:
    forms: list[Step] = [Form((0, 1), "1"), Form((1, 2), "2")]
    programs: list[list[Step]] = [
        [forms[0], Issue("1")],
        [*forms, Issue("2"), Issue("1"), Issue("0")],
        [forms[1], Issue("0"), Issue("2")],
    ]
    assert reported(programs).sentence == (
        "ranks 1 and 2 wait for each other: rank 1 waits in all_reduce in the group [1, 2], "
        "rank 2 waits in all_reduce in the group [0, 1, 2]"
    )


def test_groups_that_only_members_form() -> None:
    report = reported([[Form((0, 1), "1")], [Form((0, 1), "1")], [Form((2, 3), "1")], [Form((2, 3), "1")]])
    assert report.finding is Finding.MISMATCH
    assert re.fullmatch(
        r"ranks [01] and [23] disagree on the members of a new group: \[0, 1\] on rank [01], \[2, 3\] on rank [23]",
        report.sentence,
    )
    assert report.stands[0].doing == "forms the group [0, 1]"


def test_a_group_that_one_rank_does_not_form() -> None:
    report = reported([[Form((0, 1), "1")], []])
    assert report.sentence == "rank 0 waits for the group [0, 1] to be formed: rank 1 has returned without forming it"
    assert "every group" in report.help


def test_a_group_of_some_that_one_rank_formed_another_before() -> None:
    report = reported([[Form((0,), "1"), Form((0, 1), "2")], [Form((0, 1), "1")], []])
    assert report.finding is Finding.MISMATCH or "one of them has formed more groups" in report.sentence


def test_torch_counts_its_groups_again_after_a_restart() -> None:
    everybody = (0, 1, 2, 3)
    first: list[list[Step]] = [[Form((0, 1), "1")], [Form((0, 1), "1")], [], []]
    second: list[list[Step]] = [[], [Form((1, 2), "1")], [Form((1, 2), "1")], []]
    completes([[*a, Form(everybody, "0"), *b] for a, b in zip(first, second, strict=True)])


def test_polls_are_answered_and_do_not_starve_each_other() -> None:
    """Rank 1 asks some times in vain before it does its part; the other, which asks too, must not take all answers."""
    programs: list[list[Step]] = [
        [Issue("0", key="a"), Wait("a", polls=True)],
        [Issue("0", "recv", "r", peer=2), Wait("r", polls=True), Issue("0", key="a"), Wait("a")],
        [Mark("late"), Issue("0", "send", "s", peer=1), Wait("s"), Issue("0", key="a"), Wait("a", polls=True)],
    ]
    completes(programs)


def test_a_rank_that_gives_up_asking_can_go_on() -> None:
    conductor = Conductor(2)
    world = SimulatedWorld([[Issue("0", key="a")], [Issue("0", key="a")]])
    conductor = world.conductor
    world.run(until=lambda: all(len(rank.steps) == 1 for rank in world.ranks))
    world.ranks[0].speak(conductor)  # rank 0 has issued; rank 1 has not
    for rank in (0,):
        conductor.heard(rank, {"event": "poll", "s": 0, "at": ["mine.py", 3, "run", "submission"]})
    conductor.settle()
    assert conductor.outbox[0] == [], "rank 1 computes: the answer waits for it"
    conductor.heard(
        1,
        {
            "event": "issue",
            "s": 0,
            "g": 0,
            "op": "all_reduce",
            "reads": [["float32", [4]]],
            "writes": [["float32", [4]]],
            "reduce_op": "SUM",
            "at": ["mine.py", 3, "run", "submission"],
        },
    )
    conductor.settle()
    assert {"do": "answer", "s": 0, "complete": True} in conductor.outbox[0]


def test_two_ranks_that_ask_get_turns() -> None:
    conductor = Conductor(2)
    at = ["mine.py", 3, "run", "submission"]
    for rank in (0, 1):
        conductor.heard(rank, {"event": "form", "g": 0, "name": "0", "ranks": [0, 1], "at": at})
    for rank in (0, 1):
        receive = {"event": "issue", "s": 0, "g": 0, "op": "recv", "writes": [["float32", [4]]], "peer": 1 - rank}
        conductor.heard(rank, {**receive, "tag": 0, "async": True, "at": at})
    conductor.outbox.clear()
    answers = []
    for _ in range(5):
        for rank in (0, 1):
            if rank not in [one for one, state in enumerate(conductor._ranks) if state.waiting]:
                conductor.heard(rank, {"event": "poll", "s": 0, "at": at})
        conductor.settle()
        answers += [rank for rank, orders in conductor.outbox.items() for _ in orders]
        conductor.outbox.clear()
    assert answers == [0, 1, 0, 1, 0]


def test_asking_for_ever_is_a_livelock() -> None:
    programs: list[list[Step]] = [
        [Issue("0", "recv", "r", peer=1), Wait("r", polls=True)],
        [Issue("0", "recv", "r", peer=0), Wait("r")],
    ]
    report = reported(programs)
    assert report.finding is Finding.LIVELOCK
    assert "rank 0 asks again and again for recv from rank 1" in report.sentence
    world = SimulatedWorld(programs)
    world.run()
    assert world.ranks[0].polls == MAX_IDLE_POLLS


def test_a_receive_from_any_rank_takes_the_lowest_sender_once_nobody_can_go_on() -> None:
    sends: list[list[Step]] = [[Issue("0", "send", "s", peer=2, shape=(4,)), Wait("s")] for _ in range(2)]
    receives: list[Step] = []
    for key in ("a", "b"):
        receives += [Issue("0", "recv", key, peer=None), Wait(key)]
    for seed in range(8):
        world = SimulatedWorld([*sends, receives])
        assert world.run(Random(seed).choice) is None
        assert [operations[0].rank for operations in world.conductor.trace.met] == [0, 1]


def test_a_receive_from_any_rank_that_nobody_sends_to() -> None:
    report = reported([[], [Issue("0", "recv", "r", peer=None), Wait("r")]])
    assert report.sentence == "rank 1 waits for a message from any rank, and none sends one"


def test_a_rank_that_is_held_until_another_comes_so_far() -> None:
    completes([[Mark("computed"), Issue("0")], [Hold(0, "computed"), Issue("0")]])
    completes([[Mark("computed"), Issue("0")], [Hold(0, "computed"), Issue("0")]], threads=(0, 1))
    report = reported([[Issue("0"), Mark("computed")], [Hold(0, "computed"), Issue("0")]])
    assert report.sentence == (
        "rank 0 waits in all_reduce before it has computed; rank 1 has not come so far, and nothing may wait for it yet"
    )
    report = reported([[], [Hold(0, "computed")]])
    assert report.sentence == "rank 0 has returned and never computed; rank 1 is held until then"


def test_a_handle_that_is_left() -> None:
    report = reported([[Issue("0", "send", "s", peer=1)], [Issue("0", "recv", "r", peer=0), Wait("r")]])
    assert (report.finding, report.sentence) == (
        Finding.UNWAITED,
        "rank 0 never waits for the handle of its isend to rank 1",
    )


def test_a_rank_with_threads_is_not_called_stuck() -> None:
    world = SimulatedWorld([[Issue("0", key="a"), Wait("a")], [Mark("late")]], threads=(0,))
    assert world.run() is None
