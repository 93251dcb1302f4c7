"""One all-reduce of the submission's own."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from grader.world import Here


def all_reduce(here: Here, *, elements_per_rank: int) -> Iterator[Tensor | None]:
    """Case 0: nothing. Case 1: the all-reduce of a tensor with as many elements for each rank."""
    yield None
    yield here.submission.all_reduce(torch.arange(float(elements_per_rank * here.world_size)))
