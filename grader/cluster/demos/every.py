"""The demos of each module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from grader.cluster.demos.demo import Demo
from grader.cluster.looks import Look, Looks, operation_name
from grader.cluster.steps import Lasting
from grader.world.operation import Operation

FORWARD = Look("compute", "", "forward")
BACKWARD = Look("rank2", "cross", "backward")
CLOCK = Look("rank4", "", "reads the clock")
SYNC = Look("compute", "", "synchronize")
WORK = Look("rank2", "cross", "earlier work, not finished")
TRAINING = (("F", FORWARD), ("B", BACKWARD))

WIDTHS = (4, 6, 2, 7, 3)  # of the network of data_parallel: no two sums of neighbouring weights are alike
BUCKET_BYTES = 160
WEIGHTS = tuple(a * b for a, b in pairwise(WIDTHS))


def gradients_of(elements: int, weights: Sequence[int]) -> str:
    """The names of the neighbouring layers whose weights have so many elements together: "g2", "g1+g2".

    Where there are none it says how many elements they are.
    """
    for first in range(len(weights)):
        for last, total in enumerate(accumulate(weights[first:]), start=first):
            if total == elements:
                return "+".join(f"g{layer + 1}" for layer in range(first, last + 1))
    return f"{elements} elements"


def _gradients(operation: Operation) -> str:
    elements = sum(spec.elements for spec in operation.reads)
    return gradients_of(elements, WEIGHTS) if operation.name == "all_reduce" else operation_name(operation)


def _peer(operation: Operation) -> str:
    if operation.name == "send":
        return f"to {operation.peer_rank}"
    return f"from {operation.peer_rank}" if operation.name == "recv" else operation_name(operation)


def _data_parallel(name: str, wrapper: str, title: str, caption: str, bucket_bytes: int | None = None) -> Demo:
    inputs = {"wrapper": wrapper, "widths": list(WIDTHS), "bucket_bytes": bucket_bytes}
    looks = Looks(TRAINING, label=_gradients, cell=58)
    return Demo(name, title, caption, "networks.data_parallel", inputs, 2, looks)


def _pipeline(num_microbatches: int) -> Demo:
    many = f"{num_microbatches} microbatch" + ("es" if num_microbatches > 1 else "")
    return Demo(
        f"timeline-pipeline-{num_microbatches}",
        f"GPipe with {many}: one training step",
        f"One training step with {many}: forward and backward of a microbatch take one step each, "
        "and messages none; in the dotted steps a stage is idle.",
        "networks.pipeline_parallel",
        {"num_microbatches": num_microbatches, "width": 2},
        4,
        Looks(TRAINING, cell=30 if num_microbatches > 4 else 40, lanes="stage"),
        Lasting(message=0),
    )


DEMOS: Mapping[str, Sequence[Demo]] = {
    "collectives": [
        Demo(
            "timeline-collectives",
            "The messages of one all-reduce",
            "One all-reduce of your own: in each step every rank sends a piece and receives another one.",
            "collectives.all_reduce",
            {"elements_per_rank": 2},
            4,
            Looks((("", FORWARD),), label=_peer, cell=64),
        )
    ],
    "benchmark": [
        Demo(
            "timeline-benchmark",
            "Timing an all-reduce: two iterations",
            "Two iterations of time_collective: rank 1 is late, and the barrier keeps that out of the seconds.",
            "benchmark.time_collective",
            {"iterations": 2},
            2,
            Looks((("clock", CLOCK), ("sync", SYNC), ("", WORK)), cell=78),
        )
    ],
    "data_parallel": [
        _data_parallel(
            "timeline-naive",
            "NaiveDDP",
            "NaiveDDP: all-reduces after backward",
            "NaiveDDP: g4 is the gradient of layer 4; every all-reduce comes after backward, and the ranks are idle.",
        ),
        _data_parallel(
            "timeline-overlapped",
            "OverlappedDDP",
            "OverlappedDDP: all-reduces during backward",
            "OverlappedDDP: the all-reduce of g4 is under way while backward computes g3.",
        ),
        _data_parallel(
            "timeline-buckets",
            "BucketedDDP",
            "BucketedDDP: fewer all-reduces during backward",
            "BucketedDDP: neighbouring gradients travel in one all-reduce, as soon as the last of them is ready.",
            BUCKET_BYTES,
        ),
    ],
    "tensor_parallel": [
        Demo(
            "timeline-tensor_parallel",
            "Two column-parallel layers: forward and backward",
            "Each rank computes its own columns, and no layer can begin before the columns of all ranks are gathered.",
            "networks.tensor_parallel",
            {"sizes": [8, 8, 8]},
            4,
            Looks(TRAINING, cell=96),
        )
    ],
    "pipeline_parallel": [_pipeline(1), _pipeline(4), _pipeline(16)],
}
