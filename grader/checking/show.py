"""Values as short text for a message: at most a few lines, whatever a submission returned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.world.failure import printable
from grader.world.values import Foreign, ReturnedTensor

if TYPE_CHECKING:
    from torch import Tensor

MAX_NUMBERS = 16
MAX_TEXT = 300


def value_text(value: Any) -> str:
    """One value of any kind that crosses the line of trust, in one or two lines."""
    match value:
        case ReturnedTensor():
            return tensor_text(value.tensor)
        case Foreign():
            return f"an object of type {printable(value.type_name, 100)}"
        case list() | tuple():
            shown = ", ".join(value_text(child) for child in value[:6])
            more = f", … ({len(value)} in all)" if len(value) > 6 else ""
            opening, closing = "[]" if isinstance(value, list) else "()"
            return printable(f"{opening}{shown}{more}{closing}", MAX_TEXT)
        case dict():
            shown = ", ".join(f"{key!r}: {value_text(child)}" for key, child in list(value.items())[:6])
            more = f", … ({len(value)} in all)" if len(value) > 6 else ""
            return printable(f"{{{shown}{more}}}", MAX_TEXT)
        case _ if type(value).__module__ == "torch" and hasattr(value, "numel"):
            return tensor_text(value)
        case _:
            return printable(_repr(value), MAX_TEXT)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python bounds the digits that it converts
        return "(too many digits to show)"


def tensor_text(tensor: Tensor) -> str:
    """Shape, dtype and the first numbers, in rows of its last dimension: "float32 (2, 3): [0, 1, 2] [3, 4, 5]"."""
    kind = str(tensor.dtype).removeprefix("torch.")
    shape = tuple(tensor.shape)
    flat = tensor.reshape(-1)[:MAX_NUMBERS].tolist()
    width = shape[-1] if len(shape) > 1 and shape[-1] else max(len(flat), 1)
    rows = [flat[start : start + width] for start in range(0, len(flat), width)] or [[]]
    more = ", …" if tensor.numel() > MAX_NUMBERS else ""
    text = " ".join(f"[{', '.join(map(_number, row))}]" for row in rows)
    return f"{kind} {shape}: {text[:-1]}{more}]"


def _number(number: Any) -> str:
    if isinstance(number, float):
        return f"{number:.6g}"
    return str(number)
