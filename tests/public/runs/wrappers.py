"""What the checks of the four wrappers share: running sessions and training runs, and comparing what came back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grader.checking import Check, CheckFailed, PerRank, expect
from grader.checking.show import value_text
from tests.public.oracles import data_parallel as oracle
from tests.public.oracles.sessions import Gradients, Refused, Session, replay
from tests.public.runs import cases

if TYPE_CHECKING:
    from torch import Tensor

ADVICE = ("synchronize_gradients", "no_sync")
WHY_REFUSED = {
    "backward()": "what a second backward adds to a gradient in flight is lost without a word",
    "synchronize_gradients()": "inside no_sync() gradients still accumulate: refuse before anything is sent",
}
ORIGIN = (
    "the numbers tell their origin: in one backward rank r gives its k-th parameter 1000 · r + 100 · k + index, or so"
)


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


def follow(check: Check, size: int, wrapper: str, sessions: Sequence[Session]) -> None:
    """Runs the sessions in one world, and compares every look with what `replay` expects."""
    named = [f"{wrapper}: {look}" for session in sessions for look in session.looks()]
    sent = [[session.for_rank(rank) for session in sessions] for rank in range(size)]
    values = check.run(size, "data_parallel.follow", cases=named, wrapper=wrapper, sessions=PerRank(sent))
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
        else:
            _compare_gradients(value, expected, session, what=what, rank=rank)
    if isinstance(expected, Gradients) and expected.synchronized:
        _compare_bits(came, expected, session, what=what)


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


def _compare_gradients(value: Any, expected: Gradients, session: Session, *, what: str, rank: int) -> None:
    looked = expect.mapping(value, "gradients", "parameters", what=what, rank=rank)
    gradients = expect.mapping(looked["gradients"], *session.parameters, what=what, rank=rank)
    values = expect.mapping(looked["parameters"], *session.parameters, what=what, rank=rank)
    for name, parameter in session.parameters.items():
        wanted = expected.by_rank[rank][name]
        of_name = f"the gradient of '{name}' ({what})"
        if name not in expected.trainable:
            of_name = f"the gradient of '{name}', frozen at construction ({what}),"
        if wanted is not None:
            with expect.helping(ORIGIN):
                expect.close(gradients[name], wanted, what=of_name, rank=rank, contiguous=False)
        elif gradients[name] is not None and name not in expected.trainable:
            raise CheckFailed(
                f"rank {rank}: {of_name} was written",
                expected="None, as it was",
                actual=value_text(gradients[name]),
                help="neither read nor write the gradients of parameters that do not require one",
            )
        elif gradients[name] is not None:
            expect.same(gradients[name], parameter * 0, what=of_name, rank=rank, contiguous=False)
        of_name = f"the parameter '{name}' itself, which no optimizer has touched ({what}),"
        expect.same(values[name], parameter, what=of_name, rank=rank, contiguous=False)


def _compare_bits(came: Mapping[int, Any], expected: Gradients, session: Session, *, what: str) -> None:
    """All ranks hold the same bits as the first. What came has been compared with the mean before."""
    first = session.members[0]
    for rank in session.members[1:]:
        for name in sorted(expected.trainable):
            theirs, own = came[first]["gradients"][name], came[rank]["gradients"][name]
            if theirs is not None and own is not None:
                of_name = f"the gradient of '{name}' ({what}), which must be the same bits as on rank {first},"
                with expect.helping("add the ranks' gradients in one order on all ranks, as an all-reduce does"):
                    expect.same(own, theirs.tensor, what=of_name, rank=rank, contiguous=False)


def train(check: Check, size: int, wrapper: str, *, rows: Sequence[int], options: Mapping[str, Any] = {}) -> None:
    """Five AdamW steps with rows[r] rows on rank r equal those of one process with all rows, from rank 0's weights."""
    import torch

    widths, steps = (4, 6, 5, 2), 5

    def random(*shape: int, path: object) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=check.generator(size, path))

    initial = [
        {
            "weights": [random(o, i, path=(rank, "weight", i)) for i, o in itertools.pairwise(widths)],
            "biases": [random(o, path=(rank, "bias", o)) for o in widths[1:]],
            "output_scale": 1 + random(widths[-1], path=(rank, "scale")).abs(),
        }
        for rank in range(size)
    ]
    batches = [
        (random(sum(rows), widths[0], path=("x", step)), random(sum(rows), widths[-1], path=("y", step)))
        for step in range(steps)
    ]
    ends = list(itertools.accumulate(rows))
    own = [slice(end - count, end) for end, count in zip(ends, rows, strict=True)]
    shards = [[(x[own[rank]], y[own[rank]]) for x, y in batches] for rank in range(size)]
    # A large eps: with a small one, AdamW's steps would not depend on the size of the gradients.
    optimizer = {"lr": 0.05, "eps": 0.1, "weight_decay": 0.1}
    values = check.run(
        size,
        "data_parallel.train",
        cases=[f"{wrapper}, AdamW step {step}" for step in range(steps)],
        wrapper=wrapper,
        options=dict(options),
        initial=PerRank(initial),
        shards=PerRank(shards),
        scale=size / sum(rows),
        optimizer=optimizer,
    )
    for step, expected in enumerate(oracle.train(initial[0], batches, optimizer)):
        for rank in range(size):
            what = f"{wrapper} after AdamW step {step}"
            came = expect.sequence(values[rank][step], len(expected), what=what, rank=rank)
            for number, parameter in enumerate(expected):
                of_number = f"parameter {number} of {what}"
                expect.close(came[number], parameter, what=of_number, rank=rank, contiguous=False)
