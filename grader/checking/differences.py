"""How a wrong value is explained: which numbers, by which factor, and which classic mistake gives exactly these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.checking.failed import CheckFailed
from grader.checking.show import tensor_text, value_text
from grader.world.values import ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

# How far a right value may be off, as a share of the largest number: by dtype.
RTOL = {
    "float64": 1e-9,
    "float32": 1e-5,
    "float16": 2e-2,
    "bfloat16": 5e-2,
    "complex64": 1e-5,
    "complex128": 1e-9,
}
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
COARSER = {"float64": "float32", "complex128": "complex64"}


class Slip(NamedTuple):
    """What a classic mistake would have given: a value that equals it is explained by it.

    gave:  completes "rank 1: the gradient of weight gave …", e.g. "the sum over the ranks, not their mean".
    help:  one thing to try, e.g. "divide by the world size, once".
    value: a tensor, or a plain value (a float is compared to within rounding).
    """

    gave: str
    help: str
    value: Any


# A function, or a generator, is asked only where a value is wrong.
Slips = Iterable[Slip] | Callable[[], Iterable[Slip]]


def explained(came: Any, expected: Any, slips: Slips, *, text: str, what: str, rank: int) -> CheckFailed | None:
    """The failure of a wrong value by the first slip that gives all of it, or None where no slip does.

    text: what was expected, for the message. A slip that gives the value expected explains nothing.
    """
    try:
        for slip in slips() if callable(slips) else slips:
            if explains(slip, came) and not explains(slip, expected):
                gave, actual = f"rank {rank}: {what} gave {slip.gave}", value_text(came)
                return CheckFailed(gave, expected=text, actual=actual, help=slip.help, wrong_values=True)
    except UNFORESEEN:
        return None  # slips compute with what came, which can be anything; wrong it is all the same
    return None


def explains(slip: Slip, came: Any) -> bool:
    """Whether what came is what this slip gives, to within what its dtype allows a right value to be off."""
    came = came.tensor if isinstance(came, ReturnedTensor) else came
    wrong = slip.value
    if not hasattr(wrong, "numel"):
        if type(wrong) is float and type(came) is float:
            return abs(came - wrong) <= 1e-12 * abs(wrong)
        return type(came) is type(wrong) and bool(came == wrong)
    import torch

    if not isinstance(came, torch.Tensor) or wrong.shape != came.shape or wrong.dtype != came.dtype:
        return False
    if not (wrong.is_floating_point() or wrong.is_complex()):
        return torch.equal(wrong, came)
    return _alike(came, wrong, _rtol(wrong))


def wrong_values(
    came: Tensor, expected: Tensor, right: Tensor, *, what: str, rank: int, slips: Slips = ()
) -> CheckFailed:
    """The failure of a tensor that is not `right` everywhere; it names the first slip that explains all of it."""
    failed = explained(came, expected, slips, text=tensor_text(expected), what=what, rank=rank)
    if failed is not None:
        return failed
    wrong = int((~right).sum())
    first = int((~right).reshape(-1).nonzero()[0]) if right.dim() else 0
    where = f", the first at index {first} of the flattened tensor" if came.numel() > 1 else ""
    return CheckFailed(
        f"rank {rank}: {what} gave wrong values ({wrong} of {came.numel()}{where})",
        expected=tensor_text(expected),
        actual=tensor_text(came),
        help=_hint(came, expected),
        wrong_values=True,
    )


def _hint(came: Tensor, expected: Tensor) -> str:
    """What the numbers alone tell: memory never written, another precision, one factor; or ""."""
    import torch

    if not (came.is_floating_point() or came.is_complex()):
        return ""
    if bool(torch.isnan(came).any()) and not bool(torch.isnan(expected).any()):
        return "there are NaNs: memory was read before it was written, or before the operation was done"
    kind = _kind(expected)
    if kind in COARSER and _alike(came, expected, 1e-6):
        return f"right to the precision of {COARSER[kind]} and not of {kind}: did it go through another dtype?"
    return _common_ratio(came, expected)


def _alike(came: Tensor, wanted: Tensor, rtol: float) -> bool:
    """Whether every number is within rtol · max|wanted|; the shapes are the same."""
    import torch

    if not wanted.numel():
        return True
    wide = torch.complex128 if wanted.is_complex() else torch.float64
    difference = (came.to(wide) - wanted.to(wide)).abs()
    return bool((difference <= rtol * wanted.to(wide).abs().max()).all())  # False where one is NaN


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _rtol(tensor: Tensor) -> float:
    return RTOL.get(_kind(tensor), 0.0)


def _common_ratio(came: Tensor, expected: Tensor) -> str:
    """A hint where all values are wrong by one factor, as a missing or repeated division leaves them."""
    import torch

    wide = torch.complex128 if expected.is_complex() else torch.float64
    have, want = came.to(wide).reshape(-1).abs(), expected.to(wide).reshape(-1).abs()
    large = want > 1e-3 * want.max()
    ratios = have[large] / want[large]
    if ratios.numel() < 2 or not bool(torch.isfinite(ratios).all()):
        return ""
    ratio = float(ratios.median())
    if abs(ratio - 1) < 1e-3 or not ratio or not _alike(have, want * ratio, 10 * _rtol(expected)):
        return ""
    return ratio_help(ratio, 1.0)


def ratio_help(value: float, expected: float) -> str:
    """A hint that names the factor between a value and the one expected; "" where there is none."""
    if not expected or not value or value != value:
        return ""
    ratio = abs(value / expected)
    if not ratio:
        return ""  # a number so small that the quotient is none
    if ratio > 1:
        return f"every value is too large by the factor {ratio:.6g}"
    return f"every value is too small by the factor {1 / ratio:.6g}"
