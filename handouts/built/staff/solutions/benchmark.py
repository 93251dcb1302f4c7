"""Module 2. How fast is a collective? Timing it right, and turning seconds into comparable bandwidths.

Sizes are in bytes, times in seconds, bandwidths in bytes per second: 1 GB/s is 10⁹ bytes per second, not
1024³. S is the size of the *whole* array: the input of reduce-scatter, the output of all-gather, one rank's
send buffer of all-to-all, and one rank's tensor otherwise. From grader.given come `synchronize`, and the
tensor forms of two collectives by names that every torch has: `all_gather_single`, `reduce_scatter_single`.

Two departures from the lecture, on purpose: the barrier stands outside the timed region (it can cost more than a
small collective does), and the slowest rank counts, not the mean over ranks (nobody goes on before it).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from grader.given import Group, Measurement, Operation

# isort: split
import statistics
from functools import partial
from typing import get_args

from grader import given


def algorithm_bandwidth(num_bytes: int, seconds: float) -> float:
    """Bytes per second as the caller sees it: num_bytes / seconds. Raises ValueError for seconds <= 0."""
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}; expected more than 0")
    return num_bytes / seconds


def bus_bandwidth(operation: Operation, num_bytes: int, seconds: float, world_size: int) -> float:
    """The lecture's effective bandwidth: the bytes per second that each link carries.

    The algorithm bandwidth of S = num_bytes times a factor: 2(W − 1)/W for all_reduce; (W − 1)/W for
    reduce_scatter, all_gather and all_to_all; 1 for broadcast and reduce. A world of 1 moves nothing: 0.0.
    Source: PERFORMANCE.md of NVIDIA's nccl-tests.

        bus_bandwidth("all_reduce", 4 * 10**9, 1.0, world_size=4) == 6e9

    Raises ValueError for seconds <= 0, world_size < 1 and an operation that is not listed.
    """
    _check_operation(operation)
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; expected 1 or more")
    bandwidth = algorithm_bandwidth(num_bytes, seconds)
    if world_size == 1:
        return 0.0
    if operation in ("broadcast", "reduce"):
        return bandwidth
    passes = 2 if operation == "all_reduce" else 1
    return bandwidth * passes * (world_size - 1) / world_size


def time_collective(
    run: Callable[[], object],
    *,
    warmup: int = 5,
    iterations: int = 20,
    synchronize: Callable[[], None],
    barrier: Callable[[], None],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Times run() and returns this rank's own seconds, one for each iteration.

    First run() alone, `warmup` times: no clock, no synchronize, no barrier. Then each iteration is exactly
    synchronize(), barrier(), clock(), run(), synchronize(), clock(); its time lies between the two clocks.

    synchronize: waits until this rank's device is done. A GPU's calls return before their work is done.
    barrier:     waits until every rank is here, so that all start together. It must come after synchronize.
    Raises ValueError for warmup < 0 or iterations < 1.
    """
    _check_counts(warmup, iterations)
    for _ in range(warmup):
        run()
    seconds = []
    for _ in range(iterations):
        synchronize()
        barrier()
        start = clock()
        run()
        synchronize()
        seconds.append(clock() - start)
    return seconds


def benchmark_collective(
    operation: Operation,
    num_elements: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    warmup: int = 5,
    iterations: int = 20,
    synchronize: Callable[[], None] | None = None,
    barrier: Callable[[], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
    group: Group = None,
) -> Measurement:
    """Measures one of torch's collectives; every rank of the group calls, and all return the same.

    The whole array has num_elements elements, rounded up to a multiple of the world size; its bytes are the
    measurement's num_bytes. The buffers are allocated once, before anything is timed, and their values stay
    finite however often the collective runs. Times are taken by `time_collective`; `seconds` is
    `statistics.median` over iterations of the maximum over ranks.

    synchronize, barrier: None means the device's own (`grader.given.synchronize`) and the group's own.
    Raises ValueError, before anything is sent, for an operation that is not listed, num_elements < 1,
    warmup < 0 or iterations < 1, and on a rank outside the group.
    """
    _check_operation(operation)
    _check_counts(warmup, iterations)
    if num_elements < 1:
        raise ValueError(f"num_elements is {num_elements}; expected 1 or more")
    if dist.get_rank(group) < 0:
        raise ValueError("this rank is not in the group; only the group's members may call")
    world_size = dist.get_world_size(group)
    length = -(-num_elements // world_size) * world_size
    seconds = time_collective(
        _collective(operation, length, dtype, torch.device(device), group),
        warmup=warmup,
        iterations=iterations,
        synchronize=synchronize or (lambda: given.synchronize(device)),
        barrier=barrier or (lambda: dist.barrier(group=group)),
        clock=clock,
    )
    slowest = torch.tensor(seconds, dtype=torch.float64, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)
    median = statistics.median(slowest.tolist())
    num_bytes = length * dtype.itemsize
    return Measurement(
        operation,
        num_bytes,
        world_size,
        median,
        algorithm_bandwidth(num_bytes, median),
        bus_bandwidth(operation, num_bytes, median, world_size),
    )


def _check_operation(operation: Operation) -> None:
    if operation not in get_args(Operation):
        raise ValueError(f"operation is {operation!r}; expected one of {', '.join(get_args(Operation))}")


def _check_counts(warmup: int, iterations: int) -> None:
    if warmup < 0:
        raise ValueError(f"warmup is {warmup}; expected 0 or more")
    if iterations < 1:
        raise ValueError(f"iterations is {iterations}; expected 1 or more")


def _collective(
    operation: Operation, length: int, dtype: torch.dtype, device: torch.device, group: Group
) -> Callable[[], object]:
    """The collective on an array of `length` elements, its buffers bound, to be called any number of times.

    The buffers hold zeros: a sum of anything else would grow with every call until it is infinite.
    """
    whole = torch.zeros(length, dtype=dtype, device=device)
    piece = torch.zeros(length // dist.get_world_size(group), dtype=dtype, device=device)
    match operation:
        case "broadcast":
            return partial(dist.broadcast, whole, group=group, group_src=0)
        case "reduce":
            return partial(dist.reduce, whole, group=group, group_dst=0)
        case "all_gather":
            return partial(given.all_gather_single, whole, piece, group=group)
        case "reduce_scatter":
            return partial(given.reduce_scatter_single, piece, whole, group=group)
        case "all_reduce":
            return partial(dist.all_reduce, whole, group=group)
        case "all_to_all":
            return partial(dist.all_to_all_single, torch.zeros_like(whole), whole, group=group)
