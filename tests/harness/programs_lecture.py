"""What the lecture's programs do in plain torch.distributed: collectives, bandwidth, and three ways to cut an MLP.

Every program joins by itself, as a script under a launcher does, and leaves again.
"""

import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

NUM_LAYERS, D = 4, 8
STEPS = 3


def setup(here):
    dist.init_process_group("gloo", init_method=here.init_method, rank=here.rank, world_size=here.world_size)
    return dist.get_rank(), dist.get_world_size()


def cleanup():
    dist.barrier()
    dist.destroy_process_group()


def weights():
    """One (D, D) matrix a layer, the same on every rank."""
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(D, D, generator=generator) / D**0.5 for _ in range(NUM_LAYERS)]


def collectives(here):
    """The rooted ones; then an all-reduce, and a reduce-scatter and all-gather, which do the same; then a transpose."""
    rank, size = setup(here)
    vector = torch.arange(float(size)) if rank == 0 else torch.zeros(size)
    dist.broadcast(vector, src=0)
    own = torch.empty(1)
    dist.scatter(own, list(vector.chunk(size)) if rank == 0 else None, src=0)
    pieces = [torch.empty(1) for _ in range(size)] if rank == 0 else None
    dist.gather(own, pieces, dst=0)
    summed = own.clone()
    dist.reduce(summed, dst=0, op=dist.ReduceOp.SUM)
    yield vector, own, pieces, summed

    dist.barrier()
    whole = torch.arange(float(size)) + rank
    reduced = whole.clone()
    dist.all_reduce(reduced, op=dist.ReduceOp.SUM, async_op=False)
    share = torch.empty(1)
    dist.reduce_scatter_tensor(share, whole, op=dist.ReduceOp.SUM)
    gathered = torch.empty(size)
    dist.all_gather_into_tensor(gathered, share)
    yield reduced, share, gathered

    row = torch.arange(float(size)) + size * rank
    column = torch.empty(size)
    dist.all_to_all_single(column, row)
    yield column
    cleanup()


def bandwidth(here, *, elements):
    """The bytes that an all-reduce and a reduce-scatter move, after a warm-up, and whether time passed."""
    _, size = setup(here)
    data = torch.randn(elements)
    output = torch.empty(elements // size)
    got = []
    for move, steps in (
        (lambda: dist.all_reduce(data), 2 * (size - 1)),
        (lambda: dist.reduce_scatter_tensor(output, data), size - 1),
    ):
        move()
        dist.barrier()
        began = time.perf_counter()
        move()
        dist.barrier()
        seconds = time.perf_counter() - began
        sent = data.element_size() * data.numel() * steps
        got.append((sent, sent / (size * seconds) > 0))
    yield got
    cleanup()


def data_parallel(here, *, data_BD):
    """Every rank holds all parameters and its rows of the batch; gradients are averaged after backward."""
    rank, size = setup(here)
    local_batch = data_BD.shape[0] // size
    mine_BD = data_BD[rank * local_batch : (rank + 1) * local_batch]
    parameters = [weight.requires_grad_() for weight in weights()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    losses = []
    for _ in range(STEPS):
        x_BD = mine_BD
        for weight_DD in parameters:
            x_BD = F.gelu(x_BD @ weight_DD)
        loss = x_BD.square().mean()
        loss.backward()
        for parameter in parameters:
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG, async_op=False)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    yield losses, [parameter.detach() for parameter in parameters]
    cleanup()


def tensor_parallel(here, *, data_BD):
    """Every rank holds some columns of each layer; activations are gathered after each."""
    rank, size = setup(here)
    local_dim = D // size
    x_BD = data_BD
    for weight_DD in weights():
        mine_DF = weight_DD[:, rank * local_dim : (rank + 1) * local_dim].contiguous()
        x_BF = F.gelu(x_BD @ mine_DF)
        parts = [torch.empty(x_BF.shape) for _ in range(size)]
        dist.all_gather(parts, x_BF)
        x_BD = torch.cat(parts, dim=1)
    yield x_BD
    cleanup()


def pipeline(here, *, data_BD, num_microbatches, overlaps):
    """Every rank holds some layers, and passes microbatches on; with `overlaps` it sends while it computes."""
    rank, size = setup(here)
    local_layers = NUM_LAYERS // size
    mine = weights()[rank * local_layers : (rank + 1) * local_layers]
    microbatches = data_BD.chunk(num_microbatches)
    outputs, handles = [], []
    for microbatch in microbatches:
        x_BD = microbatch
        if rank > 0:
            x_BD = torch.empty_like(microbatch)
            dist.recv(x_BD, src=rank - 1)
        for weight_DD in mine:
            x_BD = F.gelu(x_BD @ weight_DD)
        if rank < size - 1 and overlaps:
            handles.append(dist.isend(x_BD, dst=rank + 1))
        elif rank < size - 1:
            dist.send(x_BD, dst=rank + 1)
        else:
            outputs.append(x_BD)
    for handle in handles:
        handle.wait()
    yield outputs
    cleanup()
