"""Wrong solutions, and right ones written differently, as small edits of the reference."""

from __future__ import annotations

from dataclasses import dataclass

from grader.checking import Status


@dataclass(frozen=True)
class Edit:
    """Replace `old`, which stands exactly once in the reference's file, by `new`."""

    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """A wrong solution.

    name:    unique within its module; names the mistake ("root_is_always_0").
    story:   one sentence: what this student did.
    edits:   of reference/MODULE.py.
    fails:   names of checks ("collectives.broadcast") that must not pass.
    status:  the verdict that those checks must give; None where gloo decides by chance between an error and an abort
             (ranks that disagree on a shape), so anything but pass and infra.
    mistake: the row in the list of classic mistakes, if it has one.
    """

    name: str
    story: str
    edits: tuple[Edit, ...]
    fails: tuple[str, ...]
    status: Status | None = Status.FAIL
    mistake: int | None = None


@dataclass(frozen=True)
class Variant:
    """A right solution written differently.

    checks: the checks that can see the edits, and must pass; () for every check of the module.
    """

    name: str
    story: str
    edits: tuple[Edit, ...]
    checks: tuple[str, ...] = ()


def apply(source: str, edits: tuple[Edit, ...]) -> str:
    """The edited source. Raises ValueError where an edit's old text does not stand exactly once."""
    for edit in edits:
        found = source.count(edit.old)
        if found != 1:
            raise ValueError(f"the text to edit stands {found} times, not once: {edit.old!r}")
        source = source.replace(edit.old, edit.new)
    return source
