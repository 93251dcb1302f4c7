"""Calls of functions without effects, in one process that is in no group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from grader.checking import Check, expect


@dataclass(frozen=True)
class Call:
    """A function of the submission, by name, and its arguments."""

    function: str
    arguments: Sequence[Any]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The call as one would write it."""
        words = [_text(each) for each in self.arguments]
        words += [f"{name}={_text(each)}" for name, each in self.keywords.items()]
        return f"{self.function}({', '.join(words)})"


def _text(argument: Any) -> str:
    """As in Python; large numbers with their digits in groups."""
    if type(argument) is int:
        return f"{argument:_}"
    if type(argument) is Fraction:
        return f"Fraction({argument.numerator:_}, {argument.denominator:_})"
    return repr(argument)


def call(check: Check, calls: Sequence[Call], *, refused: bool = False) -> list[tuple[str, Any]]:
    """The text and the outcome of each call. refused: they are to raise, and the outcome is as `attempt` has it."""
    names = [each.text for each in calls]
    (values,) = check.run(
        1,
        "pure.call",
        cases=names,
        joined=False,
        calls=[
            {
                "function": each.function,
                "arguments": list(each.arguments),
                "keywords": dict(each.keywords),
                "refused": refused,
            }
            for each in calls
        ],
    )
    for what, value, each in zip(names, values, calls, strict=True):
        after = expect.mapping(value, "arguments", what=what, rank=0)["arguments"]
        expect.same(after, list(each.arguments), what=f"the arguments after {what}", rank=0)
    return list(zip(names, values, strict=True))


def expect_values(check: Check, right: Sequence[tuple[Call, Any]]) -> None:
    """Each call returns this value, of this type (an int will do for a Fraction)."""
    values = call(check, [each for each, _ in right])
    for (what, value), (_, wanted) in zip(values, right, strict=True):
        expect.same(value.get("value"), wanted, what=what, rank=0)


def expect_numbers(check: Check, right: Sequence[tuple[Call, float]]) -> None:
    """Each call returns this number, as a float, up to rounding."""
    values = call(check, [each for each, _ in right])
    for (what, value), (_, wanted) in zip(values, right, strict=True):
        expect.number(value.get("value"), wanted, what=what, rank=0)


def expect_refused(check: Check, wrong: Sequence[tuple[Call, str]]) -> None:
    """Each call raises a ValueError whose message holds this text."""
    values = call(check, [each for each, _ in wrong], refused=True)
    for (what, value), (_, naming) in zip(values, wrong, strict=True):
        expect.raised(value, "ValueError", what=what, rank=0, naming=[naming])
