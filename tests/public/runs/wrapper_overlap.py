"""Whether gradients are in flight during backward: by the order of events, and by ranks that are held.

The order of a rank's events is its own claim. The proof is a step in which all ranks but one are held before their
backward until that one has computed its first layer's gradient: if it waits for them before, nobody can go on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.world import Doing, Trace
from grader.world.operation import NOWHERE, Operation, Place
from tests.public.runs import cases
from tests.public.runs.wrapper_errors import explaining_errors
from tests.public.runs.wrapper_trace import (
    ALL_REDUCES,
    MAX_LINES,
    Message,
    at,
    compare_sent,
    issued,
    line,
    lines,
    messages,
    told_by_trace,
)

if TYPE_CHECKING:
    from torch import Tensor

WIDTHS = (4, 6, 5, 3, 7, 2)
NUM_LAYERS = len(WIDTHS) - 1
BUCKET_BYTES = 190  # of weights of 96, 120, 60, 84 and 56 bytes: two layers, two layers, the first alone
COMPUTED = re.compile(r"computed the gradient of (its first layer|layer ([2-9])) in step \d+")

LATER = (
    "in the hook call dist.all_reduce(…, async_op=True) and keep the handle; wait for it in synchronize_gradients(), "
    "or in a callback that autograd's engine runs at the end of backward"
)
SOON = (
    "issue the all-reduce in a hook of the parameter (register_post_accumulate_grad_hook), as soon as its gradient, "
    "or the last one of its bucket, is computed and all before it in the order are issued"
)
IN_REVERSE = "backward computes the gradient of the last layer first: so the order is that of the parameters in reverse"


class Moment(NamedTuple):
    """One thing that a rank did in a step. layer: from 1. place: where it waited."""

    doing: Literal["computed", "issued", "waited", "ended"]
    layer: int = 0
    operation: Operation | None = None
    place: Place = NOWHERE

    def __str__(self) -> str:
        match self.doing, self.operation:
            case "issued", Operation() as operation:
                return line(operation) + ("" if operation.is_async else ", and waited for")
            case "waited", Operation() as operation:
                return f"wait for the {operation.name}{at(self.place)}"
            case "computed", _:
                return f"gradient of layer {self.layer} is computed"
            case _:
                return "backward has ended"


def keep_in_flight(check: Check, wrapper: str, options: Mapping[str, Any] = {}) -> None:
    """Runs steps with every rank as the leader, in worlds of the check's sizes, and compares the order of events."""
    shapes = list(itertools.pairwise(WIDTHS))
    of_weights = [cases.tensor(check, 0, shape, path=("weight", shape)) / 10_000 for shape in shapes]
    for size in check.worlds:
        leaders = [None, *range(size)]
        named = [f"{wrapper}, step 1"]
        named += [f"{wrapper}, step {leader + 2}, where rank {leader} goes ahead" for leader in range(size)]
        x = [cases.tensor(check, rank, (3, WIDTHS[0]), path="x") / 1000 for rank in range(size)]
        upstream = [cases.tensor(check, rank, (3, WIDTHS[-1]), path="upstream") for rank in range(size)]
        sent: dict[str, Any] = {"weights": of_weights, "x": PerRank(x), "upstream": PerRank(upstream)}
        sent |= {"leaders": leaders, "wrapper": wrapper, "options": dict(options)}
        _run(check, size, wrapper, named, sent)


def _run(check: Check, size: int, wrapper: str, named: Sequence[str], sent: Mapping[str, Any]) -> None:
    values: list[Any] = []

    def compare(ended: bool) -> None:
        for number, what in enumerate(named):
            for rank in range(size):
                step = _Step.read(check.trace.of(rank, number), what, rank)
                if ended:
                    step.compare(wrapper, _due(wrapper, sent["weights"], values[rank][number], what=what, rank=rank))
                else:
                    step.compare_waits()

    with told_by_trace(check, compare), explaining_errors(wrapper):
        values += check.run(size, "data_parallel_overlap.in_flight", cases=named, **sent)


def _due(wrapper: str, weights: Sequence[Tensor], value: Any, *, what: str, rank: int) -> list[Message]:
    """The messages of a step, for the buckets that the wrapper has."""
    trainable = {f"layer {number + 1}": weight for number, weight in enumerate(weights)}
    buckets: list[list[str]] = []
    if wrapper == "BucketedDDP":
        came = value if type(value) is list and all(type(bucket) is list for bucket in value) else []
        flat = [number for bucket in came for number in bucket]
        expect.true(
            all(type(number) is int for number in flat) and sorted(flat) == list(range(len(weights))),
            f"rank {rank}: .buckets of {what} do not hold each trainable parameter once",
        )
        expect.true(
            len(came) > 1,
            f"rank {rank}: .buckets of {what} are one bucket of {sum(weight.nbytes for weight in weights)} bytes, "
            f"though bucket_bytes is {BUCKET_BYTES}: nothing can be in flight during backward",
            help="a bucket closes when the next parameter would take it over bucket_bytes",
        )
        buckets = [[f"layer {number + 1}" for number in bucket] for bucket in came]
    return messages(wrapper, trainable, buckets)


