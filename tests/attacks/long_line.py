"""Raises from a line of source that is nearly as long as a module may be, and full of escapes."""


def broadcast(tensor, src, *, group=None):
    raise ValueError("ESCAPES")
