"""A pipeline with overlap=True: what is posted before a microbatch is computed, and waited for after another one.

Shown twice. By the order of events, which the ranks claim. And by stages that are held until another one has come so
far as it can only if it, or they, do not wait too early: a stage that does is stuck, and that is known at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.checking import Check
from tests.public.runs.pipeline_trace import Account, Action, Step
from tests.public.runs.pipelines import Function, Hold, Pipeline, network

PREFETCH = "post the irecv of the next microbatch, then compute this one, then wait for the irecv"
PROMPT = "post the isend of a microbatch as soon as it is computed"
AFTER = "wait for it after the next microbatch is computed: until then the message has something to hide behind"
ROWS = 6  # in 4 microbatches 2, 2, 1 and 1


def watched(check: Check, size: int) -> list[Pipeline]:
    """With 4 and with 2 microbatches, each call with the stages held back, and held behind; and with 1."""
    made = []
    functions: tuple[Function, ...] = ("forward_only", "forward_only", "train_step", "train_step")
    for m in (4, 2):
        calls = [(function, ROWS) for function in functions]
        pipeline = network(check, [1] * size, m, *calls, overlap=True, marked=True)
        held = [
            replace(call, holds=_holds(call.function, size, m, back=number % 2 == 0))
            for number, call in enumerate(pipeline.calls)
        ]
        made.append(replace(pipeline, calls=held))
    single: Sequence[tuple[Function, int]] = [("train_step", 3), ("forward_only", 3)]
    return [*made, network(check, [1] * size, 1, *single, overlap=True, marked=True)]


def _holds(function: Function, size: int, m: int, *, back: bool) -> list[Hold]:
    phases = ["forward"] if function == "forward_only" else ["forward", "backward"]
    if back:
        return [hold for phase in phases for hold in held_back(phase, size, m, last=phase == phases[-1])]
    return [hold for phase in phases for hold in held_behind(phase, size, m)]


def _sources(phase: str, size: int) -> list[tuple[int, int]]:
    """Each stage that receives, and the one it receives from."""
    if phase == "forward":
        return [(stage, stage - 1) for stage in range(1, size)]
    return [(stage, stage + 1) for stage in range(size - 1)]


def held_back(phase: str, size: int, m: int, *, last: bool) -> list[Hold]:
    """Each stage is held until its source has gone ahead of it.

    After its microbatch 0, until the source has computed number 3: the source may not wait before for the send of
    number 2, which this stage has not posted the receive of. last: the source sends nothing else in this call. Then
    the stage is held before its last microbatch but one too, until the source has returned: for that the stage must
    have posted all its receives.
    """
    holds = []
    for stage, source in _sources(phase, size):
        if m > 3:
            done = f"done the {phase} of microbatch"
            holds.append(Hold(stage, f"{done} 0", f"{done} 3", source))
        if last:
            holds.append(Hold(stage, f"begun the {phase} of microbatch {m - 2}", "come to the end", source))
    return holds


def held_behind(phase: str, size: int, m: int) -> list[Hold]:
    """Each source is held before a microbatch until the next stage has computed the one before.

    So that stage may not wait any earlier for the receive that it has posted, and has been sent what it needs.
    """
    return [
        Hold(source, f"begun the {phase} of microbatch {k + 1}", f"done the {phase} of microbatch {k}", stage)
        for stage, source in _sources(phase, size)
        for k in range(m - 1)
    ]


MAX_STEPS = 50  # for one microbatch: ten will do, and each is compared with all before it


def compare_overlap(account: Account) -> None:
    """What a stage may not do with overlap=True, in the order in which it did it."""
    m = account.pipeline.num_microbatches
    if len(account.steps) > MAX_STEPS * (m + 1):
        raise account.failed(f"takes {len(account.steps)} steps for {m} microbatches", help=AFTER)
    for number, step in enumerate(account.steps):
        before = account.steps[:number]
        kind, k = step.action
        if step.doing == "begin":
            receive, send = ("ra", "sa") if kind == "F" else ("rg", "sg")
            coming, sent = Step("post", Action(receive, k + 1)), Step("post", Action(send, k - 1))
            if k + 1 < m and account.schedule_has(receive) and not _done(before, coming):
                raise account.failed(
                    f"{step.present} before it has {coming.perfect}",
                    at=step,
                    expected=f"{coming}, {step}, wait {coming.action}",
                    actual=account.until(step),
                    help=PREFETCH,
                )
            if k > 0 and account.schedule_has(send) and not _done(before, sent):
                raise account.failed(
                    f"{step.present} before it has {sent.perfect}",
                    at=step,
                    expected=f"{sent}, {step}",
                    actual=account.until(step),
                    help=PROMPT,
                )
        if step.doing == "wait" and _may_overlap(step.action, m) and not _computed(before, step.action):
            other = Action("F" if kind in ("sa", "ra") else "B", k + 1 if kind in ("sa", "sg") else k - 1)
            raise account.failed(
                f"{step.present} with no microbatch computed since it was posted",
                at=step,
                expected=f"post {step.action}, {other}, {step}",
                actual=account.until(step),
                help=AFTER,
            )


def _done(steps: Sequence[Step], wanted: Step) -> bool:
    return any((step.doing, step.action) == (wanted.doing, wanted.action) for step in steps)


def _may_overlap(action: Action, m: int) -> bool:
    """Whether the phase has a microbatch to compute meanwhile: not while the first is received or the last sent."""
    return action.k < m - 1 if action.kind in ("sa", "sg") else action.k > 0


def _computed(steps: Sequence[Step], action: Action) -> bool:
    """Whether a whole computation lies behind the post of this message."""
    posted = next(number for number, step in enumerate(steps) if step.doing == "post" and step.action == action)
    since = steps[posted + 1 :]
    begun = [step.action for step in since if step.doing == "begin"]
    return any(step.doing == "end" and step.action in begun for step in since)
