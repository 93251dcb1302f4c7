"""The whole network in one process: outputs, losses and gradients, right ones and those of classic mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor

Layer = Mapping[str, Any]
Stages = Sequence[Sequence[Layer]]
Gradients = list[list["Tensor | None"]]  # by stage and parameter; None for a frozen one


class WholeNetwork:
    """The layers of all stages, one after the other, with parameters of its own."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self._own = [[_parameters(layer) for layer in layers] for layers in stages]

    def __call__(self, x: Tensor) -> Tensor:
        """The output for these rows."""
        for stage in range(len(self.stages)):
            x = self.through(stage, x)
        return x

    def through(self, stage: int, x: Tensor) -> Tensor:
        """What one stage makes of its input, which is left as it is."""
        for layer, own in zip(self.stages[stage], self._own[stage], strict=True):
            x = _apply(layer, own, x)
        return x

    def entering(self, x: Tensor) -> list[Tensor]:
        """What enters each stage for these rows, and the output last."""
        import torch

        activations = [x]
        with torch.no_grad():
            for stage in range(len(self.stages)):
                activations.append(self.through(stage, activations[-1]))
        return activations

    def parameters(self) -> list[list[Tensor]]:
        """By stage, in the order of `nn.Module.parameters()`."""
        return [[parameter for own in layers for parameter in own.values()] for layers in self._own]

    def names(self) -> list[list[str]]:
        """By stage: what messages call the parameters, as `named_parameters()` of the stage's layers does."""
        return [[f"{number}.{name}" for number, own in enumerate(layers) for name in own] for layers in self._own]

    def gradients(self) -> Gradients:
        """What has accumulated in the parameters; zeros where nothing did."""
        return [[_gradient(parameter) for parameter in stage] for stage in self.parameters()]


def _parameters(layer: Layer) -> dict[str, Tensor]:
    named = {name: layer.get(name) for name in ("weight", "bias")}
    return {
        name: value.clone().requires_grad_(not layer["frozen"]) for name, value in named.items() if value is not None
    }


def _gradient(parameter: Tensor) -> Tensor | None:
    if not parameter.requires_grad:
        return None
    return parameter.detach() * 0 if parameter.grad is None else parameter.grad.clone()


def _apply(layer: Layer, own: Mapping[str, Tensor], x: Tensor) -> Tensor:
    import torch

    match layer["kind"]:
        case "linear":
            return x @ own["weight"].t() + own["bias"] if "bias" in own else x @ own["weight"].t()
        case "embedding":
            return own["weight"][x]
        case "tanh":
            return torch.tanh(x)
        case "relu":
            return torch.clamp(x, min=0)
        case "scale":
            return torch.mul(x, layer["factor"])
        case "cast":
            return x.to(layer["dtype"])
        case "transpose":
            return x.transpose(-1, -2).contiguous()
        case "mean":
            return x.mean(dim=-1)
    raise ValueError(f"no layer of kind {layer['kind']!r}")


def loss_of(name: str, output: Tensor, target: Tensor) -> Tensor:
    """The loss by its name in torch.nn.functional: a mean over the rows."""
    import torch.nn.functional as F

    if name == "cross_entropy":
        return F.cross_entropy(output, target)
    return F.mse_loss(output, target)


def microbatches(tensor: Tensor, num_microbatches: int) -> Sequence[Tensor]:
    """The rows in pieces by the uneven rule."""
    return tensor.tensor_split(num_microbatches)


def schedule(stage: int, num_stages: int, num_microbatches: int) -> list[str]:
    """GPipe's actions of one stage, as an Action prints: "ra0", "F0", "sa0", …"""
    first, last = stage == 0, stage == num_stages - 1
    ks = range(num_microbatches)
    forwards = [f"{kind}{k}" for k in ks for kind in ("ra" * (not first), "F", "sa" * (not last)) if kind]
    backwards = [f"{kind}{k}" for k in ks for kind in ("rg" * (not last), "B", "sg" * (not first)) if kind]
    return forwards + backwards


def losses(stages: Stages, x: Tensor, y: Tensor, *, loss: str, num_microbatches: int) -> Tensor:
    """(m,): the loss of each microbatch by itself."""
    import torch

    output = WholeNetwork(stages)(x).detach()
    pairs = zip(microbatches(output, num_microbatches), microbatches(y, num_microbatches), strict=True)
    return torch.stack([loss_of(loss, out, target) for out, target in pairs])


def whole_gradients(stages: Stages, x: Tensor, y: Tensor, *, loss: str) -> Gradients:
    """The gradients of the loss on the whole batch at once."""
    network = WholeNetwork(stages)
    value = loss_of(loss, network(x), y)
    if value.requires_grad:
        value.backward()
    return network.gradients()


def weighted_gradients(stages: Stages, x: Tensor, y: Tensor, *, loss: str, weights: Sequence[float]) -> Gradients:
    """The gradients of the sum over microbatches of weight · loss."""
    network = WholeNetwork(stages)
    m = len(weights)
    for rows, target, weight in zip(microbatches(x, m), microbatches(y, m), weights, strict=True):
        value = loss_of(loss, network(rows), target) * weight
        if value.requires_grad:
            value.backward()
    return network.gradients()


def shared_gradients(
    stages: Stages, x: Tensor, y: Tensor, *, loss: str, num_microbatches: int, share: Literal["buffer", "leaf"]
) -> Gradients:
    """What comes of things that all microbatches share on a stage, each of which needs its own.

    buffer: the memory of what is received, if microbatches are of equal sizes: every backward sees the last input.
    leaf:   the leaf, whose gradient adds up: what is sent back for a microbatch holds the earlier ones' too.
    """
    import torch

    network, m = WholeNetwork(stages), num_microbatches
    inputs = list(microbatches(x, m))
    received: list[list[Tensor]] = []
    computed: list[list[Tensor]] = []
    for stage in range(len(stages)):
        buffer = torch.empty_like(inputs[0])
        leaves, outputs = [], []
        for rows in inputs:
            if share == "buffer":
                buffer.data.copy_(rows)  # as a receive does: autograd does not notice
            leaves.append((buffer if share == "buffer" else rows).detach().requires_grad_() if stage else rows)
            outputs.append(network.through(stage, leaves[-1]))
        received.append(leaves)
        computed.append(outputs)
        inputs = [output.detach().clone() for output in outputs]
    pairs = zip(computed.pop(), microbatches(y, m), strict=True)
    ends = [loss_of(loss, output, target) * (len(target) / len(x)) for output, target in pairs]
    torch.autograd.backward([end for end in ends if end.requires_grad])
    while computed:
        sent = [leaf.grad for leaf in received.pop()]
        if share == "leaf":
            sent = _running_sums(sent)
        ways = [each for each in zip(computed.pop(), sent, strict=True) if each[0].requires_grad]
        if ways:
            torch.autograd.backward([output for output, _ in ways], [gradient for _, gradient in ways])
    return network.gradients()


def _running_sums(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Each gradient with all before it; of more rows than the smallest, the first count."""
    sums: list[Tensor | None] = []
    total: Tensor | None = None
    for gradient in gradients:
        if gradient is not None:
            rows = len(gradient) if total is None else min(len(gradient), len(total))
            total = gradient if total is None else gradient[:rows] + total[:rows]
        sums.append(total)
    return sums
