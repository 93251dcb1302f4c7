"""Hears what every rank is about to do, lets agreed operations go, and finds what cannot go on.

Pure: no sockets, no clock. A rank tells of an operation when it issues it, and again when it waits for it. An
operation starts when all its members have issued it and agree; then each of them is told, in the same order on every
rank, and the data move. So ranks that disagree never reach gloo. When every rank waits and nothing can start, the
world is stuck, and that is known at once: each rank's messages come in its order, and those that wait say no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from grader.world.handles import never_met, race, unwaited
from grader.world.meetings import Meetings
from grader.world.mismatch import mismatch
from grader.world.operation import NOWHERE, Operation
from grader.world.rank_state import RankState, Waiting
from grader.world.reading import read, read_place
from grader.world.report import Report, Stand
from grader.world.trace import MAX_EVENTS, Doing, Event, Trace
from grader.world.waiting import Blocked, deadlock

MAX_IDLE_POLLS = 2000  # answers of "not yet" in a row to one rank, while no rank does anything else
MAX_NAME = 120
# Each of these takes room here. No honest world comes near; a hostile one ends there.
MAX_OPEN = 5_000  # operations of one rank that nobody has waited for, or that wait for others
MAX_FORMS = 2_000  # groups that one rank asks for
MAX_MARKS = 10_000  # of one rank
MAX_LENGTHS = 2_000_000  # of the shapes of all tensors that the ranks tell of, and SPEC_LENGTHS for each tensor
SPEC_LENGTHS = 4
ASKING = frozenset({"form", "issue", "wait", "poll", "hold"})
EVENTS = ASKING | {"mark", "race", "excuse"}


class Conductor:
    """What is known of one world. `heard` and `ended` take what comes in; `settle` follows each batch.

    report: the first fault found. outbox: what to send, by rank, in order; the caller empties it.
    """

    def __init__(self, size: int) -> None:
        self.report: Report | None = None
        self.outbox: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._ranks = [RankState() for _ in range(size)]
        self._meetings = Meetings()
        self._events: list[Event] = []
        self._met: list[tuple[Operation, ...]] = []
        self._forms = 0
        self._lengths = 0
        self._complete = True

    @property
    def trace(self) -> Trace:
        """The account so far."""
        return Trace(self._events, self._met, complete=self._complete)

    def stands(self) -> tuple[Stand, ...]:
        """Where the ranks are that wait, for a world that is stopped for another reason."""
        return tuple(Stand(one.rank, one.doing(), one.place) for one in self._blocked().values())

    def heard(self, rank: int, head: dict[str, Any]) -> None:
        """One message of a rank. Raises ValueError, KeyError, TypeError or AttributeError for what no rank sends."""
        if self._ranks[rank].waiting is not None or self._ranks[rank].ended:
            raise ValueError("a rank that waits, or has ended, does nothing else")
        if head["event"] != "poll":
            self._forget_idle_polls()
        if head["event"] in ASKING:
            self._ranks[rank].threads = head.get("threads") is True
        match head["event"]:
            case "form":
                self._form(rank, head)
            case "issue":
                self._issue(rank, head)
            case "wait" | "poll":
                self._wait(rank, head)
            case "mark":
                self._mark(rank, _name(head["name"]))
            case "hold":
                self._hold(rank, self._rank_of(head["of"]), _name(head["name"]))
            case "race":
                operation = next(one for one in self._ranks[rank].waited if one.seq == head["s"])
                found = race(operation, read_place(head.get("at")), wrote=head.get("wrote") is True)
                self.report = self.report or found
            case "excuse":
                self._ranks[rank].excused.update(self._ranks[rank].open)

    def returned_value(self, rank: int) -> None:
        """The rank has returned the value of one case."""
        self._ranks[rank].case += 1

    def ended(self, rank: int) -> None:
        """The rank has returned from the program; it has said all that it had to say."""
        state = self._ranks[rank]
        state.ended = True
        self._forget_idle_polls()
        left = [operation for seq, operation in state.open.items() if seq not in state.excused]
        if left:
            self.report = self.report or unwaited(rank, left)

    def settle(self) -> None:
        """After a batch: while no rank can go on by itself, decides what may, or reports that nothing can.

        A rank with threads may always go on. So nothing is reported while there is one, and nobody waits for it here.
        """
        while self.report is None and not any(state.may_go_on and not state.threads for state in self._ranks):
            if all(state.ended for state in self._ranks):
                self._report_unmet()
                return
            stuck = not any(state.may_go_on for state in self._ranks)
            met = self._meetings.from_any()
            if met:
                self._check(met[1:], met[0])
                self._start(met)
            elif not self._answer_a_poll(patiently=not stuck):
                if not stuck:
                    return
                unmatched = [one for state in self._ranks for one in state.unstarted.values()]
                ended = [rank for rank, state in enumerate(self._ranks) if state.ended]
                self.report = deadlock(self._blocked(), ended, unmatched)

    def _report_unmet(self) -> None:
        """All have returned. What has not started never will: somebody waits for it in a thread, or gave it up."""
        for state in self._ranks:
            unmet = [operation for seq, operation in state.unstarted.items() if seq not in state.excused]
            if unmet:
                self.report = self.report or never_met(unmet[0])

    def _form(self, rank: int, head: dict[str, Any]) -> None:
        ranks = tuple(self._rank_of(each) for each in head["ranks"])
        number = head["g"]
        if rank not in ranks or len(set(ranks)) != len(ranks) or type(number) is not int:
            raise ValueError("a group without the rank that forms it")
        self._ranks[rank].forms += 1
        if self._ranks[rank].forms > MAX_FORMS:
            raise ValueError("more groups than there is room for")
        place = read_place(head.get("at"))
        self._forms += 1  # as a seq it is unique, and meets none of `issue`
        case = self._ranks[rank].case
        operation = Operation(rank, -self._forms, "new_group", ranks, tag=number, place=place, case=case)
        other = self._meetings.other_of_this_name(operation, _name(head["name"]))
        if other is not None:
            self.report = self.report or mismatch(other, operation)
        group, members = self._meetings.form(operation, _name(head["name"]))
        missing = () if group else self._meetings.missing(operation)
        self._note(Event(rank, Doing.FORM, self._ranks[rank].case, operation, missing=missing, place=place))
        if group is None:
            self._block(rank, Waiting(Doing.FORM, place, operation))
            return
        for member in members:
            self._ranks[member.rank].groups[member.tag] = group
            self._ranks[member.rank].waiting = None
            self.outbox[member.rank].append({"do": "formed", "g": member.tag})

    def _issue(self, rank: int, head: dict[str, Any]) -> None:
        state = self._ranks[rank]
        group = state.groups[head["g"]]
        operation = read(rank, head, group.ranks, group.number, case=state.case)
        self._lengths += sum(SPEC_LENGTHS + len(spec.shape) for spec in (*operation.reads, *operation.writes))
        full = max(len(state.open), len(state.unstarted)) >= MAX_OPEN or self._lengths > MAX_LENGTHS
        if operation.seq != state.next_seq or full:
            raise ValueError("an operation out of turn, or more than there is room for")
        state.next_seq += 1
        state.unstarted[operation.seq] = operation
        others, met = self._meetings.issue(operation, group)
        missing = () if met else self._meetings.missing(operation)
        self._note(Event(rank, Doing.ISSUE, state.case, operation, missing=missing, place=operation.place))
        if operation.is_async:
            state.open[operation.seq] = operation
        elif not met:
            self._block(rank, Waiting(Doing.WAIT, operation.place, operation))
        self._check(others, operation)
        self._start(met)

    def _check(self, others: Sequence[Operation], operation: Operation) -> None:
        for other in others:
            self.report = self.report or mismatch(other, operation)

    def _start(self, met: list[Operation]) -> None:
        if self.report is not None or not met:
            return  # what disagrees must not reach gloo
        if len(self._met) < MAX_EVENTS:
            self._met.append(tuple(met))
        for operation in met:
            state = self._ranks[operation.rank]
            del state.unstarted[operation.seq]
            message: dict[str, Any] = {"do": "start", "s": operation.seq}
            if operation.name == "recv":
                message["src"] = operation.peer
            self.outbox[operation.rank].append(message)
            waiting = state.waiting
            if waiting is not None and waiting.operation is not None and waiting.operation.seq == operation.seq:
                state.waiting = None
                if waiting.doing is Doing.POLL:
                    self._note(Event(operation.rank, Doing.POLL, state.case, operation, place=waiting.place))
                    self._answer(operation.rank, operation.seq, complete=True)

    def _wait(self, rank: int, head: dict[str, Any]) -> None:
        state, polls = self._ranks[rank], head["event"] == "poll"
        operation = state.open[head["s"]]
        place = read_place(head.get("at"))
        doing = Doing.POLL if polls else Doing.WAIT
        starts = operation.seq not in state.unstarted
        if starts or not polls:  # polls that are answered "not yet" would fill the trace
            missing = () if starts else self._meetings.missing(operation)
            self._note(Event(rank, doing, state.case, operation, missing=missing, place=place))
            self._close(rank, operation.seq)
        if polls and (starts or state.threads):
            self._answer(rank, operation.seq, complete=starts)
        elif not starts:
            self._block(rank, Waiting(doing, place, operation))

    def _block(self, rank: int, waiting: Waiting) -> None:
        """The rank does nothing until it is answered; one with other threads may, so it is never called stuck."""
        if not self._ranks[rank].threads:
            self._ranks[rank].waiting = waiting

    def _close(self, rank: int, seq: int) -> None:
        self._ranks[rank].waited.append(self._ranks[rank].open.pop(seq))

    def _answer(self, rank: int, seq: int, *, complete: bool) -> None:
        if complete and seq in self._ranks[rank].open:
            self._close(rank, seq)
        self.outbox[rank].append({"do": "answer", "s": seq, "complete": complete})

    def _answer_a_poll(self, *, patiently: bool) -> bool:
        """Tells one rank that asks "not yet": the one that heard it least often. False where there is none to tell.

        patiently: however often it heard it; else not to one that heard it too often.
        """
        asking = [
            (state.idle_polls, rank, state.waiting.operation.seq)
            for rank, state in enumerate(self._ranks)
            if state.waiting and state.waiting.doing is Doing.POLL and state.waiting.operation
        ]
        if not asking:
            return False
        heard, rank, seq = min(asking)
        if heard >= MAX_IDLE_POLLS and not patiently:
            return False
        self._ranks[rank].idle_polls += 1
        self._ranks[rank].waiting = None
        self._answer(rank, seq, complete=False)
        return True

    def _forget_idle_polls(self) -> None:
        for state in self._ranks:
            state.idle_polls = 0

    def _mark(self, rank: int, name: str) -> None:
        self._note(Event(rank, Doing.MARK, self._ranks[rank].case, name=name))
        self._ranks[rank].marks.add(name)
        self._ranks[rank].marked += 1
        if self._ranks[rank].marked > MAX_MARKS:
            raise ValueError("more marks than there is room for")
        for other, state in enumerate(self._ranks):
            waiting = state.waiting
            if state.held == (rank, name):
                state.held = None
                if waiting and waiting.doing is Doing.HOLD:
                    state.waiting = None
                self.outbox[other].append({"do": "go_on"})

    def _hold(self, rank: int, of: int, name: str) -> None:
        self._note(Event(rank, Doing.HOLD, self._ranks[rank].case, name=name))
        if name in self._ranks[of].marks:
            self.outbox[rank].append({"do": "go_on"})
        else:
            self._ranks[rank].held = of, name
            self._block(rank, Waiting(Doing.HOLD, NOWHERE, of=of, name=name))

    def _blocked(self) -> dict[int, Blocked]:
        blocked = {}
        for rank, state in enumerate(self._ranks):
            waiting = state.waiting
            if waiting is not None and waiting.operation is None:
                blocked[rank] = Blocked(rank, waiting.place, (waiting.of,), mark=waiting.name, case=state.case)
            elif waiting is not None and waiting.operation is not None:
                missing = self._meetings.missing(waiting.operation)
                polls = waiting.doing is Doing.POLL
                blocked[rank] = Blocked(rank, waiting.place, missing, waiting.operation, polls=polls, case=state.case)
        return blocked

    def _note(self, event: Event) -> None:
        if len(self._events) < MAX_EVENTS:
            self._events.append(event)
        else:
            self._complete = False

    def _rank_of(self, number: Any) -> int:
        if type(number) is not int or not 0 <= number < len(self._ranks):
            raise ValueError("a rank that there is not")
        return number


def _name(told: Any) -> str:
    if type(told) is not str or len(told) > MAX_NAME or not told.isprintable():
        raise ValueError("a name that cannot be read")
    return told
