"""Programs that use what torch builds on process groups: DDP and its hooks, ZeRO, DTensor, FSDP2 and more."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

D, B, STEPS = 8, 4, 4


class Branches(nn.Module):
    """Uses its second branch only where it is told to."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x_BD, both=True):
        return self.first(x_BD) + (self.second(x_BD) if both else 0)


def model(kind="mlp"):
    """The same on every rank, and in the test."""
    torch.manual_seed(7)
    if kind == "branches":
        return Branches()
    if kind == "norm":
        return nn.Sequential(nn.Linear(D, D), nn.BatchNorm1d(D), nn.Linear(D, 1))
    return nn.Sequential(nn.Linear(D, 4 * D), nn.Tanh(), nn.Linear(4 * D, D), nn.Tanh(), nn.Linear(D, 1))


def batch(rank, step):
    return torch.randn(B, D, generator=torch.Generator().manual_seed(100 * rank + step))


def loss_of(network, x_BD, **options):
    return network(x_BD, **options).square().mean()


def parameters(network):
    return [parameter.detach().clone() for parameter in network.parameters()]


def trained(here, wrapped, optimizer=None, hook=None, state=None):
    """The parameters after some steps on the wrapped model."""
    if hook is not None:
        wrapped.register_comm_hook(state, hook)
    optimizer = optimizer or torch.optim.SGD(wrapped.parameters(), lr=0.1)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(wrapped, batch(here.rank, step)).backward()
        optimizer.step()
    return parameters(wrapped)


CASES = []


def case(function):
    CASES.append(function)
    return function


def all_cases(here):
    for function in CASES:
        yield function.__name__, function(here)


@case
def ddp(here):
    return trained(here, DistributedDataParallel(model()))


@case
def ddp_small_buckets(here):
    return trained(here, DistributedDataParallel(model(), bucket_cap_mb=0.0005, gradient_as_bucket_view=True))


@case
def ddp_static_graph(here):
    return trained(here, DistributedDataParallel(model(), static_graph=True))


@case
def ddp_with_a_hook(here):
    def hook(_, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda future: future.value()[0] / here.world_size)

    return trained(here, DistributedDataParallel(model(), bucket_cap_mb=0.0005), hook=hook)


@case
def ddp_with_a_hook_that_waits(here):
    def hook(_, bucket):
        dist.all_reduce(bucket.buffer(), async_op=True).wait()
        future = torch.futures.Future()
        future.set_result(bucket.buffer() / here.world_size)
        return future

    return trained(here, DistributedDataParallel(model(), bucket_cap_mb=0.0005), hook=hook)


@case
def ddp_with_half_precision(here):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    return trained(here, DistributedDataParallel(model()), hook=fp16_compress_hook)


@case
def zero_optimizer(here):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    wrapped = DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(wrapped.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
    return trained(here, wrapped, optimizer)


@case
def fsdp(here):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import init_device_mesh

    network = model()
    mesh = init_device_mesh("cpu", (here.world_size,))
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
    trained(here, network)
    return [parameter.full_tensor().detach() for parameter in network.parameters()]


@case
def ddp_unused(here):
    """Odd ranks leave out one branch."""
    wrapped = DistributedDataParallel(model("branches"), find_unused_parameters=True)
    loss_of(wrapped, batch(here.rank, 0), both=here.rank % 2 == 0).backward()
    return [parameter.grad for parameter in wrapped.parameters()]


@case
def ddp_no_sync(here):
    """Two microbatches, and one synchronization."""
    wrapped = DistributedDataParallel(model())
    for step in range(2):
        with wrapped.no_sync() if step == 0 else contextlib.nullcontext():
            loss_of(wrapped, batch(here.rank, step)).backward()
    return [parameter.grad for parameter in wrapped.parameters()]


@case
def ddp_buffers(here):
    """Rank 0's buffers reach everybody before each forward; each then adds its own batch."""
    wrapped = DistributedDataParallel(model("norm"))
    for step in range(2):
        loss_of(wrapped, batch(here.rank, step)).backward()
    return wrapped.module[1].running_mean


@case
def autograd_collectives(here):
    from torch.distributed.nn import functional

    weight = torch.full((3,), float(here.rank + 1), requires_grad=True)
    total = functional.all_reduce(weight * 2)
    (total.sum() * (here.rank + 1)).backward()
    gathered = functional.all_gather(torch.full((2,), float(here.rank)))
    return total.detach(), weight.grad, list(gathered)


@case
def functional_collectives(here):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD
    total = functional.all_reduce(torch.full((4,), float(here.rank)), "sum", group)
    whole = functional.all_gather_tensor(torch.full((2,), float(here.rank)), 0, group)
    share = functional.reduce_scatter_tensor(torch.arange(2.0 * here.world_size), "sum", 0, group)
    several = functional.all_reduce_coalesced([torch.ones(2), torch.ones(3)], "sum", group)
    return [functional.wait_tensor(one) * 1 for one in (total, whole, share, *several)]


@case
def sharded_product(here):
    """A matrix product with DTensor: columns, then rows, then the sum."""
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (here.world_size,))
    generator = torch.Generator().manual_seed(1)
    x_BD = torch.randn(B, D, generator=generator)
    first_DF, second_FD = (torch.randn(D, D, generator=generator) for _ in range(2))
    x = DTensor.from_local(x_BD, mesh, [Replicate()])
    hidden = torch.relu(x @ distribute_tensor(first_DF, mesh, [Shard(1)]))
    return (hidden @ distribute_tensor(second_FD, mesh, [Shard(0)])).full_tensor()
