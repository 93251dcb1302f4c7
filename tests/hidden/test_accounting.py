"""Hidden checks of accounting.py: numbers that differ from student to student, and the questions."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

from grader.checking import Check, CheckFailed, check, expect
from grader.checking.show import value_text
from tests.public.runs.pure import Call, expect_values

QUESTIONS = Path(__file__).resolve().parents[2] / "handouts" / "templates" / "questions.toml"
CASES = 6
RING_STEPS = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}  # times W - 1


@check(
    "accounting",
    points=1,
    statement="Memory, ring collectives and data parallelism are counted exactly, for numbers of any size and pieces "
    "that do not divide.",
    needs=("training_bytes", "gpus_to_hold", "ring_bytes_sent", "ring_seconds", "data_parallel_bytes"),
    core=False,
    bonus=True,
)
def test_memory_and_rings_of_any_size(check: Check) -> None:
    right: list[tuple[Call, object]] = []
    for number in range(CASES):
        parameters, hbm_bytes = drawn(check, 10**17, number, "parameters"), drawn(check, 10**12, number, "hbm")
        size, world_size = drawn(check, 10**18, number, "size"), 1 + drawn(check, 99, number, "world_size")
        per_parameter = [drawn(check, 16, number, part) for part in ("weight", "grad", "optimizer")]
        keywords = dict(zip(("weight_bytes", "grad_bytes", "optimizer_bytes"), per_parameter, strict=True))
        training_bytes = sum(parameters * each for each in per_parameter)
        filled, rest = divmod(training_bytes, hbm_bytes)
        right += [
            (Call("training_bytes", [parameters], keywords), training_bytes),
            (
                Call("gpus_to_hold", [parameters, hbm_bytes], {"bytes_per_parameter": sum(per_parameter)}),
                max(filled + (rest > 0), 1),
            ),
        ]
        latency = Fraction(drawn(check, 100, number, "latency"), drawn(check, 10**7, number, "per second"))
        bandwidth = drawn(check, 10**12, number, "bandwidth")
        for operation, rounds in RING_STEPS.items():
            steps = rounds * (world_size - 1)
            sent = sum((Fraction(size, world_size) for _ in range(steps)), Fraction(0))
            right += [
                (Call("ring_bytes_sent", [operation, size, world_size]), sent),
                (
                    Call("ring_seconds", [operation, size, world_size], {"latency": latency, "bandwidth": bandwidth}),
                    latency * steps + sent / bandwidth,
                ),
            ]
        gradients = Fraction(parameters * 8, world_size)
        right.append((Call("data_parallel_bytes", [parameters, 8, world_size]), 2 * (world_size - 1) * gradients))
    expect_values(check, right)


@check(
    "accounting",
    points=1,
    statement="The bytes of tensor and pipeline parallelism are counted exactly, for any widths, stages and world "
    "sizes.",
    needs=("tensor_parallel_bytes", "pipeline_bytes"),
    core=False,
    bonus=True,
)
def test_bytes_of_any_network(check: Check) -> None:
    right: list[tuple[Call, object]] = []
    for number in range(CASES):
        rows, element_size = drawn(check, 10**9, number, "rows"), drawn(check, 8, number, "element size")
        world_size = 1 + drawn(check, 31, number, "world size")
        sizes = [drawn(check, 10**5, number, "width", place) for place in range(2 + number)]
        # In the order of the step: all layers forward, all but the first layer's input backward, then that.
        widths = [*sizes[1:], *sizes[-2:0:-1], sizes[0], sizes[0]]
        sent = sum(Fraction(rows * width * element_size * (world_size - 1), world_size) for width in widths)
        right.append((Call("tensor_parallel_bytes", [rows, sizes, element_size, world_size]), Fraction(sent)))
        num_stages = 1 + number
        for stage in range(num_stages):
            peers = {stage - 1, stage + 1} & set(range(num_stages))
            arguments = [rows, sizes[0], element_size, stage, num_stages]
            right.append((Call("pipeline_bytes", arguments), len(peers) * rows * sizes[0] * element_size))
    expect_values(check, right)


@check(
    "accounting",
    points=1,
    statement="Bubbles, microbatches and rows are exact too, also where the answer lies right at the limit.",
    needs=("bubble_fraction", "microbatches_needed", "rows_to_hide_all_reduce"),
    core=False,
    bonus=True,
)
def test_limits_are_exact(check: Check) -> None:
    right: list[tuple[Call, object]] = []
    for number in range(CASES):
        stages, microbatches = 1 + drawn(check, 60, number, "stages"), 1 + drawn(check, 999, number, "microbatches")
        idle = Fraction(stages - 1, stages - 1 + microbatches)
        a_little = Fraction(1, 10**15)
        right += [
            (Call("bubble_fraction", [stages, microbatches]), idle),
            (Call("microbatches_needed", [stages, idle]), microbatches),
            (Call("microbatches_needed", [stages, idle + a_little]), microbatches),
            (Call("microbatches_needed", [stages, idle - a_little]), microbatches + 1),
        ]
        world_size, element_size = 1 + drawn(check, 99, number, "world size"), 2 * drawn(check, 4, number, "element")
        rows, bandwidth = drawn(check, 10**6, number, "rows"), drawn(check, 10**12, number, "bandwidth")
        # The peak at which exactly `rows` rows hide it: rows * 4 / peak = bytes / bandwidth, all times W.
        bytes_times_world_size = 2 * (world_size - 1) * element_size
        step = {"peak_flops": 4 * rows * world_size, "bandwidth": bytes_times_world_size}
        over = {**step, "peak_flops": step["peak_flops"] + 1}
        any_link = {"peak_flops": drawn(check, 10**18, number, "peak"), "bandwidth": bandwidth}
        least = -(-bytes_times_world_size * any_link["peak_flops"] // (4 * world_size * bandwidth))
        right += [
            (Call("rows_to_hide_all_reduce", [world_size, element_size], step), rows),
            (Call("rows_to_hide_all_reduce", [world_size, element_size], over), rows + 1),
            (Call("rows_to_hide_all_reduce", [world_size, element_size], any_link), least),
        ]
    expect_values(check, right)


def drawn(check: Check, largest: int, *path: object) -> int:
    """A number from 1 to `largest`, from the seed of this student and check."""
    import torch

    return int(torch.randint(1, largest + 1, (), generator=check.generator(*path)))


@check(
    "accounting",
    points=1,
    statement="CHOICES holds the right letter for each question of the handout.",
    needs=("CHOICES",),
    core=False,
    bonus=True,
)
def test_choices(check: Check) -> None:
    questions = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))["choices"]
    ((choices,),) = check.run(1, "pure.constant", joined=False, name="CHOICES")
    if choices == {}:
        raise CheckFailed("CHOICES is not written yet", unwritten="CHOICES")
    if type(choices) is not dict:
        raise CheckFailed(
            "CHOICES is not a dict", expected="a dict: a letter for each question", actual=value_text(choices)
        )
    missing = [
        name
        for name, question in questions.items()
        if type(choices.get(name)) is not str or choices[name] not in question["options"]
    ]
    expect.true(
        not missing,
        f"CHOICES has no letter for {len(missing)} of {len(questions)} questions",
        expected=f"one of the letters a to d for each of {', '.join(questions)}",
        actual=f"none for {', '.join(missing)}",
    )
    wrong = [name for name, question in questions.items() if choices[name] != question["answer"]]
    expect.true(
        not wrong,
        f"{len(wrong)} of {len(questions)} answers in CHOICES are not right",
        expected="the right letter for each question",
        actual=f"another one for {', '.join(wrong)}",
    )
