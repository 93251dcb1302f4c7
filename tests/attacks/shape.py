# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Returns a tensor with a dimension beyond 64 bits."""

import json
import struct


def broadcast(tensor, src, *, group=None):
    described = json.dumps({"0": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}).encode()
    answer({"tensor": "0"}, struct.pack("<Q", len(described)) + described)
