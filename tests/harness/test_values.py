"""Values that cross the line of trust come back the same, or as `Foreign`; malformed ones are refused."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grader.world.values import Foreign, ReturnedTensor, ValueTreeError, decode, encode

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=10)
    | st.fractions()
    | st.sampled_from([torch.float32, torch.bfloat16, torch.bool]),
    lambda child: (
        st.lists(child, max_size=4)
        | st.lists(child, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), child, max_size=4)
    ),
    max_leaves=12,
)
DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


def across(value: object) -> Any:
    tree, blob = encode(value)
    return decode(json.loads(json.dumps(tree)), blob)


@given(PLAIN)
def test_plain_values_come_back_the_same(value: object) -> None:
    came = across(value)
    assert came == value
    assert type(came) is type(value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_tensors_come_back_bit_for_bit(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape).mul(100).to(dtype)
    came = across([tensor])[0]
    assert came.tensor.dtype == dtype
    assert came.tensor.shape == shape
    assert torch.equal(came.tensor, tensor)


def test_nan_and_infinity_come_back() -> None:
    came = across([float("nan"), float("-inf"), torch.tensor([float("nan"), float("inf")])])
    assert came[0] != came[0]
    assert came[1] == float("-inf")
    assert came[2].tensor.isnan().tolist() == [True, False]


def test_views_of_one_buffer_cross_apart_and_say_what_they_were() -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    first, second = across([whole[0], whole.t()])
    assert (first.contiguous, second.contiguous) == (True, False)
    assert torch.equal(second.tensor, whole.t())
    grown = across(torch.nn.Parameter(whole))
    assert (grown.requires_grad, grown.device) == (True, "cpu")


class Half(float):
    """A number that says that it equals anything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


@pytest.mark.parametrize("value", [{1, 2}, Half(0.5), object(), {1: 2}, b"bytes", print, torch.device("cpu")])
def test_other_types_arrive_as_their_names(value: object) -> None:
    came = across([value])[0]
    assert isinstance(came, Foreign)
    assert came.type_name


def test_depth_is_bounded() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    came = across(value)
    while isinstance(came, list):
        came = came[0]
    assert came == Foreign("a value nested too deeply")


GOOD = encode(torch.arange(3.0))


@pytest.mark.parametrize(
    ("tree", "blob"),
    [
        ({"tensor": "0"}, b"not safetensors"),
        ({"tensor": "7", "contiguous": True, "requires_grad": False, "device": "cpu"}, GOOD[1]),
        ({"tensor": "0"}, GOOD[1]),
        ({**GOOD[0], "complex": True}, GOOD[1]),
        ({"tensor": ["0"], "contiguous": True, "requires_grad": False, "device": "cpu"}, GOOD[1]),
        ({"pickle": "gASV"}, b""),
        ({"fraction": ["0x1", "0x0"]}, b""),
        ({"dtype": "load"}, b""),
        ({"int": "zz"}, b""),
        ({"float": "many"}, b""),
        ({"tuple": 3}, b""),
    ],
)
def test_malformed_values_are_refused(tree: Any, blob: bytes) -> None:
    with pytest.raises(ValueTreeError):
        decode(tree, blob)


@given(st.binary(max_size=300))
def test_no_blob_does_more_than_be_refused(blob: bytes) -> None:
    try:
        decode({"tensor": "0", "contiguous": True, "requires_grad": False, "device": "cpu"}, blob)
    except ValueTreeError:
        return
    pytest.fail("random bytes held a tensor")


def test_fractions_and_returned_tensors_have_their_types() -> None:
    assert across(Fraction(2, 4)) == Fraction(1, 2)
    assert isinstance(across(torch.ones(1)), ReturnedTensor)
