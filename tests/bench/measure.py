"""Timing a thing against another in turn, so that a drift of the machine's speed meets both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def seconds_of(action: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def medians_in_turn(actions: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each action over `rounds`, called A B C A B C …, after one round that does not count."""
    for action in actions:
        action()
    times = [[seconds_of(action) for action in actions] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]
