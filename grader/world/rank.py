"""What one rank does, from its fork to its end. Runs on the jail's side of the line of trust; decides nothing.

On its channel a rank hears {"task"} and then {"go"}; it says {"event": "ready"}, a "value" per case, and "done" or
"failed". Between "ready" and "go" it waits until all ranks are ready, and after "done" or "failed" until the judge
ends the world: a rank that left at once would break its peers' connections and take the blame from the cause.
"""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import inspect
import os
import signal
import socket
import sys
import traceback
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NoReturn

from grader import given
from grader.world import values
from grader.world.channel import Channel, Left
from grader.world.group import join
from grader.world.program import Here, load_module, message_of
from grader.world.store import ClientStore
from grader.world.traced.group import install
from grader.world.traced.places import Places
from grader.world.traced.tracer import Tracer

STACK_SIGNAL = signal.SIGUSR1
MAX_FRAMES = 30


def run_rank(
    rank: int,
    world_size: int,
    channel: socket.socket,
    store: socket.socket,
    stack_file: IO[bytes],
    place: str,
) -> NoReturn:
    """Takes its task from `channel` and never returns. `stack_file` gets the Python stack on STACK_SIGNAL or a crash.

    place: a path that belongs to this world, for `Here.init_method`.
    """
    faulthandler.enable(file=stack_file, all_threads=True)  # an abort is often in a thread of gloo
    faulthandler.register(STACK_SIGNAL, file=stack_file, all_threads=True)
    _tell_of_exits(stack_file)
    phase = ["start"]
    line = Channel(channel)
    try:
        _work(rank, world_size, line, store, place, phase)
    except Left:
        pass
    except BaseException as error:
        line.tell({"event": "failed", "phase": phase[0], "error": describe(error)})
        _flush()
        _stay(line)
    finally:
        _flush()
        # No interpreter teardown and no destructors of gloo: both have raced with threads.
        _exit(0)


_exit = os._exit


def _work(rank: int, world_size: int, line: Channel, store: socket.socket, place: str, phase: list[str]) -> None:
    task = line.hear()
    head = task.head
    submission_file = head["module"]["file_name"] if head["module"] is not None else ""
    files = Places(submission=submission_file, program=head["program"]["file_name"], given=given.__file__)
    tracer = Tracer(line, rank, files)
    install(tracer)
    submission = None
    if head["module"] is not None:
        phase[0] = "import"
        named = head["module"]
        submission = load_module(named["name"], base64.b64decode(named["source"]), named["file_name"])
    phase[0] = "join"
    timeout = timedelta(seconds=head["group_timeout"])
    meeting = ClientStore(store)  # held here: torch keeps its C++ half alone
    if head["joined"]:
        join(meeting, rank=rank, world_size=world_size, timeout=timeout)
    phase[0] = "program"
    program = load_module("program", base64.b64decode(head["program"]["source"]), head["program"]["file_name"])
    function = getattr(program, head["program"]["function"])
    inputs = values.decode(head["inputs"], task.blob, tensor=_own_tensor)
    meeting_place = f"file://{place}"
    here = Here(rank=rank, world_size=world_size, submission=submission, init_method=meeting_place, tracer=tracer)
    line.tell({"event": "ready"})
    line.hear()
    result = function(here, **inputs)
    for value in result if inspect.isgenerator(result) else [result]:
        tree, blob = values.encode(value)
        _flush()
        line.tell({"event": "value", "tree": tree}, blob)
    _flush()
    line.tell({"event": "done"})
    _stay(line)


def _stay(line: Channel) -> None:
    """Until the judge ends the world: others may still have to hear of this one, or need its part of an operation."""
    with contextlib.suppress(Left):
        line.listen_until(lambda: False)


def _own_tensor(returned: values.ReturnedTensor) -> Any:
    tensor = returned.tensor
    if not returned.contiguous:
        raise values.ValueTreeError("inputs are contiguous; a program makes its own views")
    return tensor


def describe(error: BaseException) -> dict[str, Any]:
    """An error as plain data: its type, message and frames (innermost last), bounded."""
    frames = [
        {"file": frame.f_code.co_filename, "line": line, "function": frame.f_code.co_qualname}
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append({"file": str(error.filename), "line": int(error.lineno or 0), "function": "<module>"})
    return {
        "type": type(error).__name__,
        "message": message_of(error),
        "classes": [kind.__name__ for kind in type(error).__mro__],
        "frames": frames[-MAX_FRAMES:],
    }


def _tell_of_exits(stack_file: IO[bytes]) -> None:
    """Makes os._exit write this rank's stack first. Nothing relies on it: it only makes a message better."""

    def leave(status: int) -> NoReturn:
        faulthandler.dump_traceback(file=stack_file, all_threads=False)
        _flush()
        _exit(status)

    os._exit = leave


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # the submission closed or replaced it; its output is its own loss


def enter(
    rank: int,
    world_size: int,
    *,
    channel: socket.socket,
    store: socket.socket,
    output: int,
    stack: int,
    place: Path,
) -> NoReturn:
    """The first steps of a freshly forked rank: a session of its own, its output and stack to their pipes."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(null)
    os.close(output)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  lives as long as the process
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    run_rank(rank, world_size, channel, store, os.fdopen(stack, "wb", buffering=0), str(place))
