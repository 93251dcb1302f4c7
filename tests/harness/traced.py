"""What the tests of the traced group share: how a world of theirs ends, and how they write plain tensors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grader.world import Failure, Returned, Trace
from grader.world.values import ReturnedTensor

PROGRAM = ("program",)  # who asks, where a program has no submission


def returned(outcome: Returned | Failure) -> Returned:
    assert isinstance(outcome, Returned), str(outcome)
    return outcome


def failed(outcome: Returned | Failure) -> Failure:
    assert isinstance(outcome, Failure), outcome.values
    return outcome


def plain(value: Any) -> Any:
    """The value with bare tensors in it."""
    if isinstance(value, ReturnedTensor):
        return value.tensor
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(entry) for entry in value)
    return value


def same(value: Any, expected: Any) -> bool:
    """Whether the values are equal; tensors in dtype, shape and every bit."""
    if isinstance(expected, Tensor):
        equal = isinstance(value, Tensor) and value.dtype == expected.dtype and value.shape == expected.shape
        return equal and bool(((value == expected) | ((value != value) & (expected != expected))).all())
    if isinstance(expected, dict):
        return value.keys() == expected.keys() and all(same(value[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(value) == len(expected) and all(map(same, value, expected))
    return bool(value == expected)


def names(trace: Trace) -> list[str]:
    """What was asked for, in order."""
    return [operation.name for operation in trace.issued(by=PROGRAM)]
