"""The Python that runs in the jail, as data: its program, its standard library and the loader of its libraries."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_DESCRIBE = "import json, sys, sysconfig; print(json.dumps([sys.base_prefix, sysconfig.get_path('stdlib')]))"
_INTERPRETER_SEGMENT = 3  # PT_INTERP of elf.h


@dataclass(frozen=True)
class Interpreter:
    """One Python: all paths are the host's, free of links.

    program: the executable itself, not a virtual environment's link to it.
    prefix:  the folder that it was installed to; "/usr" for a system's own.
    library: the folder of its standard library, below `prefix`.
    loader:  the program that loads its shared libraries, at the path where the kernel looks for it.
    """

    program: Path
    prefix: Path
    library: Path
    loader: Path

    @staticmethod
    def running() -> Interpreter:
        """The one that runs this process."""
        return _interpreter(sys.executable, sys.base_prefix, sysconfig.get_path("stdlib"))

    @staticmethod
    def at(program: Path) -> Interpreter:
        """Another one, which is run once to ask it."""
        answer = subprocess.run([program, "-I", "-c", _DESCRIBE], capture_output=True, check=True, text=True)
        return _interpreter(str(program), *json.loads(answer.stdout))


def _interpreter(program: str, prefix: str, library: str) -> Interpreter:
    found = Path(program).resolve(strict=True)
    return Interpreter(
        program=found,
        prefix=Path(prefix).resolve(strict=True),
        library=Path(library).resolve(strict=True),
        loader=loader_of(found.open("rb").read(4096)),
    )


def loader_of(elf: bytes) -> Path:
    """The loader that a 64-bit little-endian ELF program names, from its first page (see elf(5)).

    Raises ValueError for a program that names none: a static one, or one for another kind of machine.
    """
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("the interpreter is not a 64-bit Linux program")
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for start in range(table, table + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, start)
        if kind == _INTERPRETER_SEGMENT:
            return Path(elf[offset : offset + length].rstrip(b"\0").decode())
    raise ValueError("the interpreter loads no shared libraries; the jail needs one that does")
