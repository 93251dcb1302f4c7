"""Public checks of collectives.py: the default group, made and ended."""

from __future__ import annotations

from typing import Any

from grader.checking import Check, check, expect
from grader.checking.show import value_text

SECONDS = 17


@check(
    "collectives",
    points=1,
    statement="setup makes the default group and returns the device; it refuses to make a second one, and a rank or "
    "world size that cannot be.",
    worlds=(1, 2),
    needs=("setup",),
)
def test_setup(check: Check) -> None:
    for size in check.worlds:
        wrong = {f"rank {size} of {size}": str(size), f"rank -1 of {size}": "-1", "world size 0": "0"}
        cases = [
            f'setup(rank, {size}, backend="gloo", timeout={SECONDS} s) by env://',
            "setup once more",
            f"setup(rank, {size}) by file://, on a host that has {size - 1} GPUs",
        ]
        for name in wrong:
            cases += [f"setup with {name}", f"the default group after setup with {name}"]
        values = check.run(size, "collectives_setup.setup", cases=cases, joined=False, seconds=SECONDS)
        for rank, (first, second, third, *refused) in enumerate(values):
            _compare(first, size, seconds=SECONDS, what=cases[0], rank=rank)
            expect.raised(second, "RuntimeError", what=cases[1], rank=rank)
            _compare(third, size, seconds=60, what=cases[2], rank=rank)
            for (name, naming), outcome, is_there in zip(wrong.items(), refused[::2], refused[1::2], strict=True):
                expect.raised(outcome, "ValueError", what=f"setup with {name}", rank=rank, naming=[naming])
                expect.same(is_there, False, what=f"is_initialized() after setup with {name}", rank=rank)


def _compare(value: Any, size: int, *, seconds: int, what: str, rank: int) -> None:
    came = expect.mapping(
        value, "device", "is_device", "rank", "world_size", "ranks", "backend", "timeout", what=what, rank=rank
    )
    expect.true(
        came["is_device"] is True and came["device"] == "cpu",
        f"rank {rank}: {what} did not return the device of this rank",
        expected='torch.device("cpu")',
        actual=value_text(came["device"]),
    )
    expect.same(came["rank"], rank, what=f"get_rank() after {what}", rank=rank)
    expect.same(came["world_size"], size, what=f"get_world_size() after {what}", rank=rank)
    expect.same(came["ranks"], size, what=f"an all-reduce of 1 after {what}", rank=rank)
    expect.same(came["backend"], "gloo", what=f"get_backend() after {what}", rank=rank)
    expect.same(came["timeout"], float(seconds), what=f"the group's timeout in seconds after {what}", rank=rank)


@check(
    "collectives",
    points=1,
    statement="cleanup ends the default group, and does nothing where there is none.",
    worlds=(1, 2),
    needs=("cleanup",),
)
def test_cleanup(check: Check) -> None:
    steps = ["cleanup() without a group"]
    for group in ("a group", "a second group"):
        steps += [f"cleanup() of {group}", f"is_initialized() after cleanup() of {group}", f"cleanup() after {group}"]
    for size in check.worlds:
        for rank, values in enumerate(check.run(size, "collectives_setup.cleanup", cases=steps, joined=False)):
            for what, value in zip(steps, values, strict=True):
                if what.startswith("is_initialized"):
                    expect.same(value, False, what=what, rank=rank)
                else:
                    expect.same(expect.returned(value, what=what, rank=rank), None, what=what, rank=rank)
