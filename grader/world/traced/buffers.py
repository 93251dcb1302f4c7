"""The buffers of an asynchronous operation: it works on private copies, and nobody can read a result too early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

SAMPLE = 64  # elements


def fill_with_poison(tensor: Tensor) -> None:
    """Writes NaN into every element, or the least number of a dtype that has no NaN (True for bool)."""
    # .data and not .detach(): that shares the version counter, and autograd would refuse a later backward.
    tensor.data.fill_(poison_of(tensor.dtype))


def poison_of(dtype: torch.dtype) -> float | int | bool:
    """What a buffer of this dtype is filled with."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return True if dtype is torch.bool else torch.iinfo(dtype).min


def same_bytes(first: Tensor, second: Tensor) -> bool:
    """Whether two contiguous tensors of one dtype and shape hold the same bytes: NaN equals itself."""
    if first.numel() == 0:
        return True
    return torch.equal(first.data.reshape(-1).view(torch.uint8), second.data.reshape(-1).view(torch.uint8))


class Private:
    """Private copies of an operation's tensors, from its issue to its wait.

    reads, writes: the caller's tensors. After construction those of `writes` hold poison.
    spoils: the operation writes into its copies of what it reads, too.
    """

    def __init__(self, reads: Sequence[Tensor], writes: Sequence[Tensor], *, spoils: bool = False) -> None:
        self._writes = writes
        written = {tensor.untyped_storage().data_ptr() for tensor in writes}
        # A copy for each object: torch's own code passes inputs that are parts of its outputs.
        self._copies: dict[int, Tensor] = {id(tensor): tensor.data.clone() for tensor in reads}
        for tensor in writes:
            if id(tensor) not in self._copies:
                self._copies[id(tensor)] = torch.empty_like(tensor.data)
        self._sent = [tensor for tensor in reads if tensor.untyped_storage().data_ptr() not in written]
        copies = {id(tensor): self._copies[id(tensor)] for tensor in self._sent}
        self._before = {key: copy.clone() for key, copy in copies.items()} if spoils else copies
        for tensor in writes:
            fill_with_poison(tensor)
        self._versions = [_version(tensor) for tensor in writes]

    def of(self, nested: Any) -> Any:
        """The private copies in place of the caller's tensors, in lists of lists."""
        if isinstance(nested, Tensor):
            return self._copies.get(id(nested), nested)
        return [self.of(entry) for entry in nested]

    def changed(self) -> bool:
        """Whether what is being sent is no longer what the caller's tensors hold."""
        return any(not same_bytes(tensor, self._before[id(tensor)]) for tensor in self._sent)

    def written(self) -> bool:
        """Whether somebody has written into a result's buffer, which held poison."""
        for tensor, version in zip(self._writes, self._versions, strict=True):
            unseen = version is not None and _version(tensor) == version
            if not unseen and _alone_in_its_storage(tensor):
                return True  # NaN / 2 is NaN: arithmetic on poison shows nowhere else
            flat = tensor.data.reshape(-1)
            if unseen:
                # Written through .data at most, which autograd does not count: a few elements will tell.
                flat = flat[:: max(1, flat.numel() // SAMPLE)]
            poison = poison_of(tensor.dtype)
            still = torch.isnan(flat) if poison != poison else flat == poison
            if not bool(still.all()):
                return True
        return False

    def give_results(self) -> None:
        """Writes the results into the caller's tensors."""
        for tensor in self._writes:
            tensor.data.copy_(self._copies[id(tensor)])


def _version(tensor: Tensor) -> int | None:
    """How often torch has seen its storage change; None where torch does not count."""
    return None if tensor.is_inference() else int(tensor._version)


def _alone_in_its_storage(tensor: Tensor) -> bool:
    """Whether torch counts the changes of its storage, and each of them changes this tensor."""
    return not tensor.is_inference() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
