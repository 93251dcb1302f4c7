"""How a check says that a submission is wrong."""

from __future__ import annotations

from grader.checking.verdict import Explanation, Status


class CheckFailed(Exception):  # noqa: N818  it is an outcome, not an error of the grader
    """The submission does not do what the statement says; carries why. Raised on the judge's side only.

    rationale: one sentence. The other fields: see `Explanation`.
    wrong_values: a tensor came, and other numbers are in it: an operation may be why.
    """

    def __init__(
        self,
        rationale: str,
        *,
        expected: str = "",
        actual: str = "",
        where: str = "",
        help: str = "",  # the word of the record and of pytest's readers
        status: Status = Status.FAIL,
        unwritten: str = "",
        output: str = "",
        wrong_values: bool = False,
    ) -> None:
        super().__init__(rationale)
        self.explanation = Explanation(rationale, expected, actual, where, help)
        self.status = status
        self.unwritten = unwritten
        self.output = output
        self.wrong_values = wrong_values
