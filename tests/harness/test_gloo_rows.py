"""Each thing that gloo does silently wrong, with an abort or by a timeout: the student's message names ranks, operation
and line. The worlds have no deadline: nothing here waits for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from grader.checking.explain import explain
from grader.checking.suspects import suspects
from grader.checking.verdict import Status
from grader.world import Failure, Launcher, Returned, Submitted, World
from tests.harness import programs_gloo_mistakes
from tests.harness.programs_mistakes import call
from tests.harness.traced import failed, plain, returned, same

SOURCE = Path(programs_gloo_mistakes.__file__).read_bytes()
MISTAKES = Submitted("data_parallel", SOURCE, "data_parallel.py")


def run(function: str, size: int, launcher: Launcher) -> Returned | Failure:
    world = World(size, launcher=launcher, submission=MISTAKES, deadline=None)
    return world.run(call, function=function)


def lines_of(function: str) -> list[int]:
    """The lines of a function that end in "here"."""
    lines = SOURCE.decode().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"def {function}("))
    ends = (number for number in range(begin + 1, len(lines)) if lines[number].startswith("def "))
    end = next(ends, len(lines))
    return [number + 1 for number in range(begin, end) if lines[number].endswith("# here")]


@dataclass(frozen=True)
class Row:
    """A mistake: what the message says, and, in their order, the ranks shown, each with a line that ends in "here"."""

    function: str
    rationale: str  # a regular expression
    where: tuple[tuple[int, int], ...]  # rank, and which of the lines
    help: str = ""
    size: int = 2

    def __str__(self) -> str:
        return self.function


ROWS = [
    Row(
        "shape",
        r"ranks 0 and 1 disagree on the shape of all_reduce: \(4,\) on rank 0, \(1000,\) on rank 1",
        ((0, 0), (1, 0)),
    ),
    Row("shape_of_a_broadcast", r"the shape of broadcast: \(8,\) on rank 0, \(2, 3\) on rank 1", ((0, 0), (1, 1))),
    Row("dtype", r"the dtype of all_reduce: float32 on rank 0, float16 on rank 1", ((0, 0), (1, 0)), "convert"),
    Row("operation", r"the operation: all_reduce on rank 0, broadcast on rank 1", ((0, 0), (1, 1)), "same order"),
    Row("reduction", r"the reduction of all_reduce: SUM on rank 0, MAX on rank 1", ((0, 0), (1, 0)), "same op"),
    Row("root", r"the root of broadcast: src=0 on rank 0, src=1 on rank 1", ((0, 0), (1, 0)), "same number"),
    Row(
        "missing_rank",
        r"ranks 0 and 1 wait in all_reduce: rank 2 has returned without calling it",
        ((0, 0), (1, 0)),
        "every rank of the group must call",
        size=3,
    ),
    Row("missing_rank_of_a_barrier", r"rank 1 waits in barrier: rank 0 has returned without calling it", ((1, 0),)),
    Row("one_more_iteration", r"rank 0 waits in all_reduce: rank 1 has returned without calling it", ((0, 0),)),
    Row("unequal_all_gather", r"the shape of all_gather: \(2,\) on rank 0, \(3,\) on rank 1", ((0, 0), (1, 0))),
    Row("all_gather_with_other_room", r"all_gather gives float32 \(2,\) and has room for float32 \(3,\)", ((-1, 0),)),
    Row("unequal_gather", r"a piece of gather: float32 \(2,\) for rank 1 on rank 0, float32 \(3,\)", ((0, 0), (1, 0))),
    Row(
        "unequal_scatter", r"a piece of scatter: float32 \(3,\) for rank 1 on rank 0, float32 \(2,\)", ((0, 0), (1, 0))
    ),
    Row(
        "unequal_exchange",
        r"a piece of all_to_all_single: .*float32 \(3,\) for rank 0 on rank 1",
        ((0, 0), (1, 0)),
        "sizes",
    ),
    Row("strided", r"rank [01] raised RuntimeError: broadcast got a tensor that is not contiguous", ((-1, 0),)),
    Row("strided_reduce", r"rank [01] raised RuntimeError: all_reduce got a tensor that is not contiguous", ((-1, 0),)),
    Row("mixed_layouts", r"rank 1 raised RuntimeError: all_reduce got a tensor that is not contiguous", ((1, 0),)),
    Row(
        "receives_more",
        r"the length of a message: rank 0 sends float32 \(4,\), rank 1 receives float32 \(8,\)",
        ((0, 0), (1, 1)),
    ),
    Row(
        "receives_less",
        r"the length of a message: rank 0 sends float32 \(4,\), rank 1 receives float32 \(2,\)",
        ((0, 0), (1, 1)),
    ),
    Row(
        "receives_another_dtype",
        r"the dtype of a message: rank 0 sends float32 .*, rank 1 receives int32 ",
        ((0, 0), (1, 1)),
    ),
    Row(
        "both_send",
        r"ranks 0 and 1 wait for each other: rank 0 waits in send to rank 1, rank 1 waits in send to rank 0",
        ((0, 0), (1, 0)),
        "isend",
    ),
    Row(
        "both_receive",
        r"rank 0 waits in recv from rank 1, rank 1 waits in recv from rank 0",
        ((0, 0), (1, 0)),
        "send first",
    ),
    Row("another_tag", r"rank 0 sends to rank 1 with tag 7, and rank 1 waits for tag 8", ((0, 0), (1, 1))),
    Row("never_sent", r"rank 1 waits for a message that rank 0 never sends: that rank has returned", ((1, 0),)),
    Row("never_sent_by_anybody", r"rank 1 waits for a message from any rank, and none sends one", ((1, 0),)),
    Row("dropped_isend", r"rank 0 never waits for the handle of its isend to rank 1", ((0, 0),), "keep the handle"),
    Row("dropped_all_reduce", r"rank [01] never waits for the handle of its asynchronous all_reduce", ((-1, 0),)),
    Row("modified_isend", r"rank 0 changes what its isend to rank 1 is sending", ((0, 0), (0, 1)), "send a copy"),
    Row("modified_broadcast", r"rank 0 changes what its asynchronous broadcast is sending", ((0, 0), (0, 1))),
    Row(
        "divides_before_wait",
        r"rank [01] writes to the buffer of its asynchronous all_reduce",
        ((-1, 0), (-1, 1)),
        "wait\\(\\)",
    ),
    Row("fills_before_wait", r"rank [01] writes to the buffer of its asynchronous all_reduce", ((-1, 0), (-1, 1))),
    Row("polls_for_ever", r"rank 0 waits for a message that rank 1 never sends", ((0, 1),)),
    Row(
        "only_members_make_the_group",
        r"ranks [01] and [23] disagree on the members of a new group: \[0, 1\] on rank [01], \[2, 3\] on rank [23]",
        ((-1, 0), (-1, 0)),
        "every rank must call new_group for every group",
        size=4,
    ),
    Row(
        "one_rank_makes_the_group", r"rank 0 waits for the group \[0, 1\] to be formed: rank 1 has returned", ((0, 0),)
    ),
    Row(
        "groups_in_another_order",
        r"rank 0 waits in all_reduce in the group \[0, 1\], rank 1 waits in all_reduce in the group \[0, 1, 2\]",
        ((0, 0), (1, 0)),
        "same order",
        size=3,
    ),
    Row("premultiplied_sum", r"rank [01] raised RuntimeError: all_reduce with PREMUL_SUM is not there", ((-1, 0),)),
    Row(
        "average_of_integers",
        r"rank [01] raised RuntimeError: all_reduce with AVG divides, and torch.int64 has no",
        ((-1, 0),),
    ),
    Row(
        "stacked_output",
        r"all_gather_into_tensor of float32 \(4,\) needs an output of shape \(8,\), not \(2, 4\)",
        ((-1, 0),),
    ),
    Row("unequal_list_exchange", r"all_to_all has float32 \(\d,\) and .*: on a CPU only all_to_all_single", ((-1, 0),)),
    Row("sends_beyond_the_last", r"rank 1 raised RuntimeError: send: the peer 2 is no rank of a group of 2", ((1, 0),)),
    Row("receives_before_the_first", r"rank 0 raised RuntimeError: recv: the peer -1 is no rank", ((0, 0),)),
    Row("catches_everything", r"the shape of all_reduce: \(4,\) on rank 0, \(5,\) on rank 1", ((0, 0), (1, 0))),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_message_names_ranks_operation_and_line(row: Row, launcher: Launcher) -> None:
    failure = failed(run(row.function, row.size, launcher))
    outcome = explain(failure, world_size=row.size)
    assert outcome.status is Status.FAIL
    told = outcome.explanation
    assert re.search(row.rationale, told.rationale), told.rationale
    assert told.rationale.endswith(f"(in a world of {row.size})")
    pattern = r"^rank (\d+)[^\n]*?(?:: |\n +)data_parallel\.py:(\d+) in (\w+): .*# here$"
    shown = re.findall(pattern, told.where, re.MULTILINE)
    lines = lines_of(row.function)
    assert len(shown) >= len(row.where), told.where
    for (rank, line, function), (wanted, number) in zip(shown, row.where, strict=False):
        assert wanted in (-1, int(rank)), told.where
        assert (int(line), function) == (lines[number], row.function), told.where
    assert re.search(row.help, told.help)
    assert failure.seconds < 10, "nothing waits for a timeout"


@pytest.mark.parametrize(
    ("function", "size", "by_rank", "told"),
    [
        ("reads_before_wait", 2, [torch.full((4,), float("nan"))] * 2, "is NaN until wait() at data_parallel.py:{1}"),
        ("reads_a_reduce_everywhere", 3, [torch.full((4,), value) for value in (6.0, 2.0, 3.0)], "on rank 0 alone"),
        ("swapped_order", 2, [(torch.full((2,), 101.0),) * 2] * 2, "met that of rank 1 at data_parallel.py:{1}"),
    ],
)
def test_what_only_values_show_is_wrong_every_time_and_told_with_its_lines(
    function: str, size: int, by_rank: list[object], told: str, launcher: Launcher
) -> None:
    outcome = returned(run(function, size, launcher))
    assert same([plain(values[0]) for values in outcome.values], by_rank)
    lines = lines_of(function)
    text = "\n".join(suspects(outcome.trace, MISTAKES, read_too_early=function == "reads_before_wait"))
    assert f"data_parallel.py:{lines[0]}" in text, text
    assert told.format(*lines) in text, text
