"""What a collective made of messages sends: to whom, how much, in how many steps. From the trace of its world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grader.checking import CheckFailed
from grader.world import Doing, Event
from grader.world.operation import POINT_TO_POINT, Operation
from grader.world.report import ranks_text
from tests.public.oracles.collectives_traffic import HEADER_BYTES, ONE_WAY, RINGS, Bounds, bounds, num_bytes
from tests.public.runs.traffic import Traffic, listed, places, received_bytes

if TYPE_CHECKING:
    from tests.public.runs.calls import Call

RING = (
    "follow one piece round the ring on paper: in each step every rank sends one piece to its neighbour and receives "
    "one from the other"
)
ONCE = "send each number no more often than it must travel: once round a ring, or once down a tree"


def expect_messages(
    function: str, call: Call, number: int, traffic: Traffic, members: Sequence[int], *, what: str
) -> None:
    """All that the call says of messages, for one group of ranks. Its results have been found right before."""
    issued = {rank: traffic.issued(rank, number) for rank in members}
    for rank, operations in issued.items():
        _expect_messages_alone(operations, what=what, rank=rank)
        traffic.expect_group(rank, number, members, what=what)
    if len(members) == 1:
        return  # a world of 1 need not communicate
    if function in RINGS:
        for rank in members:
            _expect_neighbours(function, rank, issued, members, what=what)
    if function == "all_to_all":
        for rank in members:
            _expect_pieces(call, rank, issued[rank], members, what=what)
    inputs = [call.inputs[member] for member in members]
    root = next((argument for argument in call.arguments if isinstance(argument, int)), None)
    for place, rank in enumerate(members):
        bound = bounds(function, inputs, root, place)
        _expect_least(bound, rank, issued, what=what)
        _expect_steps(bound, rank, traffic.events(rank, number), what=what)
        _expect_most(bound, rank, issued, what=what)


def _expect_messages_alone(operations: Sequence[Operation], *, what: str, rank: int) -> None:
    others = [one for one in operations if one.name not in POINT_TO_POINT]
    if others:
        raise CheckFailed(
            f"rank {rank}: {what} calls {others[0].name} of torch, where messages between two ranks alone are allowed",
            expected="send, recv, isend, irecv and batch_isend_irecv alone",
            actual=listed(operations),
            where=places(others),
            help="the collectives of torch.distributed are what you build here; use messages",
        )


def _expect_neighbours(
    function: str, rank: int, issued: dict[int, list[Operation]], members: Sequence[int], *, what: str
) -> None:
    place, size = members.index(rank), len(members)
    neighbours = sorted({members[(place - 1) % size], members[(place + 1) % size]})
    sent_to = {one.peer_rank for one in issued[rank] if _sends(one)}
    beyond = sorted(peer for peer in sent_to if peer is not None and peer not in neighbours)
    if beyond:
        hub = _hub(issued, members)
        through = f"goes through rank {hub}, which gets every rank's numbers and sends the result to all"
        raise CheckFailed(
            f"rank {rank}: {what} sends to rank {beyond[0]}, which is not its neighbour in the ring"
            if hub is None
            else f"rank {hub}: {what} {through}",
            expected=f"rank {rank} sends to {ranks_text(neighbours)} only: ranks {list(members)} in a ring",
            actual=_table(issued),
            where=places([one for one in issued[rank] if one.peer_rank in beyond and _sends(one)]),
            help=f"one rank is a bottleneck that a ring has not. {RING.capitalize()}" if hub is not None else RING,
        )
    if function in ONE_WAY and len(sent_to) > 1:
        raise CheckFailed(
            f"rank {rank}: {what} sends to both of its neighbours in the ring",
            expected="messages to one neighbour only: all pieces go round the same way",
            actual=_table(issued),
            where=places([one for one in issued[rank] if _sends(one)]),
            help=RING,
        )


def _expect_pieces(
    call: Call, rank: int, operations: Sequence[Operation], members: Sequence[int], *, what: str
) -> None:
    """Each piece goes to its rank once. Pieces may be padded to the longest, and headers may go with them."""
    sent: Counter[int] = Counter()
    large: Counter[int] = Counter()
    for one in operations:
        if _sends(one) and one.peer_rank is not None:
            sent[one.peer_rank] += one.num_bytes
            large[one.peer_rank] += one.num_bytes if one.num_bytes > HEADER_BYTES else 0
    longest = max(num_bytes(piece) for member in members for piece in call.inputs[member])
    for member, piece in zip(members, call.inputs[rank], strict=True):
        if member == rank:
            continue
        if sent[member] < num_bytes(piece):
            raise CheckFailed(
                f"rank {rank}: {what} sends {sent[member]} bytes to rank {member}, whose piece has {num_bytes(piece)}",
                expected=f"pieces[r] goes from here to rank r in a message: {num_bytes(piece)} bytes to rank {member}",
                actual=_sends_of(operations),
                where=places([one for one in operations if _sends(one)]),
                help="send each piece to the rank that it is for, and to no other",
            )
        if large[member] > longest:
            raise CheckFailed(
                f"rank {rank}: {what} sends {large[member]} bytes to rank {member}, whose piece has {num_bytes(piece)}",
                expected=f"each piece once, to its own rank: no more than {longest} bytes, the longest piece",
                actual=_sends_of(operations),
                where=places([one for one in operations if _sends(one)]),
                help="send each piece to the rank that it is for, and to no other",
            )


def _expect_least(bound: Bounds, rank: int, issued: dict[int, list[Operation]], *, what: str) -> None:
    sent = sum(one.num_bytes for one in issued[rank])
    received = sum(received_bytes(one) for one in issued[rank])
    help_text = "what a rank gives and gets must travel in messages of the group; those of grader.given are not counted"
    for verb, came, least, of in (
        ("receives", received, bound.least_received, "its result needs"),
        ("sends", sent, bound.least_sent, "the root needs of it"),
    ):
        if came < least:
            raise CheckFailed(
                f"rank {rank}: {what} {verb} {came} bytes in messages, fewer than {of}",
                expected=f"{least} bytes at least",
                actual=_table(issued),
                where=places(issued[rank]),
                help=help_text,
            )


def _expect_most(bound: Bounds, rank: int, issued: dict[int, list[Operation]], *, what: str) -> None:
    smallest = HEADER_BYTES if bound.headers else 0
    sent = sum(one.num_bytes for one in issued[rank] if one.num_bytes > smallest)
    received = sum(received_bytes(one) for one in issued[rank] if received_bytes(one) > smallest)
    formula = f": {bound.formula}" if bound.formula else ""
    for verb, came, most in (("sends", sent, bound.most_sent), ("receives", received, bound.most_received)):
        if most is not None and came > most:
            raise CheckFailed(
                f"rank {rank}: {what} {verb} {came} bytes{_of_what(bound, issued[rank])}, where {most} will do",
                expected=f"at most {most} bytes{formula}",
                actual=_table(issued),
                where=places([one for one in issued[rank] if (_sends(one) if verb == "sends" else one.name == "recv")]),
                help=RING if not bound.headers else ONCE,
            )


def _of_what(bound: Bounds, operations: Sequence[Operation]) -> str:
    """What too many bytes of a reduction are: numbers of another dtype, or the whole tensor several times."""
    dtypes = {spec.dtype for one in operations for spec in one.reads} - {bound.dtype}
    if not bound.whole or dtypes:
        return f" of {', '.join(sorted(dtypes))}, not {bound.dtype}" if bound.whole else ""
    times, rest = divmod(sum(one.num_bytes for one in operations), bound.whole)
    return f", {times} times a whole tensor" if times > 1 and not rest else ""


def _expect_steps(bound: Bounds, rank: int, events: Sequence[Event], *, what: str) -> None:
    if bound.most_steps is None:
        return
    steps = _steps(events, HEADER_BYTES if bound.headers else 0)
    if steps > bound.most_steps:
        issued = [event.operation for event in events if event.doing is Doing.ISSUE and event.operation is not None]
        raise CheckFailed(
            f"rank {rank}: {what} sends in {steps} steps, where {bound.most_steps} will do",
            expected=f"steps: {bound.most_steps} at most, in each a message to a neighbour and one from the other",
            actual=f"{steps} steps: {listed(issued, 12)}",
            where=places(issued),
            help="does the loop go on when every rank has all? Or is one step cut into a step that sends and another?",
        )


def _steps(events: Sequence[Event], smallest: int) -> int:
    """In how many steps a rank sends: what it sends before it has waited for one more message is one step."""
    count, may_begin = 0, True
    for event in events:
        operation = event.operation
        if operation is None:
            continue
        if event.doing is Doing.ISSUE and _sends(operation, smallest) and may_begin:
            count += 1
            may_begin = False
        elif event.doing in (Doing.WAIT, Doing.POLL) and received_bytes(operation) > smallest:
            may_begin = True
    return count


def _sends(operation: Operation, smallest: int = 0) -> bool:
    return operation.name == "send" and operation.num_bytes > smallest


def _hub(issued: dict[int, list[Operation]], members: Sequence[int]) -> int | None:
    """The rank at which every message begins or ends, and that gets one from each other rank; None if there is none."""
    pairs = {(rank, one.peer_rank) for rank, operations in issued.items() for one in operations if _sends(one)}
    for rank in members:
        others = [member for member in members if member != rank]
        if all(rank in pair for pair in pairs) and all((other, rank) in pairs for other in others):
            return rank
    return None


def _table(issued: dict[int, list[Operation]]) -> str:
    """A line for each rank: what it sends to whom."""
    return "\n".join(f"rank {rank} sends {_sends_of(operations)}" for rank, operations in issued.items())


def _sends_of(operations: Sequence[Operation]) -> str:
    sent: Counter[int] = Counter()
    for one in operations:
        if _sends(one) and one.peer_rank is not None:
            sent[one.peer_rank] += one.num_bytes
    return ", ".join(f"{count} bytes to rank {peer}" for peer, count in sorted(sent.items())) or "nothing"
