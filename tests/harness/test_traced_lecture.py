"""What the lecture's programs do runs on the traced group unchanged, and gives what one process computes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from grader.world import Launcher, World
from tests.harness import programs_lecture as lecture
from tests.harness.programs_lecture import STEPS, D, weights
from tests.harness.traced import PROGRAM, names, plain, returned

BATCH = 8


def world(size: int, launcher: Launcher) -> World:
    return World(size, launcher=launcher, joined=False)


def data() -> Tensor:
    return torch.randn(BATCH, D, generator=torch.Generator().manual_seed(11))


def forward(x_BD: Tensor, layers: list[Tensor]) -> Tensor:
    for weight_DD in layers:
        x_BD = F.gelu(x_BD @ weight_DD)
    return x_BD


@pytest.mark.parametrize("size", [1, 2, 4])
def test_collectives(size: int, launcher: Launcher) -> None:
    outcome = returned(world(size, launcher).run(lecture.collectives))
    whole = torch.arange(float(size))
    reduced = size * whole + sum(range(size))
    for rank, values in enumerate(plain(outcome.values)):
        (vector, own, pieces, summed), (all_reduced, share, gathered), column = values
        assert vector.tolist() == whole.tolist()
        assert own.item() == rank
        assert pieces is None if rank else [piece.item() for piece in pieces] == whole.tolist()
        assert summed.item() == (rank or sum(range(size)))
        assert all_reduced.tolist() == gathered.tolist() == reduced.tolist()
        assert share.item() == reduced[rank].item()
        assert column.tolist() == [float(size * one + rank) for one in range(size)]
    assert names(outcome.trace.of(0)) == [
        *("broadcast", "scatter", "gather", "reduce", "barrier"),
        *("all_reduce", "reduce_scatter_tensor", "all_gather_into_tensor", "all_to_all_single", "barrier"),
    ]


def test_bandwidth(launcher: Launcher) -> None:
    size, elements = 3, 300_000
    outcome = returned(world(size, launcher).run(lecture.bandwidth, elements=elements))
    for values in outcome.values:
        assert values == [[(4 * elements * 2 * (size - 1), True), (4 * elements * (size - 1), True)]]
    asked = [one.num_bytes for one in outcome.trace.of(0).issued(by=PROGRAM) if one.name != "barrier"]
    assert asked == [4 * elements] * 4


@pytest.mark.parametrize("size", [1, 2, 4])
def test_data_parallel(size: int, launcher: Launcher) -> None:
    outcome = returned(world(size, launcher).run(lecture.data_parallel, data_BD=data()))
    parameters = [weight.requires_grad_() for weight in weights()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    losses = []
    for _ in range(STEPS):
        loss = forward(data(), parameters).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    by_rank = [values[0] for values in plain(outcome.values)]
    means = torch.tensor([losses_of_rank for losses_of_rank, _ in by_rank]).mean(dim=0)
    torch.testing.assert_close(means, torch.tensor(losses))
    for _, came in by_rank:
        torch.testing.assert_close(came, [parameter.detach() for parameter in parameters])
    assert names(outcome.trace.of(0)) == ["all_reduce"] * len(parameters) * STEPS + ["barrier"]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_tensor_parallel(size: int, launcher: Launcher) -> None:
    outcome = returned(world(size, launcher).run(lecture.tensor_parallel, data_BD=data()))
    for values in plain(outcome.values):
        torch.testing.assert_close(values[0], forward(data(), weights()))
    gathers = [one for one in outcome.trace.of(0).issued(by=PROGRAM) if one.name == "all_gather"]
    assert [one.num_bytes for one in gathers] == [4 * BATCH * D // size] * len(weights())


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_pipeline(size: int, overlaps: bool, launcher: Launcher) -> None:
    inputs = {"data_BD": data(), "num_microbatches": 4, "overlaps": overlaps}
    outcome = returned(world(size, launcher).run(lecture.pipeline, **inputs))
    *first, last = [values[0] for values in plain(outcome.values)]
    assert first == [[]] * (size - 1)
    torch.testing.assert_close(torch.cat(last), forward(data(), weights()))
    for rank in range(size):
        asked = [(one.name, one.peer_rank) for one in outcome.trace.of(rank).issued(by=PROGRAM)]
        one_microbatch = [("recv", rank - 1)] * (rank > 0) + [("send", rank + 1)] * (rank < size - 1)
        assert asked == one_microbatch * 4 + [("barrier", None)]
