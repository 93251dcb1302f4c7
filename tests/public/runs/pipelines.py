"""Pipelines as data: a network split into stages, what its stages are called with, and what they must return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from grader.checking.differences import RTOL
from tests.public.oracles.pipeline_parallel import Layer, Stages, WholeNetwork

if TYPE_CHECKING:
    from torch import Tensor

    from grader.checking import Check


Function = Literal["forward_only", "train_step"]
WIDTHS = (3, 5, 4, 6, 2)


class Hold(NamedTuple):
    """Stage `stage` waits where it marks `at`, until stage `of` has marked `until`: see Progress in the program."""

    stage: int
    at: str
    until: str
    of: int


@dataclass(frozen=True)
class Call:
    """One call of every stage.

    function:   "forward_only" or "train_step".
    batch:      of the first stage; target: of the last.
    ignored:    the stages that do not read a batch or a target are passed NaN of another shape, else None.
    transposed: the batch is passed as a view of memory in another order.
    num_rows:   what all stages are told; None: the rows of the batch.
    holds:      of a marked pipeline on all ranks of the world.
    """

    function: Function
    batch: Tensor | None
    target: Tensor | None = None
    ignored: bool = False
    transposed: bool = False
    num_rows: int | None = None
    holds: Sequence[Hold] = ()

    @property
    def rows(self) -> int:
        """num_rows as it is passed."""
        if self.num_rows is not None:
            return self.num_rows
        return 0 if self.batch is None else len(self.batch)

    def rows_of_batch(self) -> Tensor:
        """The batch. Only calls that are refused have none."""
        assert self.batch is not None, "the call is a right one"
        return self.batch

    def for_stage(self, stage: int, num_stages: int) -> dict[str, Any]:
        """The arguments on one stage."""
        import torch

        decoy = torch.full((3, 1), float("nan")) if self.ignored else None
        return {
            "call": self.function,
            "batch": self.batch if stage == 0 else decoy,
            "target": self.target if stage == num_stages - 1 else decoy,
            "transposed": self.transposed and stage == 0,
            "num_rows": self.rows,
            "holds": [hold._asdict() for hold in self.holds if hold.stage == stage],
        }


@dataclass(frozen=True)
class Pipeline:
    """One PipelineStage on every rank of a group, and the calls of it, one after the other.

    name:      what messages call it; the number of microbatches is added.
    stages:    by stage, its layers. sample: rows as they enter the first stage, for shapes and dtypes.
    loss:      the loss function's name in torch.nn.functional.
    group:     global ranks by stage; None: the default group, passed as none at all.
    gradients: by stage and parameter, what `.grad` holds before the first call; () for None everywhere.
    marked:    the program marks where each microbatch begins and ends; every stage has a parameter.
    """

    name: str
    stages: Stages
    sample: Tensor
    num_microbatches: int
    calls: Sequence[Call] = ()
    loss: Literal["mse_loss", "cross_entropy"] = "mse_loss"
    overlap: bool = False
    group: Sequence[int] | None = None
    gradients: Sequence[Sequence[Tensor | None]] = field(default=())
    marked: bool = False

    @property
    def title(self) -> str:
        """What messages call it."""
        parts = [self.name, f"num_microbatches={self.num_microbatches}", "overlap=True" if self.overlap else ""]
        group = "" if self.group is None else f"the group of ranks {list(self.group)}"
        return ", ".join(part for part in (*parts, group) if part)

    def named(self, call: Call) -> str:
        """What messages call one call."""
        return f"{call.function}(num_rows={call.rows}) with {self.title}"

    def stage_of(self, rank: int) -> int | None:
        """The stage on a rank of the world; None outside the group."""
        members = range(len(self.stages)) if self.group is None else self.group
        return list(members).index(rank) if rank in members else None

    def for_rank(self, rank: int) -> dict[str, Any]:
        """What one rank is sent: its own layers, and its own arguments."""
        stage = self.stage_of(rank)
        inside = 0 if stage is None else stage
        layers = list(self.stages[inside])
        unset = [None] * len(WholeNetwork([layers]).parameters()[0])
        return {
            "layers": layers,
            "options": self._options(inside),
            "group": None if self.group is None else list(self.group),
            "gradients": list(self.gradients[inside]) if self.gradients else unset,
            "marked": self.marked,
            "calls": [{**call.for_stage(inside, len(self.stages)), "loss": self.loss} for call in self.calls],
        }

    def row(self, stage: int) -> Tensor:
        """One row of zeros as it enters a stage; of the output for the number after the last stage."""
        return WholeNetwork(self.stages).entering(self.sample)[stage][0] * 0

    @property
    def rtol(self) -> float:
        """The tolerance of its results: that of the coarsest dtype on the way."""
        activations = WholeNetwork(self.stages).entering(self.sample)
        return max(RTOL.get(str(each.dtype).removeprefix("torch."), 0.0) for each in activations)

    def _options(self, stage: int) -> dict[str, Any]:
        """The stage's keyword arguments; what has a default is left out where the default will do."""
        import torch

        row = self.row(stage)
        options: dict[str, Any] = {"num_microbatches": self.num_microbatches, "input_shape": tuple(row.shape)}
        if row.dtype is not torch.float32:
            options["dtype"] = row.dtype
        if self.overlap:
            options["overlap"] = True
        return options


