"""Calls of plan_buckets, and what classic mistakes make of the plans."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from grader.checking import Check, expect
from tests.public.oracles.data_parallel import Described, fill, num_bytes, plan
from tests.public.runs.mistakes import Mistake, explaining

Plan = list[list[int]]
SIZES = "a parameter has numel() · element_size() bytes, and bucket_bytes is a number of bytes"
KINDS = "a bucket closes where the next parameter has another dtype or device"
FLUSH = "every index is in one bucket: add the bucket that is still open after the last parameter"
EMPTY = "open a bucket when there is a parameter to put into it"
REVERSE = (
    "backward computes the gradients of the last layers first: take the parameters in reverse, and close as you go"
)
LIMIT = "a bucket closes when the next parameter would take it over bucket_bytes, and is full at bucket_bytes"


@dataclass(frozen=True)
class Request:
    """One call. name: of the list of parameters; refused: a ValueError."""

    name: str
    tensors: Sequence[Described]
    bucket_bytes: int
    refused: bool = False

    @property
    def title(self) -> str:
        """The call."""
        return f"plan_buckets({self.name}, bucket_bytes={self.bucket_bytes})"


def requests(check: Check) -> list[Request]:
    """Parameters of one size and of many, of several dtypes and devices, and random ones."""
    import torch

    f32, f64, bf16, cpu = torch.float32, torch.float64, torch.bfloat16, "cpu"
    lists: list[tuple[str, list[Described], list[int]]] = [
        ("the docstring's example", [((2,), f32, cpu), ((5,), f32, cpu), ((1,), f32, cpu), ((1,), f32, cpu)], [12]),
        ("40, 20, 30, 100 and 10 bytes", [((n,), bf16, cpu) for n in (20, 10, 15, 50, 5)], [1, 10, 49, 50, 51, 1000]),
        ("no parameters", [], [8]),
        ("one parameter", [((3, 5), f64, cpu)], [1, 119, 120]),
        ("a scalar and a matrix", [((), f32, cpu), ((2, 3), f32, cpu)], [4, 24, 27, 28]),
        ("alternating dtypes", [((2,), f32, cpu), ((2,), bf16, cpu), ((2,), bf16, cpu), ((2,), f32, cpu)], [8, 10**9]),
        ("two devices", [((2,), f32, cpu), ((2,), f32, "meta"), ((2,), f32, "meta")], [10**9]),
        ("mebibytes", [((2**18,), f32, "meta"), ((2**18,), f32, "meta"), ((2**18,), f32, "meta")], [2 * 2**20]),
    ]
    generator = check.generator("random")
    for number in range(12):
        sizes = torch.randint(1, 40, (9,), generator=generator).tolist()
        kinds = torch.randint(0, 4, (9,), generator=generator).tolist()
        limit = int(torch.randint(30, 400, (1,), generator=generator))
        tensors: list[Described] = [
            ((n,), bf16 if kind == 0 else f32, cpu) for n, kind in zip(sizes, kinds, strict=True)
        ]
        lists.append((f"random list {number}", tensors, [limit]))
    calls = [Request(name, tensors, limit) for name, tensors, limits in lists for limit in limits]
    return calls + [Request("too small", lists[0][1], limit, refused=True) for limit in (0, -8)]


def run_requests(check: Check, calls: Sequence[Request]) -> None:
    """Makes the calls in one process that has no process group, and compares the plans."""
    named = [call.title for call in calls]
    sent = [{"tensors": call.tensors, "bucket_bytes": call.bucket_bytes} for call in calls]
    (values,) = check.run(1, "data_parallel.plan_buckets", joined=False, cases=named, calls=sent)
    mistakes = partial(_mistakes, calls)
    came = {number: value.get("value") for number, value in enumerate(values) if type(value) is dict}
    for number, (value, call) in enumerate(zip(values, calls, strict=True)):
        if call.refused:
            expect.raised(value, "ValueError", what=call.title, rank=0)
            continue
        what = f"{call.title}, parameters of {[num_bytes(tensor) for tensor in call.tensors]} bytes,"
        expect.same(
            expect.returned(value, what=what, rank=0),
            plan(call.tensors, call.bucket_bytes),
            what=what,
            rank=0,
            slips=explaining(mistakes, came, number),
        )


def _mistakes(calls: Sequence[Request]) -> list[Mistake]:
    asked = {number: _Asked(call) for number, call in enumerate(calls) if not call.refused}
    return [Mistake(gave, help, {number: of(one) for number, one in asked.items()}) for gave, help, of in MISTAKES]


class _Asked:
    """One call: sizes in bytes and elements, kinds, the limit, and the right plan."""

    def __init__(self, call: Request) -> None:
        self.limit = call.bucket_bytes
        self.right = plan(call.tensors, call.bucket_bytes)
        self.sizes = [num_bytes(tensor) for tensor in call.tensors]
        self.lengths = [size // tensor[1].itemsize for size, tensor in zip(self.sizes, call.tensors, strict=True)]
        self.dtypes = [tensor[1] for tensor in call.tensors]
        self.devices = [tensor[2] for tensor in call.tensors]
        self.kinds = [tensor[1:] for tensor in call.tensors]

    def fill(
        self, *, sizes: Sequence[int] | None = None, kinds: Sequence[Hashable] | None = None, limit: int | None = None
    ) -> Plan:
        """The plan by the rule, where something is taken for something else."""
        return fill(
            self.sizes if sizes is None else sizes,
            self.kinds if kinds is None else kinds,
            self.limit if limit is None else limit,
        )

    def from_the_first(self) -> Plan:
        """The plan that takes the parameters in their own order."""
        last = len(self.sizes) - 1
        return [[last - index for index in bucket] for bucket in fill(self.sizes[::-1], self.kinds[::-1], self.limit)]

    def closed_late(self) -> Plan:
        """The plan whose buckets close when they have reached the limit."""
        buckets: Plan = []
        for index in range(len(self.sizes) - 1, -1, -1):
            full = not buckets or sum(self.sizes[each] for each in buckets[-1]) >= self.limit
            if full or self.kinds[buckets[-1][0]] != self.kinds[index]:
                buckets.append([])
            buckets[-1].append(index)
        return buckets


MISTAKES: list[tuple[str, str, Callable[[_Asked], Plan]]] = [
    ("buckets that count elements, not bytes", SIZES, lambda a: a.fill(sizes=a.lengths)),
    ("buckets that count 4 bytes for every element", SIZES, lambda a: a.fill(sizes=[4 * n for n in a.lengths])),
    ("buckets of bucket_bytes MiB, not bytes", SIZES, lambda a: a.fill(limit=a.limit * 2**20)),
    ("buckets of bucket_bytes KiB, not bytes", SIZES, lambda a: a.fill(limit=a.limit * 2**10)),
    ("one bucket for each parameter", LIMIT, lambda a: a.fill(limit=1)),
    ("all buckets but the last, whose parameters are in none", FLUSH, lambda a: a.right[:-1]),
    ("an empty bucket before the others", EMPTY, lambda a: [[], *a.right]),
    ("an empty bucket after the others", EMPTY, lambda a: [*a.right, []]),
    ("buckets that begin with the first parameter, not the last", REVERSE, lambda a: a.from_the_first()),
    ("buckets filled from the first parameter, then reversed", REVERSE, lambda a: a.from_the_first()[::-1]),
    ("the right buckets, each from its first parameter to its last", REVERSE, lambda a: [b[::-1] for b in a.right]),
    ("buckets that mix dtypes", KINDS, lambda a: a.fill(kinds=a.devices)),
    ("buckets that mix devices", KINDS, lambda a: a.fill(kinds=a.dtypes)),
    ("buckets that mix dtypes and devices", KINDS, lambda a: a.fill(kinds=[0] * len(a.kinds))),
    ("buckets that close where they would be exactly full", LIMIT, lambda a: a.fill(limit=a.limit - 1)),
    ("buckets that close only when they have reached bucket_bytes", LIMIT, lambda a: a.closed_late()),
]
