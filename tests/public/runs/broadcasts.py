"""What broadcast_module, and the making of a wrapper, leave on the ranks; and whose values a wrong one leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, Slip, expect
from grader.world.values import ReturnedTensor
from tests.public.runs import cases
from tests.public.runs.mistakes import Mistake, of_all
from tests.public.runs.wrapper_trace import issued, lines, table

if TYPE_CHECKING:
    from torch import Tensor

KINDS = {
    "weight": "the parameter 'weight'",
    "gain": "the parameter 'gain'",
    "count": "the buffer 'count'",
    "inner.frozen": "the parameter 'inner.frozen', which requires no gradient,",
    "inner.mask": "the buffer 'inner.mask'",
    "inner.cache": "the buffer 'inner.cache', which is not in the state_dict,",
}
HEADERS = 4096  # bytes that whoever sends pickled objects may spend on what they are
SEND_ALL = "send every tensor of module.parameters() and of module.buffers(), whatever its requires_grad"
FROM_SRC = "the group_src of each broadcast is src"
SEND_ELEMENTS = "backends send memory, not elements: send tensor.contiguous(), and copy_ what came into the tensor"


def module_tensors(check: Check, rank: int, path: object) -> dict[str, Tensor]:
    """Parameters and buffers for the programs' `Outer`, of this rank's own values."""
    shapes = {
        "weight": ((40, 48), "float32"),
        "gain": ((5,), "float16"),
        "count": ((), "int64"),
        "inner.frozen": ((2, 2), "float64"),
        "inner.mask": ((9,), "bool"),
        "inner.cache": ((0, 3), "float32"),
    }
    if path != "no elements":
        shapes["inner.cache"] = ((2, 3), "float32")
    return {name: cases.tensor(check, rank, shape, dtype, (path, name)) for name, (shape, dtype) in shapes.items()}


def compare_sent(
    came: Mapping[int, Any], before: Mapping[int, Tensor], src: int, *, what: str, rank: int, **options: Any
) -> None:
    """One tensor after a broadcast from src in place: what came is that of src, bit for bit, on `rank` too.

    came, before: by rank, after and before.
    """
    slips = lambda: _slips(came, before, src, rank)  # noqa: E731  it is asked only where the value is wrong
    with expect.by_rank(came, dict.fromkeys(before, before[src])):
        expect.same(came[rank], before[src], what=what, rank=rank, slips=slips, **options)


def _slips(came: Mapping[int, Any], before: Mapping[int, Tensor], src: int, rank: int) -> list[Slip]:
    last = max(before)
    mistakes = [Mistake("this rank's own values, as before: it was not sent", SEND_ALL, before)]
    for root in dict.fromkeys([min(before), last]):
        gave = f"the values of rank {root}, not of rank {src}"
        mistakes.append(Mistake(gave, FROM_SRC, dict.fromkeys(before, before[root])))
    slips = of_all(mistakes, came, rank)
    return slips or out_of_place(came[rank], before[src], src)


def out_of_place(value: Any, root: Tensor, src: int) -> list[Slip]:
    """Where what came is made of src's values and nothing else, in other places."""
    import torch

    if not isinstance(value, ReturnedTensor) or value.tensor.shape != root.shape or root.numel() < 4:
        return []
    if root.dtype is torch.bool or not bool(torch.isin(value.tensor, root).all()):
        return []
    gave = f"the values of rank {src} in other places than there"
    return [Slip(gave, SEND_ELEMENTS, value.tensor)]


def expect_in_place(came: dict[str, Any], names: Mapping[str, Tensor], *, what: str, rank: int) -> None:
    """The tensors are the objects and the memory of before, tied and trainable as before."""
    in_place = expect.mapping(came.get("in place"), *names, what=what, rank=rank)
    for name in names:
        expect.true(
            in_place[name] is True,
            f"rank {rank}: {what} put another object or other memory in place of '{name}'",
            help="write into the tensor that is there (broadcast it, or copy_ into it)",
        )
    expect.true(came.get("requires_grad") is True, f"rank {rank}: {what} changed requires_grad")
    expect.true(came.get("tied") is True, f"rank {rank}: {what} untied two names of one parameter")


def expect_sent_once(check: Check, case: int, sizes: Mapping[str, int], src: int, *, what: str, rank: int) -> None:
    """A rank but src gets no more than what the module has. sizes: bytes by name, memory of two names once."""
    if rank == src:
        return
    sent = [operation for event in check.trace.of(rank, case) if (operation := issued(event)) is not None]
    own = [operation for operation in sent if operation.place.asker != "program"]
    came, most = sum(spec.num_bytes for operation in own for spec in operation.writes), sum(sizes.values())
    expect.true(
        came <= most + HEADERS,
        f"rank {rank}: {what} brings {came} bytes, and the module has {most}: some memory is sent twice",
        expected=lines([f"{name}: {num_bytes} bytes" for name, num_bytes in sizes.items() if num_bytes]),
        actual=table(own),
        help="a tied weight, or a view of a parameter, is the same memory under two names: look at where it lies "
        "(data_ptr), not at the name",
    )


def expect_sum(value: Any, size: int, *, what: str, rank: int) -> None:
    """An all-reduce of rank + 1 after the call met no other message."""
    import torch

    total = torch.tensor([size * (size + 1) / 2])
    expect.same(value, total, what=f"an all-reduce after {what}, which no other message may meet,", rank=rank)


def of_ranks(values: Sequence[Sequence[Any]], number: int, *keys: str) -> dict[int, Any]:
    """By rank: what stands under these keys, one below the other, in the value of this number; None for nothing."""
    return {rank: under(by_number[number], *keys) for rank, by_number in enumerate(values)}


def under(value: Any, *keys: str) -> Any:
    """What stands under these keys, one below the other; None for nothing."""
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value
