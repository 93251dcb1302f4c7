"""Values that cross the line of trust: a JSON tree in which tensors are numbers into a safetensors blob.

Nothing here can run code when it is read. What has no form here arrives as `Foreign`, with its type's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

MAX_DEPTH = 32
# Hexadecimal, of an integer: Python prints no more than 4300 decimal ones, and the time to reduce a fraction grows
# with their square.
MAX_DIGITS = 3500
MAX_BITS = 4 * (MAX_DIGITS - len("-0x"))
TOO_MANY_DIGITS = {"foreign": "a number with too many digits"}


@dataclass(frozen=True)
class ReturnedTensor:
    """A tensor that came back from a rank: bytes, dtype and shape, and what the rank says of it.

    tensor:        a plain contiguous CPU tensor of the judge's own.
    contiguous:    whether it was contiguous on the rank.
    requires_grad: whether it took part in autograd there.
    device:        where it was, as text ("cpu").
    """

    tensor: Tensor
    contiguous: bool
    requires_grad: bool
    device: str


@dataclass(frozen=True)
class Foreign:
    """A value of a type that does not cross: its type's name, e.g. "set" or "FakeTensor"."""

    type_name: str


@dataclass(frozen=True)
class PerRank:
    """Inputs that differ by rank: rank r is sent `values[r]` and nothing of the others."""

    values: Sequence[Any]


class ValueTreeError(ValueError):
    """A tree or a blob that `encode` cannot have made."""


def encode(value: object) -> tuple[Any, bytes]:
    """(tree, blob) of None, bool, int, float, str, list, tuple, dict with str keys, Fraction, dtype and tensors.

    Only exact types are taken: a subclass may do anything when it is compared or printed.
    """
    import torch

    tensors: dict[str, Tensor] = {}

    def walk(node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return {"foreign": "a value nested too deeply"}
        kind = type(node)
        if node is None or kind in (bool, str):
            return node
        if kind is int:
            # beyond 64 bits as text: JSON readers differ, and Python bounds the digits it converts
            if node.bit_length() > MAX_BITS:
                return TOO_MANY_DIGITS
            return node if -(2**63) <= node < 2**63 else {"int": hex(node)}
        if kind is float:
            return node if math.isfinite(node) else {"float": repr(node)}
        if kind is list:
            return [walk(child, depth + 1) for child in node]
        if kind in (tuple, torch.Size):
            return {"tuple": [walk(child, depth + 1) for child in node]}
        if kind is dict and all(type(key) is str for key in node):
            return {"dict": {key: walk(child, depth + 1) for key, child in node.items()}}
        if kind is Fraction:
            if max(node.numerator.bit_length(), node.denominator.bit_length()) > MAX_BITS:
                return TOO_MANY_DIGITS
            return {"fraction": [hex(node.numerator), hex(node.denominator)]}
        if kind is torch.dtype:
            return {"dtype": str(node).removeprefix("torch.")}
        if kind in (torch.Tensor, torch.nn.Parameter):
            return _encode_tensor(node, tensors)
        return {"foreign": f"{kind.__module__}.{kind.__qualname__}"[:200]}

    tree = walk(value, 0)
    return tree, _pack_tensors(tensors)


def _encode_tensor(tensor: Tensor, tensors: dict[str, Tensor]) -> dict[str, Any]:
    import torch

    plain = tensor.detach()
    described = {
        "tensor": str(len(tensors)),
        "contiguous": plain.is_contiguous(),
        "requires_grad": tensor.requires_grad,
        "device": str(plain.device),
    }
    # A clone, since safetensors refuses tensors that share storage. Complex numbers travel as pairs of reals.
    own = plain.resolve_conj().resolve_neg().to("cpu").clone(memory_format=torch.contiguous_format)
    if own.is_complex():
        own, described["complex"] = torch.view_as_real(own).contiguous(), True
    tensors[str(len(tensors))] = own
    return described


def _pack_tensors(tensors: dict[str, Tensor]) -> bytes:
    from safetensors.torch import save

    return save(tensors) if tensors else b""


def decode(tree: Any, blob: bytes, *, tensor: Callable[[ReturnedTensor], Any] | None = None) -> Any:
    """The value of (tree, blob). Tensors come as `ReturnedTensor`, or as `tensor(returned)` where that is given.

    Raises ValueTreeError where either is malformed; never runs anything that they hold.
    """
    import torch
    from safetensors.torch import load

    try:
        tensors = load(blob) if blob else {}
    except Exception as error:  # whatever safetensors and torch say of bytes that anybody may have written
        raise ValueTreeError("the tensors are not in safetensors form") from error

    dtypes = vars(torch)  # getattr would import what torch imports on demand

    def read_tensor(node: dict[str, Any]) -> Any:
        found = tensors[node["tensor"]]
        if node.get("complex"):
            found = torch.view_as_complex(found)
        returned = ReturnedTensor(
            found, bool(node["contiguous"]), bool(node["requires_grad"]), str(node["device"])[:40]
        )
        return tensor(returned) if tensor else returned

    def walk(node: Any, depth: int) -> Any:
        if depth > 2 * MAX_DEPTH:
            raise ValueTreeError("nested too deeply")
        if isinstance(node, list):
            return [walk(child, depth + 1) for child in node]
        if not isinstance(node, dict):
            return node
        match node:
            case {"tensor": _}:
                return read_tensor(node)
            case {"tuple": list(children)}:
                return tuple(walk(child, depth + 1) for child in children)
            case {"dict": dict(children)}:
                return {key: walk(child, depth + 1) for key, child in children.items()}
            case {"float": str(text)}:
                return float(text)
            case {"int": str(text)} if len(text) <= MAX_DIGITS:
                return int(text, 16)
            case {"fraction": [str(above), str(below)]} if max(len(above), len(below)) <= MAX_DIGITS:
                return Fraction(int(above, 16), int(below, 16))
            case {"dtype": str(name)} if isinstance(dtypes.get(name), torch.dtype):
                return dtypes[name]
            case {"foreign": str(name)}:
                return Foreign(name[:200])
        raise ValueTreeError("an unknown kind of value")

    try:
        return walk(tree, 0)
    except (KeyError, TypeError, ValueError, RuntimeError, ZeroDivisionError) as error:
        raise ValueTreeError("the values are malformed") from error
