"""Comparing the gradients of all ranks after a step, or inside no_sync(), with what they must be."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grader.checking import CheckFailed, Slip, expect
from grader.checking.show import value_text
from tests.public.oracles.session_replay import Gradients
from tests.public.oracles.sessions import Session
from tests.public.runs import wrong_means
from tests.public.runs.mistakes import Mistake, by_reach, of_all

if TYPE_CHECKING:
    from torch import Tensor

ORIGIN = (
    "the numbers tell their origin: in one backward rank r gives its k-th parameter 1000 · r + 100 · k + index, or so"
)
AS_IT_WAS = "what is averaged and written is parameter.grad; the parameter is the optimizer's"
COPIED = ".grad.reshape(-1) and .flatten() are copies of a .grad that is laid out so: what is written there is lost"
FROM_FIRST = "when it is made, a wrapper broadcasts from rank 0 of the group, whatever rank of the world that is"
NO_NONE = "after synchronize_gradients() every trainable parameter has a gradient: zeros where no rank had one"
ONE_ORDER = "add the ranks' gradients in one order on all ranks, as an all-reduce does"


def compare_gradients(came: Mapping[int, Any], expected: Gradients, session: Session, *, what: str) -> None:
    """came: what each rank of the group saw in one look. The parameters must be as they were."""
    looked: dict[str, dict[int, dict[str, Any]]] = {"parameters": {}, "gradients": {}}
    for rank, value in came.items():
        both = expect.mapping(value, *looked, what=what, rank=rank)
        for kind, by_rank in looked.items():
            by_rank[rank] = expect.mapping(both[kind], *session.parameters, what=what, rank=rank)
    _Look(looked["gradients"], looked["parameters"], expected, session, what).compare()


class _Look:
    """One look at all ranks of the group."""

    def __init__(
        self,
        gradients: Mapping[int, Mapping[str, Any]],
        parameters: Mapping[int, Mapping[str, Any]],
        expected: Gradients,
        session: Session,
        what: str,
    ) -> None:
        self._gradients = gradients
        self._parameters = parameters
        self._expected = expected
        self._session = session
        self._what = what

    def compare(self) -> None:
        """Raises CheckFailed for the first parameter or gradient that is wrong."""
        for rank, name in itertools.product(self._parameters, self._session.parameters):
            self._compare_parameter(rank, name)
        for rank, name in itertools.product(self._gradients, self._session.parameters):
            self._compare_gradient(rank, name)
        if self._expected.synchronized:
            self._compare_bits()

    def _compare_parameter(self, rank: int, name: str) -> None:
        of_name = f"the parameter '{name}' itself, which no optimizer has touched ({self._what}),"
        came = {one: by_name[name] for one, by_name in self._parameters.items()}
        right = {one: by_name[name] for one, by_name in self._expected.parameters.items()}
        with expect.helping(AS_IT_WAS), expect.by_rank(came, right):
            expect.same(
                came[rank],
                right[rank],
                what=of_name,
                rank=rank,
                contiguous=False,
                slips=lambda: of_all(self._wrong_parameters(name), came, rank),
            )

    def _wrong_parameters(self, name: str) -> list[Mistake]:
        values = {rank: by_name[name].double() for rank, by_name in self._expected.parameters.items()}
        total, first = sum(values.values()), next(iter(values))
        wrong = {
            "the mean of the parameters over the ranks": total / len(values),
            "the sum of the parameters over the ranks": total,
            f"the value of rank {first}, which was broadcast once more": values[first],
        }
        kind = self._session.parameters[name].dtype
        mistakes = [Mistake(gave, AS_IT_WAS, dict.fromkeys(values, value.to(kind))) for gave, value in wrong.items()]
        if self._session.group is not None:
            others = {rank: by_name[name] + 1 for rank, by_name in self._expected.parameters.items()}
            gave = f"what other ranks than {first} began with: the module was not broadcast from the first of the group"
            mistakes.append(Mistake(gave, FROM_FIRST, others))
        return mistakes

    def _compare_gradient(self, rank: int, name: str) -> None:
        wanted, came = self._expected.by_rank[rank][name], self._gradients[rank][name]
        of_name = self._named(name)
        if wanted is not None and came is None:
            raise CheckFailed(f"rank {rank}: {of_name} is None", expected=value_text(wanted), help=NO_NONE)
        if wanted is not None:
            by_rank = {one: by_name[name] for one, by_name in self._gradients.items()}
            right = {one: by_name[name] for one, by_name in self._expected.by_rank.items()}
            with expect.helping(ORIGIN), expect.by_rank(by_rank, right):
                slips = lambda: self._slips(rank, name)  # noqa: E731  it is asked only where the value is wrong
                expect.close(came, wanted, what=of_name, rank=rank, contiguous=False, slips=slips)
        elif came is not None and name not in self._expected.trainable:
            raise CheckFailed(
                f"rank {rank}: {of_name} was written",
                expected="None, as it was",
                actual=value_text(came),
                help=wrong_means.FROZEN,
            )
        elif came is not None:
            zeros = self._session.parameters[name] * 0
            expect.same(came, zeros, what=of_name, rank=rank, contiguous=False)

    def _named(self, name: str) -> str:
        laid = ", laid out by columns in memory," if name in self._session.transposed else ""
        if name not in self._expected.trainable:
            return f"the gradient of '{name}', frozen at construction ({self._what}),"
        return f"the gradient of '{name}'{laid} ({self._what})"

    def _slips(self, rank: int, name: str) -> list[Slip]:
        """What classic mistakes give, those first that explain the most of this look."""
        of, expected = self._session.parameters, self._expected
        trainable = {name: value for name, value in of.items() if name in expected.trainable}
        came = {(rank, name): value for rank, by_name in self._gradients.items() for name, value in by_name.items()}
        if not expected.synchronized:
            mistakes, pairs = wrong_means.inside_no_sync(expected.by_rank, trainable), []
        elif expected.averaged is None:
            return []
        elif name not in trainable:
            mistakes, pairs = wrong_means.frozen(expected.averaged, {name: of[name]}), []
        else:
            mistakes = wrong_means.after(expected.averaged, trainable, len(self._session.scripts))
            pairs = [*wrong_means.met(expected.averaged.held, trainable, rank, name)]
        slips = [*by_reach(mistakes, came, (rank, name)), *pairs]
        return [slip._replace(help=self._advice(slip.help, rank, name)) for slip in slips]

    def _advice(self, help: str, rank: int, name: str) -> str:
        """The help of a slip, and which gradients of this rank are right: the difference may tell what is amiss."""
        copied = f"{COPIED}; " if name in self._session.transposed else ""
        right = [f"'{name}'" for name in self._session.parameters if self._is_right(rank, name)]
        those = f"; on this rank right: {', '.join(right)}" if right else ""
        return f"{copied}{help}{those}"

    def _is_right(self, rank: int, name: str) -> bool:
        wanted: Tensor | None = self._expected.by_rank[rank][name]
        try:
            if wanted is not None:
                expect.close(self._gradients[rank][name], wanted, what=name, rank=rank, contiguous=False)
        except CheckFailed:
            return False
        return wanted is not None and name in self._expected.trainable

    def _compare_bits(self) -> None:
        """All ranks hold the same bits as the first. What came has been compared with the mean before."""
        import torch

        first, *others = self._gradients
        for rank, name in itertools.product(others, sorted(self._expected.trainable)):
            theirs, own = self._gradients[first][name], self._gradients[rank][name]
            if theirs is not None and own is not None:
                expect.true(
                    torch.equal(own.tensor, theirs.tensor),
                    f"rank {rank}: {self._named(name)} differs in its last bits from that of rank {first}",
                    expected="the same bits on every rank",
                    help=ONE_ORDER,
                )
