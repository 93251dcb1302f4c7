"""Programs that call every collective of torch.distributed: each case yields its name and what the rank got."""

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager, _object_to_tensor

from grader.world.program import attempt

CASES = []


def case(function):
    CASES.append(function)
    return function


def own(rank, length=4, dtype=torch.float32):
    """What a rank gives: numbers that tell the rank."""
    return (torch.arange(length) + 10 * (rank + 1)).to(dtype)


def all_cases(here):
    for function in CASES:
        yield function.__name__, function(here.rank, here.world_size)


def reduced(rank, op, dtype=torch.float32):
    tensor = own(rank, dtype=dtype)
    dist.all_reduce(tensor, op=op)
    return tensor


@case
def all_reduce(rank, size):
    return {op: reduced(rank, getattr(dist.ReduceOp, op)) for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX")}


@case
def all_reduce_bits(rank, size):
    return {op: reduced(rank, getattr(dist.ReduceOp, op), torch.int64) for op in ("BAND", "BOR", "BXOR")}


@case
def all_reduce_dtypes(rank, size):
    dtypes = ("float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "complex64")
    return {dtype: reduced(rank, dist.ReduceOp.SUM, getattr(torch, dtype)) for dtype in dtypes}


@case
def all_reduce_bool(rank, size):
    tensor = torch.tensor([rank == 0, False, True])
    dist.all_reduce(tensor)
    return tensor


@case
def empty_and_scalar(rank, size):
    empty, scalar = torch.empty(0, 3), torch.tensor(float(rank))
    for tensor in (empty, scalar):
        dist.all_reduce(tensor)
    dist.broadcast(empty, 0)
    handle = dist.all_reduce(scalar, async_op=True)
    handle.wait()
    return empty, scalar


@case
def one_op_many_shapes(rank, size):
    tensors = [torch.full(shape, float(rank)) for shape in ((1,), (2, 3), (2, 1, 2), (1000,))]
    for tensor in tensors:
        dist.all_reduce(tensor)
    return [tensor.sum() for tensor in tensors]


@case
def all_reduce_coalesced(rank, size):
    tensors = [own(rank), own(rank, 2)]
    dist.all_reduce_coalesced(tensors)
    return tensors


@case
def coalescing_manager(rank, size):
    tensors = [own(rank), own(rank, 2)]
    with _coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    gathered = [torch.empty(4 * size), torch.empty(2 * size)]
    with _coalescing_manager():
        for output, tensor in zip(gathered, (own(rank), own(rank, 2)), strict=True):
            dist.all_gather_into_tensor(output, tensor)
    shares = [torch.empty(1), torch.empty(2)]
    with _coalescing_manager():
        for output, length in zip(shares, (size, 2 * size), strict=True):
            dist.reduce_scatter_tensor(output, own(rank, length))
    return tensors, gathered, shares


@case
def broadcast(rank, size):
    tensors = [own(rank) for _ in range(size)]
    for root, tensor in enumerate(tensors):
        dist.broadcast(tensor, src=root)
    return tensors


@case
def reduce(rank, size):
    tensors = [own(rank) for _ in range(size)]
    for root, tensor in enumerate(tensors):
        dist.reduce(tensor, dst=root)
    return tensors


@case
def reduce_async(rank, size):
    tensor = own(rank)
    dist.reduce(tensor, dst=size - 1, async_op=True).wait()
    return tensor


@case
def all_gather(rank, size):
    outputs = [torch.empty(4) for _ in range(size)]
    dist.all_gather(outputs, own(rank))
    return outputs


@case
def all_gather_into_tensor(rank, size):
    outputs = [torch.empty(4 * size) for _ in range(2)]
    dist.all_gather_into_tensor(outputs[0], own(rank))
    dist.all_gather_single(outputs[1], own(rank))
    return outputs


@case
def gather(rank, size):
    outputs = [torch.empty(4) for _ in range(size)] if rank == size - 1 else None
    dist.gather(own(rank), outputs, dst=size - 1)
    return outputs


@case
def scatter(rank, size):
    output = torch.empty(4)
    dist.scatter(output, [own(to) for to in range(size)] if rank == size - 1 else None, src=size - 1)
    return output


@case
def reduce_scatter(rank, size):
    output = torch.empty(2)
    dist.reduce_scatter(output, [own(rank, 2) * (to + 1) for to in range(size)])
    uneven = torch.empty(rank + 1)
    dist.reduce_scatter(uneven, [own(rank, to + 1) for to in range(size)])
    return output, uneven


@case
def reduce_scatter_tensor(rank, size):
    outputs = [torch.empty(2) for _ in range(3)]
    dist.reduce_scatter_tensor(outputs[0], own(rank, 2 * size))
    dist.reduce_scatter_single(outputs[1], own(rank, 2 * size))
    dist.reduce_scatter_tensor(outputs[2], own(rank, 2 * size), op=dist.ReduceOp.AVG)
    return outputs


@case
def all_to_all(rank, size):
    outputs = [torch.empty(2) for _ in range(size)]
    dist.all_to_all(outputs, [own(rank, 2) + 100 * to for to in range(size)])
    return outputs


@case
def all_to_all_single(rank, size):
    even = torch.empty(size, 2)
    dist.all_to_all_single(even, own(rank, 2 * size).reshape(size, 2))
    # rank r gives rank s one row for s = 0, two for s = 1, ...
    uneven = torch.empty((rank + 1) * size, 2)
    gives = own(rank, size * (size + 1)).reshape(-1, 2)
    dist.all_to_all_single(uneven, gives, [rank + 1] * size, [to + 1 for to in range(size)])
    return even, uneven


@case
def barriers(rank, size):
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier()


@case
def objects(rank, size):
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    broadcast = [("from", rank), rank]
    dist.broadcast_object_list(broadcast, src=size - 1)
    on_root = [None] * size if rank == 0 else None
    dist.gather_object(["my rank", rank], on_root, dst=0)
    scattered = [None]
    dist.scatter_object_list(scattered, [f"for {to}" for to in range(size)] if rank == 0 else None, src=0)
    return gathered, broadcast, on_root, scattered


@case
def refusals(rank, size):
    """What is refused where it is called: no rank waits for another."""
    strided = torch.arange(8.0)[::2]
    premul = dist._make_nccl_premul_sum(2.0)
    return [
        attempt(dist.all_reduce, strided),
        attempt(dist.broadcast, torch.arange(6.0).reshape(2, 3).t(), src=0),
        attempt(dist.all_reduce, torch.ones(4), op=premul),
        attempt(dist.all_reduce, torch.ones(4, dtype=torch.int64), op=dist.ReduceOp.AVG),
        attempt(dist.broadcast, torch.ones(4), src=size),
        attempt(dist.all_gather, [torch.empty(4)] * (size + 1), torch.ones(4)),
        attempt(dist.all_to_all_single, torch.empty(size), torch.ones(size), [1] * (size + 1), [1] * (size + 1)),
        attempt(dist.all_gather_into_tensor, torch.empty(size, 4), torch.ones(4)),
        attempt(dist.split_group, split_ranks=[list(range(size))]),
    ]


@case
def after_refusals(rank, size):
    return reduced(rank, dist.ReduceOp.SUM)


@case
def object_bytes(rank, size):
    """How many bytes the pickled object has that `objects` gathers."""
    tensor, _ = _object_to_tensor({"rank": rank, "text": "x" * rank}, torch.device("cpu"), None)
    return tensor.numel()