@dataclass(frozen=True)
class _Step:
    """What one rank did in one step, in its order."""

    moments: Sequence[Moment]
    what: str
    rank: int

    @staticmethod
    def read(events: Trace, what: str, rank: int) -> _Step:
        """From the events of the step."""
        moments: list[Moment] = []
        begun = False
        for event in events:
            operation, computed = issued(event), COMPUTED.fullmatch(event.name)
            if event.doing is Doing.MARK:
                begun = begun or event.name == "backward begins"
                if computed:
                    moments.append(Moment("computed", int(computed[2] or 1)))
                elif event.name == "backward has ended":
                    moments.append(Moment("ended"))
            elif begun and operation is not None:
                moments.append(Moment("issued", operation=operation))
            elif begun and event.doing is Doing.WAIT:
                moments.append(Moment("waited", operation=event.operation, place=event.place))
        return _Step(moments, what, rank)

    def compare(self, wrapper: str, due: Sequence[Message]) -> None:
        """Raises CheckFailed for the first thing that is not as the contract says."""
        computed = [moment.layer for moment in self.moments if moment.doing == "computed"]
        expect.true(
            sorted(computed) == list(range(1, NUM_LAYERS + 1)),
            f"rank {self.rank}: in {self.what}, backward did not compute each layer's gradient once",
        )
        self.compare_waits()
        last = self._index("computed", computed[-1])
        sent = [moment.operation for moment in self.moments if moment.operation and moment.doing == "issued"]
        if not any(moment.doing == "issued" for moment in self.moments[:last]):
            raise self._nothing_in_flight()
        what = f"in {self.what}, synchronize_gradients()"
        compare_sent(sent, due, wrapper, what=what, rank=self.rank)
        self._compare_times(due, computed)

    def compare_waits(self) -> None:
        """Nothing is waited for before backward has computed its last gradient, that of the first layer."""
        issued_just_now: Operation | None = None
        for number, moment in enumerate(self.moments):
            if moment.doing == "ended" or (moment.doing == "computed" and moment.layer == 1):
                return
            if moment.doing == "waited" or (moment.operation is not None and not moment.operation.is_async):
                name = moment.operation.name if moment.operation else ""
                kind = "all-reduce" if name in ALL_REDUCES else name
                at_once = moment.doing == "waited" and moment.operation == issued_just_now
                story = (
                    f"issues its {kind} with async_op=True and waits for it at once, inside backward: this is as slow "
                    "as without"
                    if at_once
                    else f"waits for its {kind} inside backward: the next gradient is not computed meanwhile"
                )
                raise CheckFailed(
                    f"rank {self.rank} {story} (in {self.what})",
                    expected="nothing is waited for before backward has computed its last gradient, that of layer 1",
                    actual=self._shown(number),
                    help=LATER,
                )
            issued_just_now = moment.operation

    def _nothing_in_flight(self) -> CheckFailed:
        ended = self._index("ended")
        first = next((number for number, moment in enumerate(self.moments) if moment.doing == "issued"), ended)
        did = (
            "sends nothing during backward: its first all-reduce is issued when backward has ended"
            if first >= ended
            else "issues its first all-reduce when backward has computed its last gradient: none is in flight before"
        )
        return CheckFailed(
            f"rank {self.rank} {did} (in {self.what})",
            expected="the first all-reduce is issued while backward still has gradients to compute",
            actual=self._shown(first),
            help=SOON if first >= ended else f"{SOON}; {IN_REVERSE}",
        )

    def _compare_times(self, due: Sequence[Message], computed: Sequence[int]) -> None:
        """Each message is issued when its gradients are ready; the newest gradient's may be under way to it."""
        place_of = {f"'layer {layer}'": number for number, layer in enumerate(computed)}
        num_issued = num_computed = 0
        ready = 0  # the gradient that completes this message and all before it
        turns = [ready := max(ready, *(place_of[name] for name in message.names)) for message in due]
        for number, moment in enumerate(self.moments):
            num_issued += moment.doing == "issued"
            num_computed += moment.doing == "computed"
            # Before the gradient that has just been computed, these had been complete; at the end all but one.
            late = num_computed - 2 if moment.doing != "ended" else NUM_LAYERS - 1
            if moment.doing not in ("computed", "ended"):
                continue
            missing = [message for message, turn in zip(due, turns, strict=True) if turn < late][num_issued:]
            if missing:
                raise CheckFailed(
                    f"rank {self.rank} issues the all-reduce of {', '.join(missing[0].names)} too late: its gradients "
                    f"are computed, and backward goes on without it (in {self.what})",
                    expected="each all-reduce is issued as soon as its gradients are ready and those before it issued",
                    actual=self._shown(number),
                    help=SOON,
                )
            if moment.doing == "ended":
                return

    def _index(self, doing: str, layer: int = 0) -> int:
        """Of the first such moment; after all, if there is none."""
        found = (n for n, moment in enumerate(self.moments) if (moment.doing, moment.layer) == (doing, layer))
        return next(found, len(self.moments))

    def _shown(self, number: int) -> str:
        """What the rank did up to this moment."""
        shown = [str(moment) for moment in self.moments[max(0, number + 1 - MAX_LINES) : number + 1]]
        return f"rank {self.rank}, in order:\n{lines(shown)}"
