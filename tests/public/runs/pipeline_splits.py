"""Splits of layers and of rows, compared with the uneven rule; a failure says what was left out or split otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import CheckFailed, Slip, expect
from grader.checking.show import value_text
from grader.world.values import ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

LAYERS = "the first num_layers % num_stages stages have one layer more than the others"
ROWS = (
    "sender and receiver count on num_microbatches pieces of known sizes: piece_sizes of grader.given has them; "
    "torch's chunk may give other ones, and fewer"
)


def compare_ranges(value: Sequence[Any], right: Sequence[range], *, what: str) -> None:
    """One range for each stage."""
    if list(value) == [{"range": [each.start, each.stop, 1]} for each in right]:
        return
    raise CheckFailed(
        f"{what} {_split(value, right)}",
        expected=", ".join(map(str, right)),
        actual=", ".join(map(_range_text, value)),
        help=LAYERS,
    )


def _split(value: Sequence[Any], right: Sequence[range]) -> str:
    """What is wrong with the ranges: "leaves out layer 6"."""
    try:
        found = [range(*each["range"]) for each in value]
        longest = max(map(len, found), default=0)
    except (TypeError, KeyError, ValueError):
        return "does not give ranges"
    except OverflowError:
        return "does not give the ranges of the uneven rule"
    num_layers = right[-1].stop
    if longest > num_layers:
        return "does not give the ranges of the uneven rule"
    held = [layer for each in found for layer in each]
    missing = [str(layer) for layer in range(num_layers) if layer not in held]
    if missing:
        return f"leaves out layer{'s' * (len(missing) > 1)} {', '.join(missing[:8])} of {num_layers}"
    again = [str(layer) for layer in range(num_layers) if held.count(layer) > 1]
    if again:
        return f"gives layer{'s' * (len(again) > 1)} {', '.join(again[:8])} to more than one stage"
    if [len(each) for each in found] != [len(each) for each in right]:
        return f"gives the stages {_numbers(found)} layers, not {_numbers(right)}"
    return "does not give the ranges of the uneven rule"


def _numbers(pieces: Sequence[Any]) -> str:
    return ", ".join(str(len(piece)) for piece in pieces)


def _range_text(value: Any) -> str:
    match value:
        case {"range": [start, stop, 1]}:
            return f"range({value_text(start)}, {value_text(stop)})"
        case {"range": [start, stop, step]}:
            return f"range({value_text(start)}, {value_text(stop)}, {value_text(step)})"
    return value_text(value)


def compare_microbatches(value: Any, batch: Tensor, right: Sequence[Tensor], *, what: str) -> None:
    """Exactly these rows in exactly so many pieces."""
    found = value if isinstance(value, list) else []
    rows = [each.tensor for each in found if isinstance(each, ReturnedTensor) and each.tensor.dim() == batch.dim()]
    if found and len(rows) == len(found) and [len(piece) for piece in rows] != [len(piece) for piece in right]:
        chunks = [len(piece) for piece in batch.chunk(len(right))] == [len(piece) for piece in rows]
        count = f"{len(rows)} microbatches, not {len(right)}" if len(rows) != len(right) else f"{_numbers(rows)} rows"
        left = len(batch) - sum(map(len, rows))
        lost = f", and leaves out {left} of {len(batch)} rows" if left > 0 else ""
        raise CheckFailed(
            f"{what} splits into {count}{', as torch.chunk does' if chunks else ''}{lost}",
            expected=f"{len(right)} microbatches with {_numbers(right)} rows",
            actual=f"{len(rows)} with {_numbers(rows)} rows",
            help=ROWS,
        )
    pieces = expect.sequence(value, len(right), what=what, rank=0)
    for k, (piece, wanted) in enumerate(zip(pieces, right, strict=True)):
        dealt = batch[k :: len(right)]
        order = "a microbatch is rows that follow each other: rows 0 to n, then the next"
        slips = [Slip(f"one row in {len(right)}, from row {k} on", order, dealt)]
        slips += [Slip(f"the rows of microbatch {j}", order, other) for j, other in enumerate(right)]
        expect.same(piece, wanted, slips=slips, what=f"microbatch {k} of {what}", rank=0, contiguous=False)
