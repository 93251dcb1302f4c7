"""What the checks of the four wrappers share: running sessions, and comparing what came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from tests.public.oracles.session_replay import Gradients, Refused, replay
from tests.public.oracles.sessions import Session
from tests.public.runs import cases
from tests.public.runs.wrapper_errors import explaining_errors
from tests.public.runs.wrapper_gradients import compare_gradients
from tests.public.runs.wrapper_traffic import watched

if TYPE_CHECKING:
    from torch import Tensor

ADVICE = ("synchronize_gradients", "no_sync")
WHY_REFUSED = {
    "backward()": "what a second backward adds to a gradient in flight is lost without a word",
    "synchronize_gradients()": "inside no_sync() gradients still accumulate: refuse before anything is sent",
}


def parameters(check: Check, shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str] = {}) -> dict[str, Tensor]:
    """Parameters of these names, the same on every rank; float32 where `dtypes` names no other."""
    return {
        name: cases.tensor(check, 0, shape, dtypes.get(name, "float32"), ("parameter", name))
        for name, shape in shapes.items()
    }


def coefficients(
    check: Check, rank: int, of: Mapping[str, Tensor], names: Sequence[str] | None = None, path: object = ()
) -> dict[str, Tensor]:
    """A gradient for each of `names` (None: all) on this rank: it carries its rank, its parameter and its index."""
    import torch

    made = {}
    for name in of if names is None else names:
        value, number = of[name], list(of).index(name)
        if value.dtype is torch.bfloat16:  # 8 significant bits: small whole numbers, so that sums are exact
            generator = check.generator(rank, name, path)
            made[name] = torch.randint(1, 8, value.shape, generator=generator).to(value.dtype)
        else:
            dtype = str(value.dtype).removeprefix("torch.")
            made[name] = cases.tensor(check, rank, value.shape, dtype, (name, path)) + 100 * number
    return made


def follow(check: Check, size: int, wrapper: str, sessions: Sequence[Session], *, counted: bool = False) -> None:
    """Runs the sessions in one world, and compares every look with what `replay` expects, and what was sent.

    counted: each synchronize_gradients() must send what the wrapper's rule says, and no more.
    """
    named = [f"{wrapper}: {look}" for session in sessions for look in session.looks()]
    sent = [[session.for_rank(rank) for session in sessions] for rank in range(size)]
    with watched(check, wrapper, sessions, counted=counted) as values:
        with explaining_errors(wrapper, sessions):
            values += check.run(size, "data_parallel.follow", cases=named, wrapper=wrapper, sessions=PerRank(sent))
        _compare_looks(size, sessions, values, named)


def _compare_looks(size: int, sessions: Sequence[Session], values: Sequence[Any], named: Sequence[str]) -> None:
    number = 0
    for session in sessions:
        for expected in replay(session):
            came = {rank: values[rank][number] for rank in range(size)}
            _compare(came, expected, session, what=named[number])
            number += 1


def _compare(came: Mapping[int, Any], expected: Gradients | Refused, session: Session, *, what: str) -> None:
    for rank, value in came.items():
        if rank not in session.members:
            where = f"making the wrapper for the group of ranks {list(session.members)} ({what})"
            expect.raised(value, "ValueError", what=where, rank=rank)
        elif isinstance(expected, Refused):
            refused(value, call=expected.call, what=what, rank=rank)
    if isinstance(expected, Gradients):
        compare_gradients({rank: came[rank] for rank in session.members}, expected, session, what=what)


def refused(value: Any, *, call: str, what: str, rank: int) -> None:
    """A RuntimeError that says what to do: it names synchronize_gradients() or no_sync()."""
    what = f"{call} ({what})"
    outcome = expect.mapping(value, what=what, rank=rank)
    if not isinstance(outcome.get("raised"), list):
        raise CheckFailed(
            f"rank {rank}: {what} raised nothing",
            expected="RuntimeError",
            help=WHY_REFUSED[call],
        )
    if "RuntimeError" not in outcome["raised"]:
        raise CheckFailed(
            f"rank {rank}: {what} raised the wrong kind of error",
            expected="RuntimeError",
            actual=f"{value_text(outcome['raised'])}: {value_text(outcome.get('message'))}",
        )
    message = value_text(outcome.get("message"))
    if call == "backward()" and not any(name in str(outcome.get("message")) for name in ADVICE):
        raise CheckFailed(
            f"rank {rank}: the RuntimeError of {what} does not say what to do",
            expected=f"a message that names {' or '.join(ADVICE)}",
            actual=message,
        )
