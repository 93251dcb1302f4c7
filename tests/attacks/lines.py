"""What the attacks share: a rank's own lines to the judge and to the store, taken from the frames of its runtime."""

import json
import socket
import struct
import sys


def line(name):
    """The socket that is called `name` in a frame of the runtime."""
    frame = sys._getframe()
    while frame is not None:
        found = frame.f_locals.get(name)
        if isinstance(found, socket.socket):
            return found
        frame = frame.f_back
    raise LookupError(f"no frame holds {name}")


def send(name, head, blob=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    line(name).sendall(struct.pack("!IQ", len(text), len(blob)) + text + blob)


def say(head, blob=b""):
    """A message to the judge in the runtime's place."""
    send("channel", head, blob)


def answer(tree, blob=b""):
    """All that a program would say, with this value."""
    say({"event": "value", "tree": tree}, blob)
    say({"event": "done"})
    line("channel").recv(1)


def ask(head, blob=b""):
    """A request to the store, whose answer is not read."""
    send("store", head, blob)
