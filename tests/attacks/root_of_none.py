# ruff: noqa: F821  a hostile submission, after the text of lines.py
"""Tells of an operation that has no root with a root, on one rank alone."""

import torch.distributed as dist


def broadcast(tensor, src, *, group=None):
    if dist.get_world_size() == 1:
        return tensor.clone()
    told = {"event": "issue", "s": 0, "g": 0, "op": "all_reduce", "reads": [["float32", [1]]]}
    say(told | ({"root": 0} if dist.get_rank() else {}))
    return line("channel").recv(1)
