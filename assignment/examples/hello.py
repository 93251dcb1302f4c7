"""Ten minutes with four ranks. Nothing here is graded.

    torchrun --nproc-per-node 4 examples/hello.py
    torchrun --nproc-per-node 4 examples/hello.py --deadlock

`torchrun` starts four processes that run this same file. They differ in one thing, their rank, which torchrun
puts into the environment. Run the first line a few times: the order of the lines changes, the sum does not.
Then run the second, which hangs on purpose for a few seconds, and read what it says about why.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def say(text: str) -> None:
    """Prints one line with the rank in front. One write, so that the lines of two ranks do not mix."""
    sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()}: {text}\n")
    sys.stdout.flush()


def add_up() -> None:
    """Each rank brings its own number; afterwards every rank holds the sum."""
    number = torch.tensor([10.0 + dist.get_rank()])
    say(f"before the all-reduce I hold {number.item():g}")
    dist.all_reduce(number)
    say(f"after it I hold {number.item():g}, like everyone else")


def deadlock(seconds: float) -> None:
    """Every rank first waits for a message from its left neighbour. Nobody is left to send one."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    message = torch.tensor([float(rank)])
    received = torch.empty_like(message)
    say(f"I wait for rank {left}, and only then I send to rank {right}")
    try:
        dist.recv(received, left)
        dist.send(message, right)
    except RuntimeError:
        say(
            f"gave up after {seconds:g} s. Rank {left} waits too, so it never sends to me. "
            "The default timeout is half an hour."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Four ranks say hello, add up, and (if asked) wait for ever.")
    parser.add_argument("--deadlock", action="store_true", help="let every rank receive before it sends")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds until a rank gives up (default 5)")
    arguments = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("no rank in the environment: start it with torchrun, as in the first lines of this file")
    if arguments.deadlock and int(os.environ["WORLD_SIZE"]) < 2:
        parser.error("it takes two ranks to wait for each other: --nproc-per-node 2 or more")

    dist.init_process_group("gloo", timeout=timedelta(seconds=arguments.timeout))
    say(f"hello from process {os.getpid()}")
    if arguments.deadlock:
        deadlock(arguments.timeout)
    else:
        add_up()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
