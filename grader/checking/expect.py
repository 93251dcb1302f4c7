"""What a check expects of a returned value. Each function returns nothing when it holds, and raises CheckFailed.

Comparisons are of bytes, dtype and shape in the judge's own memory, lengths first; NaN is never equal to anything
unless it was expected in the same place. `what` names the call, e.g. "broadcast(src=1)".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from grader.checking.differences import RTOL, Slips, explained, ratio_help, wrong_values
from grader.checking.failed import CheckFailed
from grader.checking.rank_tables import rank_tables
from grader.checking.show import tensor_text, value_text
from grader.world.failure import printable
from grader.world.values import Foreign, ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_NUMBER = 2**1000  # a larger int is none of our numbers, and overflows a float


def tensor(value: Any, *, what: str, rank: int, contiguous: bool = True, outside_autograd: bool = True) -> Tensor:
    """The tensor that a rank returned. Fails for anything else, and for one that is not contiguous or in autograd."""
    if not isinstance(value, ReturnedTensor):
        came = "None" if value is None else value_text(value)
        raise CheckFailed(f"rank {rank}: {what} did not return a tensor", expected="a torch.Tensor", actual=came)
    if contiguous and not value.contiguous:
        raise CheckFailed(
            f"rank {rank}: {what} returned a tensor that is not contiguous",
            expected="a contiguous tensor",
            actual=f"a view of shape {tuple(value.tensor.shape)} with gaps or in another order",
            help="return tensor.contiguous(), or write into a fresh tensor",
        )
    if outside_autograd and value.requires_grad:
        raise CheckFailed(
            f"rank {rank}: the result of {what} takes part in autograd",
            expected="a tensor with requires_grad False",
            actual="a tensor with requires_grad True",
            help="work on tensor.detach(), or under torch.no_grad()",
        )
    return value.tensor


def same(value: Any, expected: Any, *, what: str, rank: int, slips: Slips = (), **options: Any) -> None:
    """The value is exactly `expected`: the same bits for tensors (dtype and shape too), `==` of one type for others.

    slips:   what classic mistakes would give, for the message; a function is called only where the value is wrong.
    options: contiguous, outside_autograd (see `tensor`).
    """
    if not _is_tensor(expected):
        _same_plain(value, expected, what=what, rank=rank, slips=slips)
        return
    came = tensor(value, what=what, rank=rank, **options)
    _same_form(came, expected, what=what, rank=rank, slips=slips)
    import torch

    equal = torch.eq(came, expected)
    if expected.is_floating_point() or expected.is_complex():
        equal |= torch.isnan(came) & torch.isnan(expected)
    if not bool(equal.all()):
        raise wrong_values(came, expected, equal, what=what, rank=rank, slips=slips)


def close(
    value: Any,
    expected: Tensor,
    *,
    what: str,
    rank: int,
    rtol: float | None = None,
    scale: float | None = None,
    slips: Slips = (),
    **options: Any,
) -> None:
    """The tensor equals `expected` to within rtol · max|expected| in every element, with its dtype and shape.

    The tolerance follows the largest expected number, so zeros never pass for numbers. rtol: by dtype if None.
    scale: stands for max|expected| where `expected` is a part of something larger, and may be small by cancellation.
    slips: what classic mistakes would give, for the message; a function is called only where the value is wrong.
    NaN and infinities fail. Integer and boolean tensors are compared exactly.
    """
    if not (expected.is_floating_point() or expected.is_complex()):
        same(value, expected, what=what, rank=rank, slips=slips, **options)
        return
    import torch

    came = tensor(value, what=what, rank=rank, **options)
    _same_form(came, expected, what=what, rank=rank, slips=slips)
    if expected.numel() == 0:
        return
    wide = torch.complex128 if expected.is_complex() else torch.float64
    rtol = rtol if rtol is not None else RTOL[str(expected.dtype).removeprefix("torch.")]
    difference = (came.to(wide) - expected.to(wide)).abs()
    scale = scale if scale is not None else float(expected.to(wide).abs().max())
    within = difference <= rtol * scale  # False where the difference is NaN
    if not bool(within.all()):
        raise wrong_values(came, expected, within, what=what, rank=rank, slips=slips)


def number(value: Any, expected: float, *, what: str, rank: int, rtol: float = 1e-12, slips: Slips = ()) -> None:
    """A float (an int will do) that is `expected` up to rtol · |expected|. slips: as in `close`."""
    is_number = type(value) is float or (type(value) is int and abs(value) < LARGEST_NUMBER)
    if not is_number or not abs(value - expected) <= rtol * abs(expected):
        told = explained(value, expected, slips, text=repr(expected), what=what, rank=rank) if is_number else None
        raise told or CheckFailed(
            f"rank {rank}: {what} is not the number expected",
            expected=repr(expected),
            actual=value_text(value),
            help=ratio_help(value, expected) if is_number else "return a float",
        )


def sequence(
    value: Any, length: int, *, what: str, rank: int, kind: type[list[Any]] | type[tuple[Any, ...]] = list
) -> Sequence[Any]:
    """A list (or tuple, if `kind` says so) of exactly `length` entries."""
    if type(value) is not kind or len(value) != length:
        raise CheckFailed(
            f"rank {rank}: {what} did not return a {kind.__name__} of {length}",
            expected=f"a {kind.__name__} of {length}",
            actual=f"{value_text(value)}",
        )
    return value


def mapping(value: Any, *keys: str, what: str, rank: int) -> dict[str, Any]:
    """The dict that a program of ours returned, with these keys. Fails if the submission spoilt it."""
    if type(value) is not dict or not set(keys) <= value.keys():
        raise CheckFailed(f"rank {rank}: {what} returned no result that can be read", actual=value_text(value))
    return value


def raised(value: Any, error: str, *, what: str, rank: int, naming: Sequence[str] = ()) -> None:
    """`attempt` caught an error of class `error` (e.g. "ValueError") whose message holds each of `naming`."""
    outcome = mapping(value, what=what, rank=rank)
    classes = outcome.get("raised")
    if not isinstance(classes, list) or not classes:
        raise CheckFailed(
            f"rank {rank}: {what} raised nothing",
            expected=error,
            actual=f"it returned {value_text(outcome.get('value'))}",
            help=_error_help(error),
        )
    if error not in classes:
        raise CheckFailed(
            f"rank {rank}: {what} raised the wrong kind of error",
            expected=error,
            actual=f"{value_text(classes[0])}: {value_text(outcome.get('message'))}",
            help=_error_help(error),
        )
    message = str(outcome.get("message"))
    missing = [name for name in naming if name not in message]
    if missing:
        raise CheckFailed(
            f"rank {rank}: the {error} of {what} does not name what came and what was expected",
            expected=f"a message that holds {', '.join(missing)}",
            actual=value_text(message),
        )


def _error_help(error: str) -> str:
    if error == "ValueError":
        return "check the argument first and raise a ValueError before anything is sent"
    return f"raise a {error} that says what to do instead"


def returned(value: Any, *, what: str, rank: int) -> Any:
    """The value that `attempt` took: fails where the call raised."""
    outcome = mapping(value, what=what, rank=rank)
    if "raised" in outcome:
        raise CheckFailed(
            f"rank {rank}: {what} raised {_first_class(outcome['raised'])}",
            expected="no error",
            actual=value_text(outcome.get("message")),
        )
    return outcome.get("value")


def true(condition: bool, rationale: str, **fields: Any) -> None:
    """Fails with `rationale` (and `expected`, `actual`, `help`) unless the condition holds."""
    if not condition:
        raise CheckFailed(rationale, **fields)


@contextmanager
def helping(text: str) -> Iterator[None]:
    """What fails inside and has no help of its own gets `text`: what this mistake usually comes from."""
    try:
        yield
    except CheckFailed as failed:
        if not failed.explanation.help:
            failed.explanation = replace(failed.explanation, help=text)
        raise


@contextmanager
def hinting(hints: Mapping[str, str]) -> Iterator[None]:
    """What fails inside gets the hint of the first text that its rationale holds, if it has no help of its own."""
    try:
        yield
    except CheckFailed as failed:
        rationale = failed.explanation.rationale
        with helping(next((hint for text, hint in hints.items() if text in rationale), "")):
            raise


@contextmanager
def by_rank(came: Mapping[int, Any], expected: Mapping[int, Any]) -> Iterator[None]:
    """Where numbers that fail inside are wrong, those of all ranks are shown: a table of each, by rank.

    came, expected: of the ranks that the comparison is about, which may be one. What came is not looked at before
    something fails.
    """
    try:
        yield
    except CheckFailed as failed:
        if failed.wrong_values:
            actual, wanted = rank_tables(came, expected)
            failed.explanation = replace(failed.explanation, expected=wanted, actual=actual)
        raise


def _first_class(classes: Any) -> str:
    """The name of the error that `attempt` caught, or what stands in its place."""
    first = classes[0] if isinstance(classes, list) and classes else classes
    return printable(first, 100) if type(first) is str else value_text(first)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__ == "torch" and hasattr(value, "numel")


def _same_plain(value: Any, expected: Any, *, what: str, rank: int, slips: Slips) -> None:
    exact = type(value) is type(expected) or (type(expected) is Fraction and type(value) is int)
    if not exact or value != expected:
        told = explained(value, expected, slips, text=_typed(expected), what=what, rank=rank)
        raise told or CheckFailed(
            f"rank {rank}: {what} did not return {value_text(expected)}",
            expected=_typed(expected),
            actual=_typed(value),
        )


def _typed(value: Any) -> str:
    """The value as text, with its type's name where the text does not tell it."""
    told = value is None or isinstance(value, (ReturnedTensor, Foreign, Fraction))
    return value_text(value) if told else f"{type(value).__name__} {value_text(value)}"


def _same_form(came: Tensor, expected: Tensor, *, what: str, rank: int, slips: Slips) -> None:
    for part in ("shape", "dtype"):
        have, want = getattr(came, part), getattr(expected, part)
        if have != want:
            text = tuple if part == "shape" else str
            told = explained(came, expected, slips, text=tensor_text(expected), what=what, rank=rank)
            raise told or CheckFailed(
                f"rank {rank}: the result of {what} has the wrong {part}",
                expected=f"{part} {text(want)}",
                actual=f"{part} {text(have)}",
            )
