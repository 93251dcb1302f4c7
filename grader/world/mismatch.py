"""Whether ranks that meet in one operation agree on it, and the words for what they disagree on. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from grader.world.operation import Operation, Spec
from grader.world.report import Finding, Report, Stand

REDUCING = frozenset(
    {
        *("all_reduce", "all_reduce_coalesced", "reduce"),
        *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced"),
    }
)
EVERY_GROUP = "every rank must call new_group for every group, in the same order, also for groups that it is not in"
LEFT_OUT = (
    "count the operations of this call on both ranks: does the rank that has gone on leave a loop too early, or "
    "return before one, or does the other do one too many?"
)
# What grader.given calls, by what it is called for: a student has written the name on the right.
GIVEN = {
    "broadcast": "broadcast_spec",
    "all_gather_into_tensor": "exchange_sizes",
    "all_to_all_single": "exchange_counts",
}
PAIRWISE = frozenset({"all_to_all", "all_to_all_single"})


def called(operation: Operation) -> str:
    """The operation's name in words of the submission: "exchange_sizes of grader.given" for the collective in there."""
    name, asker = operation.name, operation.place.asker
    if asker == "given" and name in GIVEN:
        return f"{GIVEN[name]} of grader.given"
    return f"{name} of the check's own" if asker == "program" and name not in ("send", "recv", "new_group") else name


def describe(operation: Operation) -> str:
    """The operation in a few words: "all_reduce of float32 (4,)", "recv from rank 1 of float32 (2, 3), tag 7"."""
    if called(operation) != operation.name:
        return called(operation)
    specs = operation.reads or operation.writes
    one = f" of {specs[0]}" if specs else ""
    several = f" of {len(specs)} tensors, the first {specs[0]}" if len(specs) > 1 else one
    tag = f", tag {operation.tag}" if operation.tag else ""
    match operation.name:
        case "send":
            return f"send to rank {operation.peer_rank}{one}{tag}"
        case "recv":
            source = "any rank" if operation.peer is None else f"rank {operation.peer_rank}"
            return f"recv from {source}{one}{tag}"
        case "broadcast" | "scatter":
            return f"{operation.name} from rank {_root(operation)}{several}"
        case "reduce" | "gather":
            return f"{operation.name} to rank {_root(operation)}{several}"
        case "new_group":
            return f"the forming of the group {list(operation.group)}"
        case _:
            return operation.name + several


def short(operation: Operation) -> str:
    """Without its tensors: "all_reduce", "recv from rank 1"."""
    match operation.name:
        case "send":
            return f"send to rank {operation.peer_rank}"
        case "recv":
            return "recv from any rank" if operation.peer is None else f"recv from rank {operation.peer_rank}"
        case "new_group":
            return f"the forming of the group {list(operation.group)}"
        case _:
            return called(operation)


def mismatch(first: Operation, second: Operation) -> Report | None:
    """What two ranks disagree on that meet in one operation (a collective's members, or a message's ends)."""
    told = _point_to_point(first, second) if first.name in ("send", "recv") else _collective(first, second)
    if told is None:
        return None
    subject, of_first, of_second, help_text = told
    a, b = sorted(((first, of_first), (second, of_second)), key=lambda pair: pair[0].rank)
    of_each = f"{a[1]} on rank {a[0].rank}, {b[1]} on rank {b[0].rank}"
    if first.name in ("send", "recv"):
        of_each = f"rank {a[0].rank} {a[1]}, rank {b[0].rank} {b[1]}"
    sentence = f"ranks {a[0].rank} and {b[0].rank} disagree on {subject}: {of_each}"
    stands = tuple(Stand(one.rank, _calling(one), one.place, one.case) for one, _ in (a, b))
    return Report(Finding.MISMATCH, sentence, stands, help_text)


def _calling(operation: Operation) -> str:
    forms = operation.name == "new_group"
    return f"forms the group {list(operation.group)}" if forms else f"calls {describe(operation)}"


_Told = tuple[str, str, str, str]  # what they disagree on, the first's, the second's, and one thing to try


