"""The sessions of hidden checks, as data; see tests/public/runs/wrapper_sessions.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.public.oracles.sessions import (
    SYNCHRONIZE,
    WRAP_AGAIN,
    Script,
    Session,
    Step,
    backward,
    backward_of_two_calls,
    clear,
    look,
    no_sync,
    refused_backward,
    require,
    retaining_backward,
)
from tests.public.runs.wrapper_sessions import SHAPES, Builder, Use
from tests.public.runs.wrappers import parameters

GONE = "when a wrapper is gone its hooks are gone: a hook that holds the wrapper keeps both, so hold it weakly"
ONE = "what counts is how many backwards ran, not how many forwards, nor how often a parameter was used"


def in_group(sessions: Sequence[Session], group: tuple[int, ...]) -> list[Session]:
    """The same sessions in a group of these ranks; the other ranks try to make the wrapper, and get a ValueError."""
    return [
        replace(session, title=f"{session.title}, group of ranks {list(group)}", group=group) for session in sessions
    ]


def frozen_later(make: Builder) -> list[Session]:
    """requires_grad that changes after construction, where it is read."""

    def script(_: int, use: Use) -> Script:
        return [
            require(["b"], True),
            require(["e"], False),
            backward(use(turn=1)),
            SYNCHRONIZE,
            look("b became trainable and e frozen after construction"),
        ]

    return [make.session("b is frozen at construction", script, frozen=frozenset({"b"}))]


def layouts(make: Builder) -> list[Session]:
    """A parameter whose memory is laid out by columns, and one without elements."""
    shapes = {"a": (2, 3), "columns": (3, 4), "empty": (0, 3), "e": (2, 3)}

    def script(_: int, use: Use) -> Script:
        return [
            backward(use(turn=1)),
            SYNCHRONIZE,
            look("after the first step"),
            backward(use("columns", "empty", "a", turn=2)),
            SYNCHRONIZE,
            look("after the second, on top of the first"),
        ]

    of = parameters(make.check, shapes)
    transposed = frozenset({"columns"})
    return [make.session("a transposed and an empty parameter", script, parameters=of, transposed=transposed)]


def second_backwards(make: Builder) -> list[Session]:
    """A second backward before synchronize_gradients(): a RuntimeError. What looks like one and is none: right."""

    def allowed(_: int, use: Use) -> Script:
        return [
            backward_of_two_calls(use("a", "b", "c", turn=1), use("b", "c", "d", turn=2)),
            SYNCHRONIZE,
            look("one backward through two forwards"),
            clear(),
            backward(use(turn=3)),
            SYNCHRONIZE,
            look("in the next step"),
        ]

    def twice(first: Sequence[str], second: Sequence[str]) -> Callable[[int, Use], Script]:
        return lambda _, use: [backward(use(*first, turn=1)), refused_backward(use(*second, turn=2))]

    def same_graph(_: int, use: Use) -> Script:
        return [retaining_backward(use(turn=1)), refused_backward(None)]

    def after_a_step(_: int, use: Use) -> Script:
        step: list[Step] = [backward(use(turn=1)), SYNCHRONIZE, clear()]
        return [*step, backward(use("e", turn=2)), refused_backward(use("a", turn=3))]

    return [
        make.session("one backward through two calls", allowed, hint=ONE),
        make.session("a second backward through all", twice([*SHAPES], [*SHAPES])),
        make.session("a second backward through the same graph", same_graph),
        make.session("a second backward through other parameters", twice(["d", "e"], ["a", "b"])),
        make.session("a second backward after one that used the first parameter alone", twice(["a"], ["e"])),
        make.session("a second backward in the second step", after_a_step),
    ]


def wrapped_again(make: Builder) -> list[Session]:
    """The wrapper is gone after a step, and the module gets a new one."""

    def script(_: int, use: Use) -> Script:
        return [
            backward(use(turn=1)),
            SYNCHRONIZE,
            clear(),
            WRAP_AGAIN,
            backward(use(turn=2)),
            SYNCHRONIZE,
            look("after a step with the second wrapper"),
            WRAP_AGAIN,
            no_sync(backward(use(turn=3))),
            backward(use("a", "b", turn=4)),
            SYNCHRONIZE,
            look("after no_sync() and a step with the third"),
        ]

    return [make.session("a module wrapped again", script, hint=GONE)]
