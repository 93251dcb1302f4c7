"""What a student did, in words: the first line of a failure, where the judge can tell from the values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.checking import CheckFailed, expect
from grader.world.values import ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

UNWRITTEN = "there are NaNs: memory was read before it was written, or before the operation was done"
IN_PLACE = "torch's own collectives work in place and return None: keep the tensor, and return that"
LARGEST = 1e300  # a larger number is none of ours
HINTS = {
    "'NoneType' object": f"where does the None come from? {IN_PLACE}",
    "is not part of group": "roots and peers are ranks in the group: pass them as group_src, group_dst or group_peer",
    "is the source and passed None": "the source is src, whatever rank that is: is another one taken for it?",
    "Number of tensor splits not equal": "a list of sizes has one entry for each rank of the group: is it passed on?",
    "Split sizes doesn't match": "the sizes to send add up to the rows that this rank sends, on each of the two ways",
    "Pair is not connected": "there is no such connection: a rank does not send to itself, and in a group peers are "
    "ranks in the group",
}


class Told(NamedTuple):
    """What happened, and one thing to try.

    did: completes "rank 1: broadcast(src=1) …", e.g. "gave rank 0's tensor, not rank 1's".
    """

    did: str
    help: str = ""


@contextmanager
def explained(tell: Callable[[], Told | None], *, what: str, rank: int) -> Iterator[None]:
    """What fails inside is told by `tell`, which is called only then, and may not know: None."""
    try:
        yield
    except CheckFailed as failed:
        told = tell()
        if told is None:
            raise
        came = failed.explanation
        raise CheckFailed(
            f"rank {rank}: {what} {told.did}",
            expected=came.expected,
            actual=came.actual,
            help=told.help or came.help,
            wrong_values=failed.wrong_values,
        ) from None


def hinting() -> AbstractContextManager[None]:
    """A world that failed gets a hint where torch's error has a frequent cause that it does not tell."""
    return expect.hinting(HINTS)


def number_told(value: Any, guesses: Sequence[tuple[float, Told]]) -> Told | None:
    """The first guess whose number this is, up to rounding."""
    if type(value) not in (int, float) or not abs(value) < LARGEST or not value:
        return None
    return next((told for number, told in guesses if number and abs(value - number) <= 1e-9 * abs(number)), None)


def tensor_of(value: Any) -> Tensor | None:
    """The tensor that a rank returned, if it is one."""
    return value.tensor if isinstance(value, ReturnedTensor) else None


def tolerance(expected: Tensor) -> float:
    """The largest difference that rounding explains: none for whole numbers, and none for half precision.

    Tighter than what a check allows: what is told must be so, and what is not told costs nothing.
    """
    name = str(expected.dtype).removeprefix("torch.")
    if name not in ("float32", "complex64", "float64", "complex128") or not expected.numel():
        return 0.0
    largest = float(expected.abs().max())
    return (2e-6 if name in ("float32", "complex64") else 1e-9) * largest if isfinite(largest) else 0.0


def near(came: Tensor, wanted: Tensor) -> bool:
    """Whether two tensors of one dtype are the same up to rounding; there is at least one number."""
    if came.shape != wanted.shape or came.dtype != wanted.dtype or not came.numel():
        return False
    return bool(agree(came, wanted, tolerance(wanted)).all())


def agree(came: Tensor, wanted: Tensor, allowed: float) -> Tensor:
    """Element by element, whether the difference is allowed; False for NaN."""
    return came == wanted if not allowed else (came - wanted).abs() <= allowed
