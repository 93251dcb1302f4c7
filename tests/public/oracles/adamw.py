"""AdamW in one process, as torch.optim.AdamW computes it. (That import costs the harness a second; this costs none.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

BETAS = 0.9, 0.999


class AdamW:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2). Changes `parameters` in place."""

    def __init__(self, parameters: Sequence[Tensor], *, lr: float, eps: float, weight_decay: float) -> None:
        self.lr, self.eps, self.weight_decay = lr, eps, weight_decay
        self.parameters = parameters
        self.means = [parameter * 0 for parameter in parameters]
        self.squares = [parameter * 0 for parameter in parameters]
        self.steps = 0

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step, with a gradient for each parameter."""
        self.steps += 1
        first, second = BETAS
        for number, (parameter, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            self.means[number] = mean = first * self.means[number] + (1 - first) * gradient
            self.squares[number] = square = second * self.squares[number] + (1 - second) * gradient.square()
            mean, square = mean / (1 - first**self.steps), square / (1 - second**self.steps)
            parameter.mul_(1 - self.lr * self.weight_decay)
            parameter.sub_(self.lr * mean / (square.sqrt() + self.eps))
