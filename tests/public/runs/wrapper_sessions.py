"""The sessions that the wrappers go through, as data. Each function returns a few for worlds of `size` ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check
from tests.public.oracles.sessions import (
    REFUSED_SYNCHRONIZE,
    SYNCHRONIZE,
    Script,
    Session,
    backward,
    clear,
    look,
    move,
    no_sync,
    write,
)
from tests.public.runs.wrappers import coefficients, parameters
from tests.public.runs.wrong_means import INSIDE

if TYPE_CHECKING:
    from torch import Tensor

SHAPES: Mapping[str, Sequence[int]] = {"a": (2, 3), "b": (2, 3), "c": (5,), "d": (), "e": (2, 3)}
# Of one shape, a gradient that meets another parameter's gives a wrong mean and no crash.
ALIKE: Mapping[str, Sequence[int]] = dict.fromkeys(SHAPES, (2, 3))

LEFT_OUT = "where backward does not use a parameter on this rank, its .grad is None and counts as zeros"
LEFT = "after no_sync() all is as before: count how deep it is, and count back in a finally"

Use = Callable[..., "dict[str, Tensor]"]


class Builder:
    """Makes sessions for one check and world size; `options` are the wrapper's."""

    def __init__(self, check: Check, size: int, options: Mapping[str, Any] = {}) -> None:
        self.check = check
        self.size = size
        self.options = options
        self.of = parameters(check, SHAPES)

    def session(self, title: str, script: Callable[[int, Use], Script], **fields: Any) -> Session:
        """A session whose rank r does `script(r, use)`; `use(*names, turn=…)` gives fresh gradients (no name: all)."""
        of = fields.setdefault("parameters", self.of)
        aliases = fields.get("tied", {})

        def use_of(rank: int) -> Use:
            def use(*names: str, turn: int = 0) -> dict[str, Tensor]:
                values = of | {alias: of[name] for alias, name in aliases.items()}
                return coefficients(self.check, rank, values, names or list(of), (self.size, title, turn))

            return use

        scripts = [script(rank, use_of(rank)) for rank in range(self.size)]
        return Session(title, scripts=scripts, options=self.options, **fields)


def steps(make: Builder) -> list[Session]:
    """Ordinary steps, with gradients that are cleared, zeroed and kept, and gradients written by hand."""

    def ordinary(rank: int, use: Use) -> Script:
        return [
            move({name: parameter * 0 + rank for name, parameter in make.of.items()}),
            backward(use(turn=1)),
            SYNCHRONIZE,
            look("after the first step"),
            backward(use(turn=2)),
            SYNCHRONIZE,
            look("after a second step on top of gradients that were not cleared"),
            clear(set_to_none=False),
            backward(use(turn=3)),
            SYNCHRONIZE,
            look("after a step on top of zeros"),
            clear(),
            backward(use(turn=4)),
            SYNCHRONIZE,
            look("after a step on top of None"),
        ]

    def orders(rank: int, use: Use) -> Script:
        names = list(SHAPES)
        turned = names[rank % len(names) :] + names[: rank % len(names)]
        return [
            backward(use(*turned, turn=1)),
            SYNCHRONIZE,
            look("after the first step"),
            clear(),
            backward(use(*reversed(turned), turn=2)),
            SYNCHRONIZE,
            look("after the second step"),
        ]

    def by_hand(_: int, use: Use) -> Script:
        return [
            write(use(turn=1)),
            SYNCHRONIZE,
            look("after synchronize_gradients() without a backward"),
            clear(),
            write({"b": use("b", turn=2)["b"]}),
            backward(use("a", "c", turn=3)),
            SYNCHRONIZE,
            look("where one was written and others computed"),
        ]

    return [
        make.session("four steps", ordinary),
        make.session(
            "each rank uses the parameters in another order", orders, parameters=parameters(make.check, ALIKE)
        ),
        make.session("gradients written by hand", by_hand),
    ]


def several_backwards(make: Builder) -> list[Session]:
    """Two and three backwards before one synchronize_gradients(), outside no_sync()."""

    def script(_: int, use: Use) -> Script:
        return [
            backward(use(turn=1)),
            backward(use(turn=2)),
            SYNCHRONIZE,
            look("after two backwards"),
            clear(),
            backward(use("a", "b", turn=3)),
            backward(use("c", turn=4)),
            backward(use("b", "d", "e", turn=5)),
            SYNCHRONIZE,
            look("after three backwards"),
        ]

    return [make.session("several backwards before synchronize_gradients()", script)]


def dtypes(make: Builder) -> list[Session]:
    """Parameters of three dtypes, alternating."""
    kinds = {"a": "float32", "b": "float64", "c": "float32", "d": "bfloat16", "e": "bfloat16"}
    mixed = parameters(make.check, SHAPES, kinds)

    def script(_: int, use: Use) -> Script:
        return [backward(use(turn=1)), SYNCHRONIZE, look("after one step")]

    return [make.session("parameters of float64, float32 and bfloat16", script, parameters=mixed)]


