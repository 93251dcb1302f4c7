"""Messages, handles and groups on the traced group: results, what is in a buffer before wait, and the account."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.world import Doing, Launcher, Returned, World
from tests.harness import programs_messages
from tests.harness.traced import PROGRAM, plain, returned, same

SIZES = (2, 3, 4)
NAN = float("nan")


class Ran:
    """A world that ran all cases."""

    def __init__(self, outcome: Returned) -> None:
        self.trace = outcome.trace
        self.values = [dict(plain(values)) for values in outcome.values]
        self.number = {name: number for number, (name, _) in enumerate(outcome.values[0])}


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"world of {size}")
def ran(request: pytest.FixtureRequest, launcher: Launcher) -> Ran:
    return Ran(returned(World(request.param, launcher=launcher).run(programs_messages.all_cases)))


def full(length: int, value: float) -> torch.Tensor:
    return torch.full((length,), float(value))


def expected(name: str, rank: int, size: int) -> Any:
    """What a rank gets in a case, by plain computation."""
    after, before, ranks = (rank + 1) % size, (rank - 1) % size, sum(range(size))
    is_receiver = rank == 1
    match name:
        case "ring":
            return full(3, before)
        case "batched_ring":
            return [full(3, before), full(2, after)]
        case "tags_out_of_order":
            return {str(tag): full(tag, tag) for tag in (1, 2, 3)} if is_receiver else None
        case "one_tag_in_order":
            return [full(2, number) for number in range(4)]
        case "from_any_source":
            return [(source, full(1, source)) for source in range(size - 1)] if rank == size - 1 else None
        case "dtypes":
            kinds = (torch.float16, torch.bfloat16, torch.bool, torch.int64, torch.complex64)
            return [torch.tensor([1, 0, 1]).to(kind) for kind in kinds] + [torch.tensor(7.0), torch.empty(0)]
        case "objects":
            return (0, ["a", {"b": 2}]) if is_receiver else None
        case "handles":
            poison = [full(3, NAN), torch.tensor([torch.iinfo(torch.int64).min]), torch.tensor([True])]
            return poison, [full(3, ranks), torch.tensor([ranks]), torch.tensor([False])]
        case "received_before_wait":
            return full(2, NAN) if is_receiver else full(2, 5), full(2, 5)
        case "gathered_before_wait":
            whole = torch.stack([full(2, one) for one in range(size)])
            return torch.full_like(whole, NAN), whole, full(2, rank)
        case "polling":
            return True, full(2, ranks)
        case "polling_in_vain":
            # The ranks that ask are told "not yet" in turn, the lowest first.
            return [False] * (0 if rank == 0 else 3 if rank == 1 else 2) + [True], full(2, ranks)
        case "futures":
            error = {"raised": ["IndexError", "LookupError", "Exception", "BaseException", "object"]}
            halves = full(2, ranks / 2)
            return full(2, ranks), halves, full(2, 2 * ranks + 2), full(2, ranks), full(2, ranks), error
        case "groups":
            pairs = {first: (first, (first + 1) % size) for first in range(size)}
            return {str(first): full(1, sum(pair)) for first, pair in pairs.items() if rank in pair}
        case "twins":
            return full(2, ranks), full(3, ranks)
        case "local_synchronization":
            return full(1, 1) if rank < 2 else None
        case "messages_in_a_group":
            return (full(2, 0), 1, [size - 1, 0]) if rank == size - 1 else None
        case "again":
            members = [0, 1] if size == 2 else [1, 2]
            return full(1, sum(members)) if rank in members else full(1, rank)
    raise LookupError(name)


@pytest.mark.parametrize("name", [function.__name__ for function in programs_messages.CASES])
def test_results_are_those_of_plain_computation(name: str, ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        came, wanted = ran.values[rank][name], expected(name, rank, size)
        if name == "futures":
            came[5].pop("message")
        assert same(came, wanted), (rank, came, wanted)


def test_messages_are_told_with_peer_tag_and_bytes(ran: Ran) -> None:
    size = len(ran.values)
    for rank in range(size):
        issued = ran.trace.of(rank, ran.number["batched_ring"]).issued(by=PROGRAM)
        after, before = (rank + 1) % size, (rank - 1) % size
        assert [(one.name, one.peer_rank, one.tag, one.num_bytes) for one in issued] == [
            ("send", after, 0, 12),
            ("recv", before, 0, 0),
            ("send", before, 1, 8),
            ("recv", after, 1, 0),
        ]
        assert all(one.is_async for one in issued)


def test_a_blocking_message_is_one_operation_and_one_wait(ran: Ran) -> None:
    events = ran.trace.of(0, ran.number["ring"])
    told = [(event.doing, event.operation.name) for event in events if event.operation]
    assert told == [
        (Doing.FORM, "new_group"),  # by which the rank joined the world
        (Doing.ISSUE, "send"),
        (Doing.WAIT, "send"),
        (Doing.ISSUE, "recv"),
        (Doing.WAIT, "recv"),
    ]


def test_messages_of_one_route_meet_in_order(ran: Ran) -> None:
    met = [pair for pair in ran.trace.met if {one.name for one in pair} == {"send", "recv"}]
    for pair in met:
        sender, receiver = sorted(pair, key=lambda one: one.name != "send")
        assert (sender.peer_rank, receiver.peer_rank) == (receiver.rank, sender.rank)
        assert (sender.tag, sender.group_id) == (receiver.tag, receiver.group_id)
    counted = len([event for event in ran.trace if event.operation and event.doing is Doing.ISSUE])
    assert counted == sum(len(operations) for operations in ran.trace.met), "all that was issued has started"


def test_a_poll_that_is_answered_yes_is_told_once(ran: Ran) -> None:
    for rank in range(len(ran.values)):
        events = ran.trace.of(rank, ran.number["polling"])
        assert [event.doing for event in events] == [Doing.ISSUE, Doing.POLL]


def test_waits_are_told_where_they_are(ran: Ran) -> None:
    events = list(ran.trace.of(0, ran.number["handles"]))
    assert [event.doing for event in events] == [Doing.ISSUE] * 3 + [Doing.WAIT] * 3
    issued = [event.operation.seq for event in events[:3] if event.operation]
    waited = [event.operation.seq for event in events[3:] if event.operation]
    assert waited == issued[::-1]
    assert events[3].place.line > events[0].place.line


def test_groups_have_their_own_ranks_and_numbers(ran: Ran) -> None:
    size = len(ran.values)
    twins = ran.trace.of(0, ran.number["twins"]).issued(by=PROGRAM)
    assert [one.group for one in twins] == [tuple(range(size))] * 2
    assert twins[0].group_id != twins[1].group_id
    of_pair = ran.trace.of(size - 1, ran.number["messages_in_a_group"]).issued(by=PROGRAM)
    assert [(one.group, one.peer, one.peer_rank) for one in of_pair] == [((size - 1, 0), 1, 0)]
    formed = [event.operation.group for event in ran.trace.of(0, ran.number["groups"]) if event.doing is Doing.FORM]
    assert formed == [(0, 1)] + ([(0, 1)] if size == 2 else [(0, size - 1)])


def test_a_rank_alone(launcher: Launcher) -> None:
    total, to_itself, from_nobody = plain(returned(World(1, launcher=launcher).run(programs_messages.alone)).values[0])
    assert same(total, torch.ones(3))
    assert "ValueError" in to_itself["raised"]
    assert "recv: the peer 1 is no rank of a group of 1" in from_nobody["message"]
