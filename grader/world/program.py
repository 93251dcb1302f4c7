"""A program: a function that runs on every rank and calls the submission. This is what programs may use.

A program is sent to the ranks as text. It takes `here` and its inputs by keyword. It returns its value, or yields
one value per case: then a failure can say which case was under way.

    def broadcast(here, *, cases, tensors):
        for case, tensor in zip(cases, tensors):
            yield here.submission.broadcast(tensor, case["src"])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from grader.world.traced.tracer import Tracer


@dataclass(frozen=True)
class Program:
    """The text of a Python file and the name of the function in it that every rank runs."""

    source: bytes
    function: str
    file_name: str

    @staticmethod
    def read(path: Path, function: str) -> Program:
        """The program `function` of the file at `path`."""
        return Program(path.read_bytes(), function, f"programs/{path.name}")

    @staticmethod
    def of(function: Callable[..., Any]) -> Program:
        """The program that a function of an importable file is; the whole file runs again on each rank."""
        path = inspect.getsourcefile(function)
        if path is None or "." in function.__qualname__:
            raise ValueError(f"{function.__qualname__} is not a top-level function of a file")
        return Program.read(Path(path), function.__name__)


@dataclass(frozen=True)
class Here:
    """What a program knows of where it runs.

    submission:  the submission's module, imported by this rank itself; None where the world has none.
    init_method: where an unjoined world may meet ("file://..."), unique for this world.
    """

    rank: int
    world_size: int
    submission: Any
    init_method: str
    tracer: Tracer

    def mark(self, name: str) -> None:
        """Notes among this rank's operations that the program has come so far: "computed the first gradient"."""
        self.tracer.mark(name)

    def hold(self, *, until: str, of: int) -> None:
        """Waits until rank `of` has marked `until`. Where that rank waits for this one first, the world is stuck."""
        self.tracer.hold(of, until)

    def excuse_handles(self) -> None:
        """Nobody has to wait for the operations that are under way on this rank: a test has interrupted their owner."""
        self.tracer.excuse()


@dataclass(frozen=True)
class Submitted:
    """One module of a submission: its name, its text as it was handed in, and the file name that messages show."""

    module: str
    source: bytes
    file_name: str


def attempt(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> dict[str, Any]:
    """{"value": ...} of a call, or {"raised": names of the error's classes, "message": text} where it raised.

    An unwritten function is no error to be tested for: NotImplementedError passes through.
    """
    try:
        return {"value": function(*arguments, **keywords)}
    except NotImplementedError:
        raise
    except Exception as error:
        return {"raised": [kind.__name__ for kind in type(error).__mro__], "message": message_of(error)}


def message_of(error: BaseException, limit: int = 2000) -> str:
    """The error's message, bounded, also where its __str__ raises."""
    try:
        text = str(error)
    except BaseException as second:
        return f"(its message cannot be read: {type(second).__name__})"
    return text if len(text) <= limit else text[:limit] + " …"


def shares_memory(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors lie in the same storage, so that writing to one may change the other."""
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr() and first.numel() > 0


def load_module(name: str, source: bytes, file_name: str) -> ModuleType:
    """Runs `source` as a new module `name`, in sys.modules, with its lines known to tracebacks."""
    import linecache
    import sys

    module = ModuleType(name)
    module.__file__ = file_name
    text = source.decode("utf-8", errors="replace")
    linecache.cache[file_name] = (len(text), None, text.splitlines(keepends=True), file_name)
    code = compile(source, file_name, "exec", dont_inherit=True)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
