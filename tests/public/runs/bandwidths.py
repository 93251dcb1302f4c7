"""Calls of the two bandwidths of benchmark.py, and what their wrong numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from grader.checking import Check, expect
from tests.public.oracles import benchmark as oracle
from tests.public.runs import pure
from tests.public.runs.told import Told, explained, number_told

UNITS = {
    1024**3: "GiB/s: divided by 1024³",
    10**9: "GB/s: divided by 10⁹",
    1024**2: "MiB/s: divided by 1024²",
    10**6: "MB/s: divided by 10⁶",
    1024: "KiB/s: divided by 1024",
    1000: "kB/s: divided by 1000",
    1 / 8: "bits per second: multiplied by 8",
}


def expect_algorithm_bandwidths(check: Check, right: Sequence[tuple[int, float]]) -> None:
    """For each (num_bytes, seconds) the function returns bytes per second."""
    calls = [pure.Call("algorithm_bandwidth", each) for each in right]
    for (what, outcome), (num_bytes, seconds) in zip(pure.call(check, calls), right, strict=True):
        value = outcome.get("value")
        with explained(partial(algorithm_told, value, num_bytes, seconds), what=what, rank=0):
            expect.number(value, num_bytes / seconds, what=what, rank=0)


def expect_bus_bandwidths(check: Check, right: Sequence[tuple[str, int, float, int]]) -> None:
    """For each (operation, num_bytes, seconds, world_size) the function returns the bus bandwidth."""
    calls = [pure.Call("bus_bandwidth", each) for each in right]
    for (what, outcome), each in zip(pure.call(check, calls), right, strict=True):
        value = outcome.get("value")
        with explained(partial(bus_told, value, *each), what=what, rank=0):
            expect.number(value, oracle.bus_bandwidth(*each), what=what, rank=0)


def algorithm_told(value: Any, num_bytes: int, seconds: float) -> Told | None:
    """What a wrong algorithm bandwidth is."""
    right = num_bytes / seconds
    plain = "return num_bytes / seconds: the unit of a table is the table's business, and there GB means 10⁹ bytes"
    guesses = [
        (right / unit, Told(f"gave the bandwidth in {name}, not in bytes/s", plain)) for unit, name in UNITS.items()
    ]
    guesses += [(seconds / num_bytes, Told("gave seconds per byte", plain))] if num_bytes else []
    guesses += [(num_bytes * seconds, Told("gave the bytes times the seconds", plain))]
    return number_told(value, guesses)


def bus_told(value: Any, operation: str, num_bytes: int, seconds: float, world_size: int) -> Told | None:
    """What a wrong bus bandwidth is."""
    algorithm, right = num_bytes / seconds, oracle.bus_bandwidth(operation, num_bytes, seconds, world_size)
    if world_size == 1:
        same = Told("gave the algorithm bandwidth in a world of 1", "a rank alone moves nothing: 0.0")
        return number_told(value, [(algorithm, same)])
    share = (world_size - 1) / world_size
    factor = "look up the factor of each operation: 2(W−1)/W for all-reduce, (W−1)/W for three of them, 1 for two"
    whole = "S is the whole array: the input of a reduce-scatter, the output of an all-gather; it is not divided again"
    wrong = [
        (right / world_size, f"gave a number too small by {world_size}, the world size", whole),
        (right * world_size, f"gave a number too large by {world_size}, the world size", whole),
        (algorithm, f"gave the algorithm bandwidth, without the factor of {operation}", factor),
        (
            2 * share * algorithm,
            f"gave 2(W−1)/W of the algorithm bandwidth, the factor of all_reduce (W={world_size})",
            factor,
        ),
        (
            share * algorithm,
            f"gave (W−1)/W of the algorithm bandwidth, the factor of all_gather (W={world_size})",
            factor,
        ),
    ]
    guesses = [(number, Told(did, help)) for number, did, help in wrong]
    plain = "leave the unit alone: num_bytes / seconds, times the factor"
    guesses += [
        (right / unit, Told(f"gave the bandwidth in {name}, not in bytes/s", plain)) for unit, name in UNITS.items()
    ]
    return number_told(value, guesses)
