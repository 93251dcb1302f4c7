"""What a student may read about one check: one rule for all views.

A public check shows its whole verdict. A hidden one shows its statement, its points, one word and a fixed sentence:
its data and whatever the submission printed, raised or returned stay with staff, since the submission has seen the
hidden inputs and could tell them.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.checking.spec import CheckSpec
from grader.checking.verdict import Explanation, Status, Verdict

SENTENCES = {
    Status.PASS: "It holds.",
    Status.NOT_RUN: "It needs GPUs that this machine lacks. It counts neither for you nor against you.",
    Status.SKIPPED: "It could not run, because something that it cannot do without failed or is missing.",
    Status.FAIL: "It ran, and what came of it is not what the sentence above says.",
    Status.TIMEOUT: "It did not end in the time that it had.",
    Status.CRASH: "A process that ran your code died before it gave an answer.",
    Status.INFRA: "The grader itself failed here. It is not your fault and costs no points; it has to be run again.",
}
NOT_WRITTEN = "It calls a function that is not written yet."


@dataclass(frozen=True)
class Remark:
    """One check as the student reads it.

    word:        the verdict.
    sentence:    fixed by the verdict.
    unwritten:   the function that is not written yet, or "".
    explanation: for a public check that did not pass, else None.
    output, replay: of such a check, else "".
    """

    spec: CheckSpec
    word: Status
    points: int
    sentence: str
    unwritten: str = ""
    explanation: Explanation | None = None
    output: str = ""
    replay: str = ""


def remark(spec: CheckSpec, verdict: Verdict | None) -> Remark:
    """What may be shown of `verdict`; None is a verdict that has not fallen."""
    if verdict is None or verdict.status is Status.INFRA:
        return Remark(spec, Status.INFRA, 0, SENTENCES[Status.INFRA])
    # A name that a hidden check reports could carry data; one that the check itself names cannot.
    known = not spec.hidden or verdict.unwritten in spec.needs
    unwritten = verdict.unwritten if known else ""
    sentence = NOT_WRITTEN if unwritten else SENTENCES[verdict.status]
    if spec.hidden or verdict.status is Status.PASS:
        return Remark(spec, verdict.status, verdict.points, sentence, unwritten)
    return Remark(
        spec,
        verdict.status,
        verdict.points,
        sentence,
        unwritten,
        verdict.explanation,
        verdict.output,
        verdict.replay,
    )
