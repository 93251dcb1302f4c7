"""torch's own parallel code runs on the traced group unchanged, gives the right numbers and is told in the trace."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.world import Doing, Launcher, Returned, World
from tests.harness import programs_torch
from tests.harness.programs_torch import STEPS, B, D, batch, loss_of, model, parameters
from tests.harness.traced import plain, returned

SIZES = (2, 3)


class Ran:
    """A world that ran all cases."""

    def __init__(self, outcome: Returned) -> None:
        self.trace = outcome.trace
        self.values = [dict(plain(values)) for values in outcome.values]
        self.number = {name: number for number, (name, _) in enumerate(outcome.values[0])}


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"world of {size}")
def ran(request: pytest.FixtureRequest, launcher: Launcher) -> Ran:
    return Ran(returned(World(request.param, launcher=launcher, deadline=60.0).run(programs_torch.all_cases)))


def gradients(network: nn.Module, rank: int, step: int, **options: Any) -> list[Tensor]:
    network.zero_grad()
    loss_of(network, batch(rank, step), **options).backward()
    zero = [torch.zeros_like(parameter) for parameter in network.parameters()]
    return [
        parameter.grad.clone() if parameter.grad is not None else none
        for parameter, none in zip(network.parameters(), zero, strict=True)
    ]


def mean(by_rank: list[list[Tensor]]) -> list[Tensor]:
    return [torch.stack(same).mean(dim=0) for same in zip(*by_rank, strict=True)]


def trained(size: int) -> list[Tensor]:
    """By one process that sees every rank's batch."""
    network = model()
    for step in range(STEPS):
        by_rank = [gradients(network, rank, step) for rank in range(size)]
        with torch.no_grad():
            for parameter, gradient in zip(network.parameters(), mean(by_rank), strict=True):
                parameter -= 0.1 * gradient
    return parameters(network)


@pytest.mark.parametrize(
    "name",
    [
        *("ddp", "ddp_small_buckets", "ddp_static_graph", "ddp_with_a_hook", "ddp_with_a_hook_that_waits"),
        *("ddp_with_half_precision", "zero_optimizer", "fsdp"),
    ],
)
def test_training_gives_the_parameters_of_one_process(name: str, ran: Ran) -> None:
    rtol = 1e-2 if name == "ddp_with_half_precision" else 1e-5
    for values in ran.values:
        torch.testing.assert_close(values[name], trained(len(ran.values)), rtol=rtol, atol=rtol / 10)
        assert [same.tolist() for same in values[name]] == [same.tolist() for same in ran.values[0][name]]


def test_gradients_of_ddp_with_unused_parameters_and_without_synchronization(ran: Ran) -> None:
    size = len(ran.values)
    unused = mean([gradients(model("branches"), rank, 0, both=rank % 2 == 0) for rank in range(size)])
    network = model()
    steps = [mean([gradients(network, rank, step) for rank in range(size)]) for step in range(2)]
    accumulated = [first + second for first, second in zip(*steps, strict=True)]
    for values in ran.values:
        torch.testing.assert_close(values["ddp_unused"], unused)
        torch.testing.assert_close(values["ddp_no_sync"], accumulated)


def test_buffers_of_ddp_come_from_rank_0(ran: Ran) -> None:
    for rank, values in enumerate(ran.values):
        network = model("norm")
        for step, source in ((0, 0), (1, rank)):
            loss_of(network, batch(source, step))
        torch.testing.assert_close(values["ddp_buffers"], network[1].running_mean)


def test_collectives_with_gradients(ran: Ran) -> None:
    size = len(ran.values)
    ranks = sum(range(1, size + 1))
    for values in ran.values:
        total, gradient, gathered = values["autograd_collectives"]
        assert total.tolist() == [2.0 * ranks] * 3
        assert gradient.tolist() == [2.0 * ranks] * 3
        assert [one.tolist() for one in gathered] == [[float(rank)] * 2 for rank in range(size)]


def test_functional_collectives(ran: Ran) -> None:
    size = len(ran.values)
    for rank, values in enumerate(ran.values):
        total, whole, share, *several = values["functional_collectives"]
        assert total.tolist() == [float(sum(range(size)))] * 4
        assert whole.tolist() == [float(one) for one in range(size) for _ in range(2)]
        assert share.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
        assert [one.tolist() for one in several] == [[float(size)] * 2, [float(size)] * 3]


def test_a_sharded_product(ran: Ran) -> None:
    generator = torch.Generator().manual_seed(1)
    x_BD = torch.randn(B, D, generator=generator)
    first, second = (torch.randn(D, D, generator=generator) for _ in range(2))
    for values in ran.values:
        torch.testing.assert_close(values["sharded_product"], torch.relu(x_BD @ first) @ second)


def told(ran: Ran, name: str) -> list[tuple[Doing, str]]:
    events = ran.trace.of(0, ran.number[name])
    return [(event.doing, event.operation.name) for event in events if event.operation is not None]


def test_the_buckets_of_ddp_are_told(ran: Ran) -> None:
    """In flight during backward: all of a step are issued before the first is waited for."""
    reductions = [one for one in told(ran, "ddp_with_a_hook") if one[1] == "all_reduce"]
    last_step = reductions[-len(reductions) // STEPS :]
    buckets = len(last_step) // 2
    assert buckets > 1
    assert last_step == [(Doing.ISSUE, "all_reduce")] * buckets + [(Doing.WAIT, "all_reduce")] * buckets
    blocking = [one for one in told(ran, "ddp_with_a_hook_that_waits") if one[1] == "all_reduce"][-2 * buckets :]
    assert blocking == [(Doing.ISSUE, "all_reduce"), (Doing.WAIT, "all_reduce")] * buckets
    elements = sum(parameter.numel() for parameter in model().parameters())
    issued = [one for one in ran.trace.of(0, ran.number["ddp"]).issued(by=("program",)) if one.name == "all_reduce"]
    assert [one.num_bytes for one in issued] == [4 * elements] * STEPS


def test_no_sync_sends_once(ran: Ran) -> None:
    names = [name for doing, name in told(ran, "ddp_no_sync") if doing is Doing.ISSUE]
    assert names.count("all_reduce") == 1


def test_nothing_slips_past_the_trace(ran: Ran) -> None:
    assert {name for _, name in told(ran, "fsdp")} >= {"all_gather_into_tensor", "reduce_scatter_tensor"}
    assert {name for _, name in told(ran, "functional_collectives")} == {
        *("all_reduce", "all_reduce_coalesced"),
        *("all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced"),  # so asks torch, also for one
    }
    assert "broadcast" in {name for _, name in told(ran, "zero_optimizer")}
