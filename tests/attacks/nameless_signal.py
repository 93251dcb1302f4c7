"""Ends by a signal that Python has no name for."""

import os


def broadcast(tensor, src, *, group=None):
    os.kill(os.getpid(), 40)
