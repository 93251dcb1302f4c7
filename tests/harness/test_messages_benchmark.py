"""The first line of a failed check of benchmark.py says what the student did."""

from __future__ import annotations

import pytest

from grader.world import Launcher
from tests.harness import mutation
from tests.public.runs.iterations import ITERATION, order_told

CHECKS = mutation.checks()
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("benchmark")}
FIRST_LINES = {
    "all_reduce_returns_nothing": "'NoneType' object has no attribute",
    "no_synchronize_before": "does not synchronize before the barrier of iteration 0",
    "no_synchronize_at_the_end": "stops the clock of iteration 0 after run() without synchronize",
    "no_synchronize_of_its_own": "does not synchronize before the barrier in iteration 0",
    "no_warm_up": "time_collective(warmup=3, iterations=2) does not warm up: its first call is synchronize",
    "warm_up_is_timed": "times the warm-up as well: it reads the clock 10 times, not 4",
    "barrier_is_timed": "calls barrier between the two readings of the clock in iteration 0, so it is timed",
    "times_the_launch": "never waits for the handle of its asynchronous all_reduce, nor for",
    "waits_for_the_run_before": "stops the clock before its all_reduce is done in iteration 0",
    "two_in_one": "times 2 of all_reduce, not one, in iteration 0",
    "barrier_of_the_world": "meets at a barrier of ranks [0, 1, 2, 3, 4], where the group is [0, 3], in iteration 0",
    "allocates_while_timed": "uses other memory in some iterations: it is allocated while it is timed",
    "bytes_of_the_output": "gave a number too small by 4, the world size",
    "size_of_the_smaller_side": "counts the bytes of one piece of all_gather: too small by 2, the world size",
    "four_bytes_each": "counts 4 bytes for each element, where int64 has 8",
    "kibibytes": "gave num_bytes in units of 1024 bytes",
    "bandwidth_in_gibibytes": "gave the bandwidth in GiB/s: divided by 1024³, not in bytes/s",
    "barrier_then_synchronize": "calls barrier before synchronize in iteration 0",
    "mean_over_ranks": "gave as seconds the median over iterations of the mean over ranks",
    "seconds_since_the_start": "counts from the first reading of the clock, not from its own",
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_the_first_line_says_what_was_done(name: str, launcher: Launcher) -> None:
    mutant = MUTANTS[name]
    verdict = mutation.verdict_of(CHECKS[mutant.fails[0]], mutation.edited("benchmark", mutant), launcher)
    assert verdict.explanation
    assert FIRST_LINES[name] in verdict.explanation.rationale
    assert verdict.explanation.help


def test_any_wrong_order_is_told() -> None:
    right = ["run", "run", *ITERATION, *ITERATION]
    for place in range(len(right)):
        before, after = right[:place], right[place + 1 :]
        for names in ([], *([name] for name in ITERATION), *([name, right[place]] for name in ITERATION)):
            events = [*before, *names, *after]
            if events != right:
                assert order_told(events, warmup=2, iterations=2).did
    assert order_told([], warmup=2, iterations=2).did == "calls 0 functions in all, not 14"
