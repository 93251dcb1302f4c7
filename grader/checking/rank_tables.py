"""What came and what was expected of all ranks, as two small tables: a row for each rank, a column for each number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grader.checking.differences import RTOL
from grader.checking.show import value_text
from grader.world.failure import printable
from grader.world.values import ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 68  # of a line: what 80 columns leave beside the widest label of a report
MAX_RANKS = 5
MAX_NUMBERS = 8
DIGITS = (6, 10, 17)  # significant ones: as few as tell the tables apart
MORE = " …"


def rank_tables(came: Mapping[int, Any], expected: Mapping[int, Any]) -> tuple[str, str]:
    """A table of `came` and one of `expected`, by rank; their columns stand below each other.

    The first line has dtype and shape, where all tensors of a table have the same; otherwise each row has its own.
    Tensors are flattened. Of long ones, the numbers from the first wrong one on are shown; of many ranks, the first.
    """
    ranks = list(expected)[:MAX_RANKS]
    tables = [_Table({rank: _bare(values.get(rank)) for rank in ranks}) for values in (came, expected)]
    pairs = [tuple(table.values[rank] for table in tables) for rank in ranks]
    wrong = sorted(index for pair in pairs if (index := _first_wrong(*pair)) is not None)[:1]
    room = WIDTH - len(MORE) - max(len(table.label(rank)) for table in tables for rank in ranks)
    view = _fitting(tables, room, [0, *wrong])
    left_out = len(expected) - len(ranks)
    below = f"\n(and {left_out} more {'rank' if left_out == 1 else 'ranks'})" if left_out else ""
    first, second = (table.text(view) + below for table in tables)
    return first, second


@dataclass(frozen=True)
class _View:
    """The numbers that are shown: how many, from which on, and how wide each is."""

    start: int
    count: int
    digits: int
    width: int


@dataclass(frozen=True)
class _Table:
    """values: by rank: a tensor, or anything else that a submission may return."""

    values: Mapping[int, Any]

    @property
    def tensors(self) -> dict[int, Tensor]:
        return {rank: value for rank, value in self.values.items() if _is_tensor(value)}

    @property
    def common(self) -> str:
        """Dtype and shape, if all tensors have the same; "" otherwise."""
        kinds = {_kind(tensor) for tensor in self.tensors.values()}
        return kinds.pop() if len(kinds) == 1 else ""

    def label(self, rank: int) -> str:
        """What stands before the numbers of a row."""
        if rank not in self.tensors:
            return f"rank {rank}  "
        kinds = {} if self.common else {one: f"{_kind(tensor)} " for one, tensor in self.tensors.items()}
        return f"rank {rank}  {kinds.get(rank, ''):<{max(map(len, kinds.values()), default=0)}}"

    def numbers(self, rank: int, view: _View) -> list[str]:
        shown = self.tensors[rank].reshape(-1)[view.start : view.start + view.count].tolist()
        return [_number(number, view.digits) for number in shown]

    def text(self, view: _View) -> str:
        head = ", ".join(part for part in (self.common, f"from element {view.start} on" if view.start else "") if part)
        rows = [self.label(rank) + self._row(rank, view) for rank in self.values]
        return "\n".join([head, *rows] if head else rows)

    def _row(self, rank: int, view: _View) -> str:
        tensor = self.tensors.get(rank)
        if tensor is None:
            return printable(value_text(self.values[rank]), WIDTH - len(MORE) - len(self.label(rank)))
        if tensor.numel() <= view.start:
            return "no more elements" if view.start else "no elements"
        more = MORE if tensor.numel() > view.start + view.count else ""
        return " ".join(f"{number:>{view.width}}" for number in self.numbers(rank, view)) + more


def _fitting(tables: list[_Table], room: int, starts: list[int]) -> _View:
    """What tells the tables apart, with as few digits as do, and as near to the beginning."""
    views = [_view(tables, room, start, digits) for digits in DIGITS for start in starts]
    return next((view for view in views if _shown(tables[0], view) != _shown(tables[1], view)), views[0])


def _view(tables: list[_Table], room: int, start: int, digits: int) -> _View:
    widest = _View(start, MAX_NUMBERS, digits, 1)
    texts = [text for table in tables for row in _shown(table, widest) for text in row]
    width = max(map(len, texts), default=1)
    return _View(start, max(1, min(MAX_NUMBERS, (room + 1) // (width + 1))), digits, width)


def _shown(table: _Table, view: _View) -> list[list[str]]:
    return [table.numbers(rank, view) for rank in table.tensors]


def _first_wrong(came: Any, expected: Any) -> int | None:
    """The index, of the flattened tensor, of the first number that is off by more than rounding."""
    if not _is_tensor(came) or not _is_tensor(expected) or _kind(came) != _kind(expected) or not came.numel():
        return None
    import torch

    wide = torch.complex128 if expected.is_complex() else torch.float64
    have, want = came.reshape(-1).to(wide), expected.reshape(-1).to(wide)
    finite = want.abs()[torch.isfinite(want)]
    largest = float(finite.max()) if finite.numel() else 0.0
    right = (have - want).abs() <= RTOL.get(str(expected.dtype).removeprefix("torch."), 0.0) * largest
    wrong = (~(right | (have == want))).nonzero()
    return int(wrong[0]) if len(wrong) else None


def _bare(value: Any) -> Any:
    return value.tensor if isinstance(value, ReturnedTensor) else value


def _is_tensor(value: Any) -> bool:
    return type(value).__module__ == "torch" and hasattr(value, "numel")


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _number(number: Any, digits: int) -> str:
    return f"{number:.{digits}g}" if isinstance(number, (float, complex)) else str(number)
