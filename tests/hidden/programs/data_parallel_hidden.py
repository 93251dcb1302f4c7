"""Programs that call data_parallel.py: calls and arguments only."""

import torch.distributed as dist
from torch import nn

from grader.world.program import attempt, shares_memory


class Laid(nn.Module):
    """Tensors that are not contiguous: views of columns, transposed memory, and memory under two names."""

    def __init__(self, tensors, transpose):
        super().__init__()
        self.table = tensors["table"]  # in no state_dict: what lies between the columns is nobody's to change
        self.weight = nn.Parameter(tensors["weight"].t().contiguous().t() if transpose else tensors["weight"])
        self.columns = nn.Parameter(self.table[:, ::2])
        self.register_buffer("row", self.weight.detach()[1])
        self.register_buffer("turned", self.weight.detach().t())
        self.register_buffer("flipped", tensors["flipped"].t())
        self.inner = nn.Module()
        self.inner.tied = self.weight


def broadcast_layouts(here, *, sources, tensors, transpose):
    """Yields for each src the tensors afterwards, the table that `columns` is a view of, and what shares memory."""
    for src, own in zip(sources, tensors, strict=True):
        module = Laid(own, transpose)
        before = module.weight, module.columns, module.row, module.turned, module.flipped
        memory = [tensor.data_ptr() for tensor in before]
        here.submission.broadcast_module(module, src)
        after = module.weight, module.columns, module.row, module.turned, module.flipped
        yield {
            "weight": module.weight.detach(),
            "columns": module.columns.detach(),
            "row": module.row,
            "turned": module.turned,
            "flipped": module.flipped,
            "table": module.table,
            "in place": all(new is old for new, old in zip(after, before, strict=True))
            and [tensor.data_ptr() for tensor in after] == memory,
            "shared": all(shares_memory(view, module.weight) for view in (module.row, module.turned))
            and module.inner.tied is module.weight,
        }


def groups(here, *, members, weights, rows):
    """In a group: yields the weight after broadcast_module from each of its ranks, then the loss_scale."""
    group = dist.new_group(members)
    for src, weight in enumerate(weights):
        module = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        module.weight = nn.Parameter(weight)
        outcome = attempt(here.submission.broadcast_module, module, src, group=group)
        yield {"outcome": outcome, "weight": module.weight.detach()}
    yield attempt(here.submission.loss_scale, rows, group=group)
