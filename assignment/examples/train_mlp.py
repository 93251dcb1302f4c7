"""Trains one small network with your own modules, next to the same training without parallelism.

    torchrun --nproc-per-node 4 examples/train_mlp.py --parallel ddp
    torchrun --nproc-per-node 4 examples/train_mlp.py --parallel tensor
    torchrun --nproc-per-node 4 examples/train_mlp.py --parallel pipeline --microbatches 6 --overlap

Each way needs one module of the folder above, and no other: data_parallel.py, tensor_parallel.py or
pipeline_parallel.py. Every rank also trains the whole network by itself on the whole batch; that is what the
parallel run must equal, up to rounding. All is in float64, where rounding is far below what a mistake makes.
"""

from __future__ import annotations

import argparse
import copy
import os
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from grader.given import piece_sizes

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where your modules are

Pairs = list[tuple[Tensor, Tensor]]  # what this rank trained, and the same part of what the serial run trained


def build_network(sizes: list[int]) -> nn.Sequential:
    """One layer for each pair of neighbouring widths: a linear map and its activation."""
    return nn.Sequential(*[nn.Sequential(nn.Linear(d, f), nn.GELU()) for d, f in pairwise(sizes)]).double()


def new_optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Each rank has an optimizer of its own, for the parameters that it holds."""
    return torch.optim.AdamW(parameters, lr=0.01)


def train_serial(network: nn.Module, batch: Tensor, target: Tensor, steps: int) -> list[float]:
    """Trains `network` in place on the whole batch. Returns the loss before each step."""
    optimizer = new_optimizer(network.parameters())
    losses: list[float] = []
    for _ in range(steps):
        loss = F.mse_loss(network(batch), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def train_ddp(
    start: nn.Sequential, serial: nn.Sequential, batch: Tensor, target: Tensor, options: argparse.Namespace
) -> tuple[list[float], Pairs]:
    """Rows are split. The sum of the local losses times `loss_scale` has the gradient of the mean over all."""
    import data_parallel

    rank, world_size = dist.get_rank(), dist.get_world_size()
    kinds = {
        "naive": data_parallel.NaiveDDP,
        "flat": data_parallel.FlatDDP,
        "overlapped": data_parallel.OverlappedDDP,
        "bucketed": data_parallel.BucketedDDP,
    }
    module = kinds[options.ddp](copy.deepcopy(start))
    optimizer = new_optimizer(module.parameters())
    local_batch = data_parallel.shard_batch(batch, rank, world_size)
    local_target = data_parallel.shard_batch(target, rank, world_size)
    losses: list[float] = []
    for _ in range(options.steps):
        row_losses = (module(local_batch) - local_target).square().mean(dim=1)
        loss = row_losses.sum() * data_parallel.loss_scale(len(local_batch))
        loss.backward()
        module.synchronize_gradients()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        dist.all_reduce(total)  # for the printed line only: the mean over ranks is the mean over all rows
        losses.append(total.item() / world_size)
    return losses, list(zip(module.parameters(), serial.parameters(), strict=True))


def train_tensor(
    start: nn.Sequential, serial: nn.Sequential, batch: Tensor, target: Tensor, options: argparse.Namespace
) -> tuple[list[float], Pairs]:
    """Columns are split, and the loop is the serial one: each rank computes the same loss on the whole batch."""
    import tensor_parallel

    rank, world_size = dist.get_rank(), dist.get_world_size()
    module = tensor_parallel.ColumnParallelMLP(options.sizes, F.gelu).to(batch)
    for split, (linear, _) in zip(module.layers, start, strict=True):
        split.load_master(linear.weight.detach().t(), linear.bias.detach())  # nn.Linear's weight is (out, in)
    losses = train_serial(module, batch, target, options.steps)
    pairs: Pairs = []
    for split, (linear, _) in zip(module.layers, serial, strict=True):
        pairs.append((split.weight, tensor_parallel.shard_columns(linear.weight.t(), rank, world_size)))
        pairs.append((split.bias, tensor_parallel.shard_columns(linear.bias, rank, world_size)))
    return losses, pairs


def train_pipeline(
    start: nn.Sequential, serial: nn.Sequential, batch: Tensor, target: Tensor, options: argparse.Namespace
) -> tuple[list[float], Pairs]:
    """Layers are split. The first stage reads the batch, the last the target; only the last sees the loss."""
    import pipeline_parallel

    rank, world_size = dist.get_rank(), dist.get_world_size()
    own = pipeline_parallel.split_layers(len(start), world_size)[rank]
    layers = nn.Sequential(*[copy.deepcopy(start[layer]) for layer in own])
    stage = pipeline_parallel.PipelineStage(
        layers,
        num_microbatches=options.microbatches,
        input_shape=(options.sizes[own.start],),
        dtype=batch.dtype,
        device=batch.device,
        overlap=options.overlap,
    )
    optimizer = new_optimizer(stage.parameters())
    num_rows = len(batch)
    rows_M = torch.tensor(piece_sizes(num_rows, options.microbatches)).to(batch)
    losses: list[float] = []
    for _ in range(options.steps):
        losses_M = stage.train_step(
            batch if rank == 0 else None,
            target if rank == world_size - 1 else None,
            loss_fn=F.mse_loss,
            num_rows=num_rows,
        )
        optimizer.step()
        optimizer.zero_grad()
        if losses_M is not None:
            losses.append((losses_M @ rows_M).item() / num_rows)
    expected = [parameter for layer in own for parameter in serial[layer].parameters()]
    return losses, list(zip(stage.parameters(), expected, strict=True))


def read_options() -> argparse.Namespace:
    """The command line; ends with a usage message if it is wrong or if there is no rank."""
    parser = argparse.ArgumentParser(description="Train a small network in parallel, next to the serial run.")
    parser.add_argument("--parallel", choices=["ddp", "tensor", "pipeline"], required=True)
    parser.add_argument("--ddp", choices=["naive", "flat", "overlapped", "bucketed"], default="naive")
    parser.add_argument("--microbatches", type=int, default=4, help="of the pipeline (default 4)")
    parser.add_argument("--overlap", action="store_true", help="let the pipeline overlap its messages")
    parser.add_argument("--sizes", type=int, nargs="+", default=[12, 32, 32, 32, 32, 32, 7], help="widths")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if len(options.sizes) < 2:
        parser.error("--sizes needs the width of the input and one for each layer")
    if "RANK" not in os.environ:
        parser.error("no rank in the environment: start it with torchrun, as in the first lines of this file")
    return options


def start_process_group() -> torch.device:
    """Joins the other ranks: NCCL if this machine has a GPU for each of its ranks, else gloo on the CPU."""
    local_rank, local_world_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if torch.cuda.device_count() < local_world_size:
        dist.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    return device


def main() -> None:
    options = read_options()
    device = start_process_group()
    torch.manual_seed(options.seed)  # every rank draws the same network and the same batch
    start = build_network(options.sizes).to(device)
    batch = torch.randn(options.rows, options.sizes[0], dtype=torch.float64).to(device)
    target = torch.randn(options.rows, options.sizes[-1], dtype=torch.float64).to(device)

    serial = copy.deepcopy(start)
    serial_losses = train_serial(serial, batch, target, options.steps)
    train = {"ddp": train_ddp, "tensor": train_tensor, "pipeline": train_pipeline}[options.parallel]
    losses, pairs = train(start, serial, batch, target, options)

    differences = [(mine - expected).abs().amax() for mine, expected in pairs if mine.numel() > 0]
    difference = torch.stack([batch.new_zeros(()), *differences]).amax().detach()
    dist.all_reduce(difference, dist.ReduceOp.MAX)
    if dist.get_rank() == dist.get_world_size() - 1:  # in a pipeline, the one that sees the loss
        lines = ["step  loss, parallel  loss, serial"]
        for step, (mine, expected) in enumerate(zip(losses, serial_losses, strict=True)):
            lines.append(f"{step:4}  {mine:14.9f}  {expected:12.9f}")
        lines.append(f"After {options.steps} steps the parameters differ by {difference.item():.1e} at most.")
        sys.stdout.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