def _point_to_point(first: Operation, second: Operation) -> _Told | None:
    sender, receiver = (first, second) if first.name == "send" else (second, first)
    sent, expected = sender.reads[0], receiver.writes[0]
    told = str if sent.dtype != expected.dtype else _counted
    texts = {sender.rank: f"sends {told(sent)}", receiver.rank: f"receives {told(expected)}"}
    if sender.rank == receiver.rank or (sent.dtype, sent.elements) == (expected.dtype, expected.elements):
        return None
    subject = "the dtype of a message" if sent.dtype != expected.dtype else "the length of a message"
    help_text = "a receive buffer must have the dtype and the number of elements of what is sent"
    return subject, texts[first.rank], texts[second.rank], help_text


def _counted(spec: Spec) -> str:
    return f"{spec.elements} elements, {spec}" if len(spec.shape) != 1 else str(spec)


def _collective(first: Operation, second: Operation) -> _Told | None:
    one, two = first.name, second.name
    if one != two:
        help_text = (
            "every rank of a group must call the same collectives in the same order: is one inside an `if` that only "
            "some ranks take?"
        )
        return "the operation", called(first), called(second), help_text
    if one == "new_group" and first.group != second.group:
        return "the members of a new group", str(list(first.group)), str(list(second.group)), EVERY_GROUP
    if first.root != second.root:
        help_text = "the root must be the same number on every rank: pass the argument on, do not compute it by rank"
        argument = "src" if one in ("broadcast", "scatter") else "dst"
        return f"the root of {one}", f"{argument}={_root(first)}", f"{argument}={_root(second)}", help_text
    if one in REDUCING and first.reduce_op != second.reduce_op:
        help_text = "pass the same op on every rank"
        return f"the reduction of {one}", first.reduce_op, second.reduce_op, help_text
    if one in PAIRWISE:
        return _pairwise(first, second)
    if one in ("scatter", "gather"):
        return _rooted(first, second)
    ours, theirs = _common(first), _common(second)
    if ours == theirs:
        return None
    if len(ours) != len(theirs):
        help_text = "every rank must pass as many tensors"
        return f"the number of tensors of {one}", str(len(ours)), str(len(theirs)), help_text
    a, b = next(pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1])
    if a.dtype != b.dtype:
        help_text = "every rank must pass the same dtype: convert before the call"
        return f"the dtype of {one}", a.dtype, b.dtype, help_text
    help_text = "the ranks must call their collectives in the same order: has one left one out, or added one?"
    if first.place == second.place:
        help_text = "every rank must pass the same shape here; or has one rank left out a collective before this one?"
    return f"the shape of {one}", str(a.shape), str(b.shape), help_text


def _common(operation: Operation) -> Sequence[Spec]:
    """The tensors that must be alike on every rank."""
    if operation.name == "broadcast":
        return (operation.reads or operation.writes)[:1]
    return operation.reads


def _pairwise(first: Operation, second: Operation) -> _Told | None:
    """What each gives the other must be what the other takes."""
    for giver, taker in ((first, second), (second, first)):
        given, taken = giver.reads[taker.group_rank], taker.writes[giver.group_rank]
        if (given.dtype, given.elements) != (taken.dtype, taken.elements):
            texts = {
                giver.rank: f"{given} for rank {taker.rank}",
                taker.rank: f"room for {taken} from rank {giver.rank}",
            }
            help_text = "what rank i gives for rank j must be what rank j expects from rank i: exchange the sizes first"
            return f"a piece of {first.name}", texts[first.rank], texts[second.rank], help_text
    return None


def _rooted(first: Operation, second: Operation) -> _Told | None:
    """The root's piece for, or from, the other must be the other's. Two ranks that are no root need not agree."""
    root, other = (first, second) if first.rank == _root(first) else (second, first)
    if root.rank != _root(root):
        return None
    pieces, own = (root.reads, other.writes) if root.name == "scatter" else (root.writes, other.reads)
    piece = pieces[other.group_rank]
    if piece == own[0]:
        return None
    texts = {root.rank: f"{piece} for rank {other.rank}", other.rank: str(own[0])}
    help_text = f"{root.name} wants pieces of the same shape and dtype on every rank"
    return f"a piece of {root.name}", texts[first.rank], texts[second.rank], help_text


def _root(operation: Operation) -> int:
    """The root's rank in the world."""
    assert operation.root is not None
    return operation.group[operation.root]
