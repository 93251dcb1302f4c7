"""The messages of a pipeline: how many, how large, in which order, to whom, and when they are waited for.

Events are claims of the ranks. That the messages are there is proved by the values that come out of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, zip_longest

from grader.checking import Check, CheckFailed
from grader.world.report import Finding
from tests.public.oracles import pipeline_parallel as oracle
from tests.public.runs.pipeline_trace import Account, Action, Step, accounts, refuse_other_group, unread
from tests.public.runs.pipelines import Pipeline, counted

TAGS = "post the receives from a rank in the order in which it posts its sends: NCCL ignores tags"
ONE_EACH = "one message for each microbatch and direction, of the microbatch's rows: no shapes, no sizes, no losses"
IN_TURN = (
    "without overlap each message is complete before the next action of the schedule begins: as with send and recv"
)
NEVER = "keep the handle of each message together with its buffer, and wait for it before the call returns"
DIRECTIONS = {"sa": "to", "rg": "from", "sg": "to", "ra": "from"}

Compare = Callable[[Account], None]


def compare_messages(check: Check, pipelines: Sequence[Pipeline], *also: Compare, finished: bool = True) -> None:
    """Every call of these pipelines has sent what the contract says. also: what else to compare of each stage.

    finished: the world has ended well; else only what is wrong so far counts, not what is missing.
    """
    for each in accounts(check, pipelines):
        if finished:
            for stage, following in pairwise(each):
                _compare_tags(stage, following, "sa", "ra")
                _compare_tags(following, stage, "sg", "rg")
        for account in each:
            for kinds in (("sa", "rg"), ("ra", "sg")):  # with the next stage, and with the previous one
                _compare_pair(account, kinds, finished=finished)
        for account in each:
            for compare in also:
                compare(account)
            if finished:
                _compare_waits(account)


def compare_groups(check: Check, pipelines: Sequence[Pipeline]) -> None:
    """Every operation of the stages is in the group that was given."""
    for account, events in unread(check, pipelines):
        for operation in events.issued():
            refuse_other_group(account, operation)


def explain_so_far(check: Check, pipelines: Sequence[Pipeline]) -> None:
    """What is wrong with the messages of a world in which the ranks did not meet. May find nothing."""
    compare_messages(check, pipelines, finished=False)
    compare_messages(check, pipelines, compare_posts, finished=False)


@contextmanager
def explaining(check: Check, compare: Callable[[], None]) -> Iterator[None]:
    """Where the ranks of a world inside do not meet, `compare` may know from the trace what one of them did wrong."""
    ran = len(check.ran)
    try:
        yield
    except CheckFailed as failed:
        failure = check.ran[-1].failure if len(check.ran) > ran else None
        report = failure.report if failure is not None else None
        if report is None or report.finding not in (Finding.MISMATCH, Finding.DEADLOCK, Finding.LIVELOCK):
            raise
        try:
            compare()
        except CheckFailed as better:
            better.output = failed.output
            raise better from None
        raise


def _compare_tags(sender: Account, receiver: Account, send: str, receive: str) -> None:
    """The tags of the sends are those of the receives, one after the other: they met, so the tags are the same ones."""
    sent, received = _tags(sender, send), _tags(receiver, receive)
    if sent == received:
        return
    wrong = next(k for k, (one, other) in enumerate(zip_longest(sent, received)) if one != other)
    posted = (step for step in receiver.steps if step.doing == "post" and step.action == Action(receive, wrong))
    at = next(posted, None)  # a receive of another call may have taken it
    raise receiver.failed(
        f"posts its receives from rank {sender.rank} in another order than rank {sender.rank} its sends: "
        "only tags tell the messages apart",
        at=at,
        expected=f"tags in one order on both sides: {', '.join(map(str, sent))}",
        actual=f"rank {sender.rank} sends with tags {', '.join(map(str, sent))}\n"
        f"rank {receiver.rank} receives with tags {', '.join(map(str, received))}",
        help=TAGS,
    )


def _tags(account: Account, kind: str) -> list[int]:
    posted = [step.operation for step in account.steps if step.doing == "post" and step.action.kind == kind]
    return [operation.tag for operation in posted if operation is not None]


def _compare_pair(account: Account, kinds: Sequence[str], *, finished: bool) -> None:
    """The messages with one neighbour are those of the schedule, in its order, and of the right sizes."""
    came = [step for step in account.steps if step.doing == "post" and step.action.kind in kinds]
    wanted = [action for action in account.schedule() if action.kind in kinds]
    for step, action in zip_longest(came, wanted):
        if step is None:
            if finished:
                raise _too_few(account, came, action)
            return
        if step.action != action:
            raise _out_of_turn(account, step, action)
        _compare_bytes(account, step)


def _too_few(account: Account, came: Sequence[Step], missing: Action) -> CheckFailed:
    count = sum(step.action.kind == missing.kind for step in came)
    return account.failed(
        f"{_count(account, missing.kind, count)}, not {account.pipeline.num_microbatches}",
        expected=f"{missing.name}",
        actual=", ".join(str(step.action) for step in came) or "no message",
        help=ONE_EACH,
    )


def _out_of_turn(account: Account, step: Step, wanted: Action | None) -> CheckFailed:
    """A message too many, or one before its turn. wanted: the next one of the schedule, None at its end."""
    m, kind = account.pipeline.num_microbatches, step.action.kind
    if step.action not in account.schedule():
        did = f"{_count(account, kind, step.action.k + 1)}, not {m if account.schedule_has(kind) else 0}"
        expected = "no further message" if wanted is None else f"its {wanted.name}"
        return account.failed(did, at=step, expected=expected, actual=account.until(step), help=ONE_EACH)
    assert wanted is not None, "a schedule that has ended holds no further action"
    verb = "sent" if wanted.kind in ("sa", "sg") else "posted its receives of"
    return account.failed(
        f"{step.present} when it has {verb} {wanted.k} of {m} {_thing(wanted.kind)}",
        at=step,
        expected=f"its {wanted.name} first: all forwards come before the backwards",
        actual=account.until(step),
        help="both ends of a pair follow one order: all activations from the first to the last, then all gradients",
    )


def _count(account: Account, kind: str, count: int) -> str:
    """ "sends 5 activations to rank 1"."""
    peer = account.neighbour(1 if kind in ("sa", "rg") else -1)
    verb = "sends" if kind in ("sa", "sg") else "receives"
    return f"{verb} {count} {_thing(kind).removesuffix('s' * (count == 1))} {DIRECTIONS[kind]} rank {peer}"


def _thing(kind: str) -> str:
    return "activations" if kind in ("sa", "ra") else "gradients"


def _compare_bytes(account: Account, step: Step) -> None:
    """The rows of a microbatch as they enter the stage, or leave it."""
    pipeline, operation, k = account.pipeline, step.operation, step.action.k
    assert operation is not None, "a message is an operation"
    row = pipeline.row(account.stage + (step.action.kind in ("sa", "rg")))
    batch, m = account.call.rows_of_batch(), pipeline.num_microbatches
    rows = len(oracle.microbatches(batch, m)[k])
    dtype, row_bytes = str(row.dtype).removeprefix("torch."), row.numel() * row.element_size()
    spec = (operation.reads or operation.writes)[0]
    if spec.num_bytes == rows * row_bytes:
        return
    wrong = f"with {spec.num_bytes} bytes, not {rows * row_bytes}"
    if spec.dtype == dtype and spec.num_bytes % row_bytes == 0:
        came = spec.num_bytes // row_bytes
        chunks = [len(chunk) for chunk in batch.chunk(m)] if account.stage == 0 else []  # it splits the batch
        as_chunk = step.action.kind == "sa" and chunks[k : k + 1] == [came]
        wrong = f"with {counted(came, 'row')}, not {rows}{', as torch.chunk splits' * as_chunk}"
    elif spec.elements == rows * row.numel():
        wrong = f"as {spec.dtype}, not {dtype}"
    raise account.failed(
        f"{step.present} {wrong}",
        at=step,
        expected=f"{counted(rows, 'row')} of {dtype} {tuple(row.shape)}: {rows * row_bytes} bytes",
        actual=f"{spec}: {spec.num_bytes} bytes",
        help=f"{ONE_EACH}; piece_sizes of grader.given has the sizes",
    )


def _compare_waits(account: Account) -> None:
    """Each message is waited for before the call returns."""
    waited = [step.action for step in account.steps if step.doing == "wait"]
    for step in account.steps:
        if step.doing == "post" and step.action not in waited:
            raise account.failed(f"returns before it has waited for its {step.action.name}", at=step, help=NEVER)


def compare_order(account: Account) -> None:
    """Without overlap: exactly the schedule, each message complete before the next action begins. So far."""
    came = [step for step in account.steps if step.doing != "end"]
    wanted: list[Step] = []
    for action in account.schedule():
        computes = action.kind in ("F", "B")
        wanted += [Step("begin", action)] if computes else [Step("post", action), Step("wait", action)]
    for step, due in zip(came, wanted, strict=False):
        if (step.doing, step.action) != (due.doing, due.action):
            raise account.failed(
                f"{step.present} before it has {due.perfect}",
                at=step,
                expected=" ".join(map(str, account.schedule())),
                actual=account.until(step),
                help=IN_TURN,
            )


def compare_posts(account: Account) -> None:
    """Without overlap: what is posted is posted in the order of the schedule. So far."""
    if account.pipeline.overlap:
        return
    came = [step for step in account.steps if step.doing == "post"]
    wanted = [Step("post", action) for action in account.schedule() if action.kind not in ("F", "B")]
    for step, due in zip(came, wanted, strict=False):
        if step.action != due.action:
            raise account.failed(
                f"{step.present} before it has {due.perfect}",
                at=step,
                expected=" ".join(map(str, account.schedule())),
                actual=account.until(step),
            )
