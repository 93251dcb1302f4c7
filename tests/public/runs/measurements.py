"""Runs of benchmark_collective on every rank of a world, with clocks that differ by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from tests.public.oracles import benchmark as oracle
from tests.public.runs.measured import Measured, Run
from tests.public.runs.timed import Step, shown, steps_of
from tests.public.runs.told import hinting
from tests.public.runs.traffic import Traffic


def durations(check: Check, size: int, iterations: int, path: object) -> list[list[float]]:
    """Seconds by rank and iteration: another rank is the slowest each time, and all are exact in float32.

    The slowest times are not in order, and no rank's own median is theirs.
    """
    import torch

    numbers = torch.randint(1, 200, (size, iterations), generator=check.generator(size, iterations, path))
    slow = torch.randperm(iterations, generator=check.generator(size, iterations, path, "slow"))
    for iteration in range(iterations):
        numbers[iteration % size, iteration] = 1000 + 300 * int(slow[iteration]) + int(numbers[0, iteration])
    return [[int(number) / 1024 for number in own] for own in numbers]


def measure(
    check: Check, world_size: int, runs: Sequence[Run], *, groups: Sequence[Sequence[int]] = ()
) -> list[Measured]:
    """Makes the runs in one world, whose ranks' clocks differ; calls that must raise are compared here.

    groups: those of the runs with group "own" or "other"; every rank is in one of them.
    """
    everyone = list(range(world_size))
    own_group = {rank: next((list(ranks) for ranks in groups if rank in ranks), everyone) for rank in everyone}
    seconds = [durations(check, world_size, max(run.num_iterations, 0), number) for number, run in enumerate(runs)]
    with hinting():
        values = check.run(
            world_size,
            "benchmark.benchmark_collective",
            cases=[run.title for run in runs],
            calls=[
                {
                    "operation": run.operation,
                    "num_elements": run.num_elements,
                    "dtype": run.dtype,
                    "counts": run.counts,
                    "injected": run.injected,
                    "group": run.group,
                    "refused": run.naming is not None,
                }
                for run in runs
            ],
            readings=PerRank(
                [[oracle.readings(by_rank[rank], 1000.0 * (rank + 1)) for by_rank in seconds] for rank in everyone]
            ),
            groups=[list(ranks) for ranks in groups],
        )
    measured = []
    traffic = Traffic(check, world_size)
    for rank in everyone:
        for number, run in enumerate(runs):
            members = own_group[rank] if run.group == "own" else everyone
            came = expect.mapping(values[rank][number], "buffers", "own", what=run.title, rank=rank)
            steps = steps_of(traffic.all_events(rank, number), came["buffers"], what=run.title, rank=rank)
            if run.naming is not None:
                _compare_refusal(came, steps, run, rank=rank)
                continue
            its_seconds = [seconds[number][member] for member in members]
            measured.append(_measured(came, steps, run, rank, members, its_seconds))
    return measured


def _compare_refusal(came: dict[str, Any], steps: Sequence[Step], run: Run, *, rank: int) -> None:
    expect.raised(came, "ValueError", what=run.title, rank=rank, naming=run.naming or ())
    expect.true(
        not steps,
        f"rank {rank}: {run.title} did something before it raised",
        expected="no collective, and no call of synchronize, barrier or clock",
        actual=shown(steps[:8]),
        help="check the arguments first",
    )


def _measured(
    came: dict[str, Any],
    steps: Sequence[Step],
    run: Run,
    rank: int,
    members: Sequence[int],
    seconds: Sequence[Sequence[float]],
) -> Measured:
    fields = came.get("value")
    if type(fields) is not tuple or len(fields) != len(oracle.FIELDS):
        raise CheckFailed(
            f"rank {rank}: {run.title} did not return a Measurement",
            expected=f"grader.given.Measurement({', '.join(oracle.FIELDS)})",
            actual=value_text(came.get("other")),
        )
    own = came["own"] if isinstance(came["own"], list) and len(came["own"]) == 2 else [None, None]
    bandwidths = [one.get("value") if isinstance(one, dict) else None for one in own]
    return Measured(run, rank, members, seconds, fields, steps, bandwidths)
