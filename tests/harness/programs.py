"""Programs of the tests of worlds; each stands for something that a submission may do."""

import ctypes
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from grader.world.program import attempt


def sum_of_ranks(here, *, own):
    total = torch.tensor([float(here.rank), own])
    dist.all_reduce(total)
    print(f"rank {here.rank} is done")
    yield total
    yield {"size": here.world_size, "nested": [(1, None, True), "text", 0.5, float("inf")]}


def raises_on_last(here):
    if here.rank == here.world_size - 1:
        raise ValueError("the last rank does not want to")
    dist.all_reduce(torch.ones(1))


def raises_in_second_case(here):
    yield 0
    if here.rank == 0:
        raise ValueError("in the second case")
    yield 1


def leaves(here, *, rank, how):
    if here.rank == rank:
        if how == "os._exit":
            os._exit(7)
        if how == "sys.exit":
            sys.exit(3)
        if how == "SIGSEGV":
            ctypes.string_at(0)
        if how == "SIGABRT":
            os.abort()
        if how == "SIGKILL":
            os.kill(os.getpid(), 9)
    dist.all_reduce(torch.ones(1))


def aborts_by_shapes(here):
    dist.all_reduce(torch.ones(1 if here.rank == 0 else 1000))


def both_send_first(here):
    if here.rank < 2:
        peer = 1 - here.rank
        dist.send(torch.ones(4), peer)
        dist.recv(torch.ones(4), peer)
    return here.rank


def never_ends(here):
    while here.rank == 1:
        pass
    dist.all_reduce(torch.ones(1))


def is_slow(here, *, seconds):
    """Slow, not stuck."""
    if here.rank == 0:
        time.sleep(seconds)
    dist.all_reduce(torch.ones(1))
    return here.rank


def prints(here, *, lines):
    for number in range(lines):
        print(f"line {number} of {here.rank} " + "x" * 80)
    sys.stderr.write("\x1b[31mred\x07\n")


def leaves_a_daemon(here):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    return here.init_method


def leaves_files(here):
    path = Path(here.init_method.removeprefix("file://")).with_name(f"left-by-{here.rank}")
    path.write_text("something")
    return str(path)


def writes_garbage(here, *, how):
    """Finds its channel among its descriptors and writes to it what no rank says."""
    import socket
    import stat

    from grader.world.wire import PREFIX, pack

    for number in range(3, 64):
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
        except OSError:
            continue
        channel = socket.socket(fileno=os.dup(number))
        data = {
            "noise": b"\xff" * 4096,
            "huge": PREFIX.pack(2**31, 2**62),
            "no object": PREFIX.pack(2, 0) + b"[]",
            "unknown event": pack({"event": "verdict", "status": "pass"}),
            "malformed values": pack({"event": "value", "tree": {"tensor": "7"}}, b"not safetensors")
            + pack({"event": "done"}),
            "malformed error": pack({"event": "failed", "error": {"frames": [{"line": "x"}, 3], "classes": 1}}),
        }[how]
        try:
            channel.sendall(data)
        except OSError:
            continue
    time.sleep(600)


class Liar(torch.Tensor):
    """Says that it equals anything."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return True


class UnprintableError(Exception):
    def __str__(self):
        raise RuntimeError("no message")


def returns_a_liar(here):
    return torch.zeros(3).as_subclass(Liar)


def raises_unprintable(here):
    raise UnprintableError


def raises_huge(here):
    raise ValueError("x" * 10**7 + "\x1b[2J")


def recurses(here):
    def deeper(number):
        return deeper(number + 1)

    return deeper(0)


def closes_everything(here):
    os.closerange(0, 256)
    time.sleep(600)


def stops_itself(here):
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)


def attempts(here):
    def wrong():
        raise KeyError("which")

    return attempt(wrong), attempt(lambda: 7)


def unjoined(here):
    return dist.is_initialized()


def own_group(here):
    """Joins by itself, by the file that the world has."""
    dist.init_process_group("gloo", init_method=here.init_method, rank=here.rank, world_size=here.world_size)
    total = torch.tensor([here.rank])
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total


def sub_group(here):
    group = dist.new_group([1, 3])
    if here.rank not in (1, 3):
        return None
    total = torch.tensor([here.rank])
    dist.all_reduce(total, group=group)
    return total


def environment(here):
    return os.environ.get("GRADER_RUN"), os.getpid(), torch.get_num_threads()


def calls_submission(here):
    return here.submission.sum_of_ranks(here)