def missing(make: Builder) -> list[Session]:
    """Gradients that some ranks, or all, do not have; tied and frozen parameters."""
    names = list(SHAPES)
    middle = make.size // 2

    def left_out(rank: int, use: Use) -> Script:
        used = [name for number, name in enumerate(names) if number != rank % len(names)]
        return [
            backward(use(*used, turn=1)),
            SYNCHRONIZE,
            look("after the first step"),
            clear(),
            backward(use("a", *(["b"] if rank == make.size - 1 else []), turn=2)),
            SYNCHRONIZE,
            look(f"where rank {make.size - 1} alone uses b, and no rank c, d and e"),
        ]

    def without_backward(rank: int, use: Use) -> Script:
        own: Script = [] if rank == middle else [backward(use("a", "b", "e", turn=1))]
        return [*own, SYNCHRONIZE, look("after the first step"), backward(use(turn=2)), SYNCHRONIZE, look("after both")]

    def kept(rank: int, use: Use) -> Script:
        return [
            backward(use(turn=1)),
            SYNCHRONIZE,
            look("after a step that uses all"),
            backward(use("e" if rank == middle else "a", "c", turn=2)),
            SYNCHRONIZE,
            look("after a step that leaves some out, on top of gradients that were not cleared"),
        ]

    def tied(_: int, use: Use) -> Script:
        return [backward(use("a", "tied", "c", turn=1)), SYNCHRONIZE, look("after one step")]

    def frozen(_: int, use: Use) -> Script:
        return [
            write({"b": use("b", turn=1)["b"]}),
            backward(use(turn=2)),
            SYNCHRONIZE,
            look("after one step; b had a gradient before, d has none"),
        ]

    return [
        make.session("each rank leaves out other parameters", left_out, hint=LEFT_OUT),
        make.session(f"rank {middle} has no backward in the first step", without_backward, hint=LEFT_OUT),
        make.session("parameters left out while gradients are kept", kept, hint=LEFT_OUT),
        make.session("'tied' is 'a' under a second name", tied, tied={"tied": "a"}),
        make.session("b and d are frozen", frozen, frozen=frozenset({"b", "d"})),
    ]


def accumulation(make: Builder) -> list[Session]:
    """What no_sync() promises."""

    def step(use: Use, turn: int, when: str) -> Script:
        return [clear(), backward(use(turn=turn)), SYNCHRONIZE, look(when)]

    def last_outside(_: int, use: Use) -> Script:
        inside = no_sync(
            backward(use(turn=1)),
            look("inside no_sync(): this rank's own"),
            backward(use("a", "c", turn=2)),
            look("inside no_sync(): this rank's own two"),
            REFUSED_SYNCHRONIZE,
        )
        return [
            inside,
            backward(use(turn=3)),
            SYNCHRONIZE,
            look("two backwards inside, one outside"),
            *step(use, 4, "in the next step"),
        ]

    def none_outside(rank: int, use: Use) -> Script:
        own = use("a", "c", turn=2) if rank % 2 else use("b", turn=2)
        return [
            no_sync(backward(use("a", "b", turn=1)), backward(own)),
            SYNCHRONIZE,
            look("no backward outside"),
            *step(use, 3, "in the next step"),
        ]

    def others_outside(rank: int, use: Use) -> Script:
        return [
            no_sync(backward(use(turn=1))),
            backward(use("c" if rank % 2 else "a", turn=2)),
            SYNCHRONIZE,
            look("the backward outside uses one parameter"),
            *step(use, 3, "in the next step"),
        ]

    def interrupted(_: int, use: Use) -> Script:
        return [
            no_sync(backward(use("a", "b", turn=1)), interrupted=True),
            backward(use(turn=2)),
            SYNCHRONIZE,
            look("an exception left no_sync()"),
            *step(use, 3, "in the next step"),
        ]

    def nested(_: int, use: Use) -> Script:
        inner = no_sync(backward(use(turn=1)))
        return [
            no_sync(inner, backward(use("a", "e", turn=2)), look("inside the outer no_sync()"), REFUSED_SYNCHRONIZE),
            backward(use("b", turn=3)),
            SYNCHRONIZE,
            look("after nested no_sync()"),
            *step(use, 4, "in the next step"),
        ]

    return [
        make.session("no_sync() and a last backward", last_outside, hint=INSIDE),
        make.session("no_sync() alone", none_outside, hint=INSIDE),
        make.session("no_sync() and other parameters outside", others_outside, hint=INSIDE),
        make.session("no_sync() left by an exception", interrupted, hint=LEFT),
        make.session("nested no_sync()", nested, hint=LEFT),
    ]
