"""Pipelines of layers that are not all linear: in place, without parameters, of other dtypes and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.public.oracles.pipeline_parallel import Layer, Stages, WholeNetwork
from tests.public.runs.pipelines import Call, Function, Pipeline, embedding, linear, plain, random

if TYPE_CHECKING:
    from torch import Tensor

    from grader.checking import Check

CALLS: tuple[tuple[Function, int], ...] = (("forward_only", 6), ("train_step", 6), ("train_step", 8))


def pipeline(
    check: Check, name: str, stages: Stages, row_shape: Sequence[int], *, dtype: str = "float32", **options: Any
) -> Pipeline:
    """A pipeline that is called forwards, and for two training steps, with random rows and a mean squared error."""
    options = {"num_microbatches": 3, **options}
    network, calls = WholeNetwork(stages), []
    for number, (function, rows) in enumerate(CALLS):
        batch = random(check, (rows, *row_shape), (name, number, "batch"), dtype)
        output = network.entering(batch)[-1]
        target = random(check, output.shape, (name, number, "target")).to(output.dtype)
        calls.append(Call(function, batch, target, ignored=number == 0, transposed=number == 2))
    assert calls[0].batch is not None, "each of these calls has a batch"
    return Pipeline(name=name, stages=stages, sample=calls[0].batch, calls=calls, **options)


def in_place(check: Check, size: int, **options: Any) -> list[Pipeline]:
    """The first layer of every stage changes its input."""

    def scaled(number: int) -> Layer:
        return plain("scale", factor=1 + random(check, (4,), ("factor", number)).abs(), in_place=True)

    def rectified(number: int) -> list[Layer]:
        layer = linear(check, 4, 4, ("linear", number))
        above = {**layer, "bias": layer["bias"].abs() + 1}  # most of what it computes is not cut off
        return [above, plain("relu", in_place=True)]

    scales = [[scaled(stage), linear(check, 4, 4, ("scaled", stage)), plain("tanh")] for stage in range(size)]
    relus = [[plain("relu", in_place=True), *rectified(stage)] for stage in range(size)]
    alone = [[scaled(stage)] if stage % 2 == 0 else [scaled(stage), *rectified(stage)] for stage in range(size)]
    if size == 1:
        alone = [[scaled(0), scaled(1), linear(check, 4, 4, "last")]]
    return [
        pipeline(check, "layers that scale their input in place", scales, (4,), **options),
        pipeline(check, "layers that rectify in place", relus, (4,), **options),
        pipeline(check, "stages that only scale in place", alone, (4,), **options),
    ]


def without_parameters(check: Check, **options: Any) -> list[Pipeline]:
    """Three stages, of which one or two have nothing to train: no parameters, or frozen ones."""

    def trained(number: int) -> list[Layer]:
        return [linear(check, 3, 3, ("trained", number)), plain("tanh")]

    def frozen(number: int) -> list[Layer]:
        return [linear(check, 3, 3, ("frozen", number), frozen=True), plain("tanh")]

    empty = [plain("scale", factor=1 + random(check, (3,), "factor").abs()), plain("tanh")]
    stages = {
        "no parameters on the first stage": [empty, trained(1), trained(2)],
        "no parameters on the stage in the middle": [trained(0), empty, trained(2)],
        "no parameters on the last stage": [trained(0), trained(1), empty],
        "no parameters on the first two stages": [empty, empty, trained(2)],
        "no parameters on the last two stages": [trained(0), empty, empty],
        "frozen parameters on the first stage": [frozen(0), trained(1), trained(2)],
        "frozen parameters on the stage in the middle": [trained(0), frozen(1), trained(2)],
        "frozen parameters on the last stage": [trained(0), trained(1), frozen(2)],
        "frozen and trained parameters on each stage": [frozen(n) + trained(n) for n in range(3)],
    }
    return [pipeline(check, name, layers, (3,), **options) for name, layers in stages.items()]


def dtypes(check: Check, **options: Any) -> list[Pipeline]:
    """Two stages in one dtype other than float32, and in two dtypes."""
    import torch

    def of(dtype: str, number: int) -> list[Layer]:
        return [linear(check, 4, 4, (dtype, number), dtype), plain("tanh")]

    def cast(dtype: torch.dtype) -> Layer:
        return plain("cast", dtype=dtype)

    f32, f64 = torch.float32, torch.float64
    return [
        pipeline(check, "float64", [of("float64", 0), of("float64", 1)], (4,), dtype="float64", **options),
        pipeline(check, "bfloat16", [of("bfloat16", 0), of("bfloat16", 1)], (4,), dtype="bfloat16", **options),
        pipeline(
            check,
            "float32, and float64 from the end of the first stage on",
            [[*of("float32", 0), cast(f64)], of("float64", 1)],
            (4,),
            **options,
        ),
        pipeline(
            check,
            "float64, and float32 from the end of the first stage on",
            [[*of("float64", 0), cast(f32)], of("float32", 1)],
            (4,),
            dtype="float64",
            **options,
        ),
        pipeline(
            check,
            "float64, and float32 from the start of the second stage on",
            [of("float64", 0), [cast(f32), *of("float32", 1)]],
            (4,),
            dtype="float64",
            **options,
        ),
    ]


def shapes(check: Check, **options: Any) -> list[Pipeline]:
    """Three stages whose rows have two dimensions, one or none; transposed ones are not contiguous."""
    turn, mean = plain("transpose"), plain("mean")

    def to(d: int, f: int) -> Layer:
        return linear(check, d, f, (d, f))

    at_the_end = [[to(3, 4), turn], [to(2, 5), turn], [to(4, 3), turn]]
    at_the_start = [[to(3, 4)], [turn, to(2, 5)], [turn, to(4, 3)]]
    numbers = [[to(3, 4)], [to(4, 5), plain("tanh"), mean], [plain("tanh")]]
    return [
        pipeline(check, "rows of (2, 3), transposed at the end of each stage", at_the_end, (2, 3), **options),
        pipeline(check, "rows of (2, 3), transposed at the start of the later stages", at_the_start, (2, 3), **options),
        pipeline(check, "rows of (2, 3), then of (2,)", numbers, (2, 3), **options),
        pipeline(check, "rows of (3,), then single numbers", numbers, (3,), **options),
    ]


def integers(check: Check, size: int, **options: Any) -> list[Pipeline]:
    """Token numbers enter an embedding on the first stage, and are the targets of a cross entropy on the last."""
    import torch

    words, d = 7, 4

    def tokens(shape: Sequence[int], path: object) -> Tensor:
        return torch.randint(0, words, tuple(shape), generator=check.generator("tokens", path))

    middle = [[linear(check, d, d, stage), plain("tanh")] for stage in range(size)]
    stages = [list(layers) for layers in middle]
    stages[0] = [embedding(check, words, d, "words"), *stages[0]]
    stages[-1] = [*stages[-1], linear(check, d, words, "logits")]
    made = [Call(name, tokens((n,), (name, n)), tokens((n,), (name, n, "y")), transposed=False) for name, n in CALLS]
    wide = [[*stages[0][:1], plain("mean"), linear(check, 3, 5, "wide")], *[[plain("tanh")] for _ in range(size - 1)]]
    rows = pipeline(check, "", [[linear(check, 5, 5, "unused")]], (5,))
    called = [
        Call(each.function, tokens((len(each.batch), 3), ("wide", n)), each.target)
        for n, each in enumerate(rows.calls)
        if each.batch is not None
    ]
    options = {"num_microbatches": 3, **options}
    one = Pipeline("a token a row", stages, tokens((1,), "sample"), calls=made, loss="cross_entropy", **options)
    three = Pipeline("three tokens a row", wide, tokens((1, 3), "sample"), calls=called, **options)
    return [one, three]
