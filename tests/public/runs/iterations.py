"""The order of calls in time_collective: what an iteration is, and what a wrong one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.checking import CheckFailed, expect
from tests.public.runs.told import Told

ITERATION = ("synchronize", "barrier", "clock", "run", "synchronize", "clock")
TIMED = "what stands between the two readings of the clock is measured, all else is not"
BARRIER_IS_TIMED = "a barrier between the two readings is measured too, and it costs as much as a small all-reduce"
RETURNS_EARLY = "a GPU's call returns before its work is done: synchronize before the clock is read"
SYNCHRONIZE_FIRST = "synchronize, then barrier: after a barrier alone, each rank would still wait for its own device"
MEET = "meet at the barrier before the clock is read, so that all ranks start together"
NOT_DONE = "run the operation asked for; an asynchronous one is done when its handle was waited for"
WARM_UP = "the first calls pay for set-up: run a few times before you time, and read no clock meanwhile"


def expect_order(events: Any, *, warmup: int, iterations: int, what: str) -> None:
    """The names of what time_collective called are those of the warm-up and of each iteration, in order."""
    wanted = ["run"] * warmup + list(ITERATION) * iterations
    readable = isinstance(events, list) and all(type(one) is str and one in ITERATION for one in events)
    if events == wanted or not readable:
        expect.same(events, wanted, what=f"the list of calls in {what}", rank=0)
        return
    told = order_told(events, warmup=warmup, iterations=iterations)
    shown = warmup + 2 * len(ITERATION)
    raise CheckFailed(
        f"rank 0: {what} {told.did}",
        expected=f"run {warmup} times, then in each iteration: {', '.join(ITERATION)}",
        actual=", ".join(events[:shown]) + (", …" if len(events) > shown else ""),
        help=told.help,
    )


def order_told(events: Sequence[str], *, warmup: int, iterations: int) -> Told:
    """What the first wrong call means. The events are not those that are wanted."""
    wanted = ["run"] * warmup + list(ITERATION) * iterations
    pairs = enumerate(zip(events, wanted, strict=False))
    first = next((place for place, (came, right) in pairs if came != right), min(len(events), len(wanted)))
    if first >= min(len(events), len(wanted)):
        return Told(f"calls {len(events)} functions in all, not {len(wanted)}", TIMED)
    if first < warmup:
        return _warm_up_told(events, first, warmup=warmup, iterations=iterations)
    number, step = divmod(first - warmup, len(ITERATION))
    if number == 0 and step == 0 and events[first] == "run":
        return Told(f"warms up with more calls of run() than {warmup}", "warm up as often as `warmup` says")
    return _iteration_told(events[first:], step, number)


def _warm_up_told(events: Sequence[str], first: int, *, warmup: int, iterations: int) -> Told:
    readings = list(events).count("clock")
    if readings == 2 * (warmup + iterations):
        return Told(
            f"times the warm-up as well: it reads the clock {readings} times, not {2 * iterations}",
            "warm up with run() alone: no clock, no synchronize, no barrier",
        )
    if first == 0:
        return Told(
            f"does not warm up: its first call is {events[0]}, where run() alone {warmup} times is due", WARM_UP
        )
    return Told(
        f"warms up with {first} calls of run() alone, not {warmup}: call {first + 1} is {events[first]}", WARM_UP
    )


def _iteration_told(came: Sequence[str], step: int, number: int) -> Told:
    """came: from the first wrong call on, which is call `step` of this iteration."""
    one = f"iteration {number}"
    match step, list(came[:2]):
        case 0, ["barrier", "synchronize"]:
            return Told(f"calls barrier before synchronize in {one}", SYNCHRONIZE_FIRST)
        case 0, ["barrier", *_]:
            return Told(f"does not synchronize before the barrier of {one}", SYNCHRONIZE_FIRST)
        case 0, ["clock", *_]:
            return Told(f"reads the clock in {one} with no synchronize and no barrier before it", MEET)
        case 1, ["clock" | "run", *_]:
            return Told(f"does not meet at the barrier before the clock of {one}", MEET)
        case ((3 | 4 | 5), ["barrier", *_]):
            return Told(
                f"calls barrier between the two readings of the clock in {one}, so it is timed", BARRIER_IS_TIMED
            )
        case ((3 | 4 | 5), ["run", *_]):
            return Told(f"calls run() again between the two readings of the clock in {one}", TIMED)
        case 4, ["clock", *_]:
            return Told(f"stops the clock of {one} after run() without synchronize", RETURNS_EARLY)
    return Told(f"calls {came[0]} as call {step + 1} of {one}, not {ITERATION[step]}", TIMED)


def before_told(came: Sequence[str], met: Sequence[int], members: Sequence[int], *, passed: bool) -> Told:
    """What is wrong before benchmark_collective reads the clock.

    met: the ranks of the last barrier's group. members: of the right one. passed: both are arguments.
    """
    own = "" if passed else "; None means grader.given.synchronize(device) and dist.barrier(group=group)"
    match list(came[-2:]):
        case ["synchronize", "barrier"]:
            of = f"of ranks {list(met)}, where the group is {list(members)},"
            return Told(f"meets at a barrier {of}", f"{MEET}{own}")
        case ["barrier", "synchronize"]:
            return Told("calls barrier before synchronize", f"{SYNCHRONIZE_FIRST}{own}")
        case [*_, "barrier"]:
            return Told("does not synchronize before the barrier", f"{SYNCHRONIZE_FIRST}{own}")
    return Told("does not meet at a barrier right before the clock is read", f"{MEET}{own}")


def between_told(came: Sequence[str], operation: str) -> Told:
    """What is wrong between its two readings of the clock, where `operation` and synchronize belong."""
    if "barrier" in came:
        return Told("calls barrier between the two readings of the clock, so it is timed,", BARRIER_IS_TIMED)
    match list(came).count(operation):
        case 0:
            return Told(f"stops the clock before its {operation} is done", NOT_DONE)
        case 1 if list(came) == [operation]:
            return Told(f"stops the clock after the {operation} without synchronize", RETURNS_EARLY)
        case 1:
            return Told(f"times more than the {operation} and synchronize", TIMED)
        case times:
            return Told(f"times {times} of {operation}, not one,", TIMED)
