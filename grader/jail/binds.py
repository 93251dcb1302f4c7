"""What of the host is in the jail, and under which path there: an allow-list, read-only.

The paths inside are the jail's own (/python, /packages, /harness, /libs), so that they say nothing of the host and
are the same wherever a submission is graded. The checkout, the rest of `grader` and of the virtual environment,
and every submission stay outside: programs and submissions reach the ranks as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import grader
from grader.jail.interpreter import Interpreter
from grader.jail.libraries import libraries_of
from grader.jail.packages import installed

PYTHON = PurePosixPath("/python")
PACKAGES = PurePosixPath("/packages")
HARNESS = PurePosixPath("/harness")
LIBRARIES = PurePosixPath("/libs")
HARNESS_FILES = ("__init__.py", "given.py", "world")
# Other packages of the interpreter's own installation: an empty folder lies over each.
COVERED = ("site-packages", "dist-packages")
# Windows on a screen need half of X11, and no submission opens one.
LEFT_OUT = ("_tkinter",)


@dataclass(frozen=True)
class Bind:
    """One file or folder of the host, and where it appears in the jail."""

    source: Path
    target: PurePosixPath


@dataclass(frozen=True)
class BindPlan:
    """Everything of the host that is in the jail.

    binds:         in the order in which they are made.
    covered:       folders inside that are hidden by an empty one, after the binds.
    program:       the interpreter, inside.
    module_path:   what comes to the end of sys.path, inside.
    library_path:  where the loader looks first, inside.
    """

    binds: tuple[Bind, ...]
    covered: tuple[PurePosixPath, ...]
    program: PurePosixPath
    module_path: tuple[PurePosixPath, ...] = (HARNESS, PACKAGES)
    library_path: tuple[PurePosixPath, ...] = (PYTHON / "lib", LIBRARIES)


def plan_binds(
    interpreter: Interpreter,
    packages: Mapping[str, Path],
    libraries: Mapping[str, Path],
    harness: Path,
    covered: Iterable[str] = (),
) -> BindPlan:
    """The plan, from what is where on the host; pure.

    packages:  by the path below /packages, where it lies.
    libraries: by name, where it lies; those within the interpreter's library or a package are left out.
    harness:   the folder of the package `grader`.
    covered:   which of COVERED the interpreter's library has.
    """
    library = PYTHON / interpreter.library.relative_to(interpreter.prefix)
    program = PYTHON / "bin" / interpreter.program.name
    binds = [
        Bind(interpreter.program, program),
        Bind(interpreter.library, library),
        Bind(interpreter.loader, PurePosixPath(interpreter.loader)),
    ]
    trees = {interpreter.library, *packages.values()}
    for name, place in sorted(libraries.items()):
        if not trees.isdisjoint((place, *place.parents)):
            continue
        # Python's own libraries stay beside it, where some of its releases look for them.
        beside = place.parent == interpreter.prefix / "lib"
        binds.append(Bind(place, (PYTHON / "lib" if beside else LIBRARIES) / name))
    binds += [Bind(place, PACKAGES / entry) for entry, place in sorted(packages.items())]
    binds += [Bind(harness / name, HARNESS / "grader" / name) for name in HARNESS_FILES]
    return BindPlan(tuple(binds), tuple(library / name for name in covered), program)


def binds_of(interpreter: Interpreter) -> BindPlan:
    """The plan for this machine (0.3 s: keep it). `interpreter` is of the running one's version."""
    packages = installed()
    modules = sorted((interpreter.library / "lib-dynload").glob("*.so"))
    wanted = [path for path in modules if not path.name.startswith(LEFT_OUT)]
    libraries = libraries_of(interpreter.loader, [interpreter.program, *wanted, *packages.objects])
    harness = Path(grader.__file__).resolve().parent
    covered = [name for name in COVERED if (interpreter.library / name).is_dir()]
    return plan_binds(interpreter, packages.entries, libraries, harness, covered)