def random(check: Check, shape: Sequence[int], path: object, dtype: str = "float32") -> Tensor:
    """Normal random numbers for this check's seed."""
    import torch

    return torch.randn(tuple(shape), generator=check.generator(path), dtype=torch.float64).to(getattr(torch, dtype))


def linear(
    check: Check, d: int, f: int, path: object, dtype: str = "float32", *, bias: bool = True, frozen: bool = False
) -> Layer:
    """nn.Linear of d inputs and f outputs; the variance of its output is about that of its input."""
    weight = random(check, (f, d), ("weight", path), dtype) / d**0.5
    return {
        "kind": "linear",
        "weight": weight,
        "bias": random(check, (f,), ("bias", path), dtype) if bias else None,
        "frozen": frozen,
    }


def embedding(check: Check, count: int, d: int, path: object) -> Layer:
    """nn.Embedding of `count` rows of d numbers."""
    return {"kind": "embedding", "weight": random(check, (count, d), ("embedding", path)), "frozen": False}


def plain(kind: Literal["tanh", "relu", "transpose", "mean", "cast", "scale"], **options: Any) -> Layer:
    """A layer without parameters. options: in_place (relu, scale), factor (scale), dtype (cast)."""
    return {"kind": kind, "frozen": False, "in_place": False, **options}


def mlp(check: Check, stages: Sequence[int], path: object, dtype: str = "float32") -> Stages:
    """Linear maps with tanh between them; `stages` says how many maps each stage holds."""
    split, number = [], 0
    for count in stages:
        layers: list[Layer] = []
        for _ in range(count):
            layers.append(linear(check, width(number), width(number + 1), (path, number), dtype))
            number += 1
            if number < sum(stages):
                layers.append(plain("tanh"))
        split.append(layers)
    return split


def counted(number: int, thing: str) -> str:
    """ "1 stage", "2 stages"."""
    return f"{number} {thing}{'s' * (number != 1)}"


def width(number: int) -> int:
    """Of what enters linear map `number` of `mlp`. Neighbours differ, so that a message of a wrong shape shows."""
    return WIDTHS[number % len(WIDTHS)]


def network(
    check: Check,
    stages: Sequence[int],
    num_microbatches: int,
    *calls: tuple[Function, int],
    dtype: str = "float32",
    **options: Any,
) -> Pipeline:
    """A pipeline of `mlp` with calls of random rows: ("train_step", 8). options: further fields of Pipeline.

    In every second call, the first included, the stages that read no batch or target are passed some all the same.
    """
    path = (tuple(stages), num_microbatches, sorted(options))
    made = [
        Call(
            function,
            random(check, (rows, width(0)), (path, number, "batch"), dtype),
            random(check, (rows, width(sum(stages))), (path, number, "target"), dtype),
            ignored=number % 2 == 0,
        )
        for number, (function, rows) in enumerate(calls)
    ]
    return Pipeline(
        name=f"{counted(sum(stages), 'linear layer')} on {counted(len(stages), 'stage')}",
        stages=mlp(check, stages, path, dtype),
        sample=random(check, (1, width(0)), (path, "sample"), dtype),
        num_microbatches=num_microbatches,
        calls=made,
        **options,
    )


def with_gradients(check: Check, pipeline: Pipeline) -> Pipeline:
    """The pipeline with a random gradient in every parameter before its first call."""
    parameters = WholeNetwork(pipeline.stages).parameters()
    held = [
        [
            random(check, parameter.shape, ("held", stage, number)).to(parameter.dtype)
            for number, parameter in enumerate(own)
        ]
        for stage, own in enumerate(parameters)
    ]
    return replace(pipeline, gradients=held)
