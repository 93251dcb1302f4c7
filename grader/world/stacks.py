"""Reading what faulthandler writes: the Python stack of a rank that is stuck or was killed by a signal."""

from __future__ import annotations

import re

from grader.world.failure import Frame

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+|\?\?\?) in (?P<function>.*)$')
_THREAD = re.compile(r"^(Current t|T)hread 0x")


def parse_stacks(dump: str) -> list[list[Frame]]:
    """The stacks in a dump, one for each thread, innermost frame last (faulthandler writes it first)."""
    stacks: list[list[Frame]] = []
    for line in dump.splitlines():
        if _THREAD.match(line) or line.startswith("Stack (most recent call first)"):
            stacks.append([])
        elif (found := _FRAME.match(line)) and stacks:
            number = found["line"]
            stacks[-1].append(Frame(found["file"], int(number) if number.isdigit() else 0, found["function"]))
    return [stack[::-1] for stack in stacks if stack]


def complete(dump: str) -> bool:
    """Whether the stack of the rank's main thread is in the dump down to its outermost frames."""
    # faulthandler writes a line at a time, and "..." where a stack is deeper than it shows
    return " in run_rank\n" in dump or "\n  ...\n" in dump


def main_stack(dump: str, program_file: str) -> tuple[Frame, ...]:
    """The stack that runs the program (or, before it runs, the import): the last complete one in the dump."""
    stacks = parse_stacks(dump)
    for stack in reversed(stacks):
        if any(frame.file == program_file or frame.function == "run_rank" for frame in stack):
            return tuple(stack)
    return tuple(stacks[-1]) if stacks else ()


def below_the_harness(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The frames from the program (or the imported module) on: those of zygote, warden and rank are left out."""
    harness = [at for at, frame in enumerate(frames) if frame.function in ("_work", "run_rank", "load_module")]
    return frames[harness[-1] + 1 :] if harness else frames
