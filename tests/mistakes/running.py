"""Runs tasks on worker processes, each with worlds of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait

from grader.world import Launcher
from tests.harness import mutation
from tests.mistakes.rows import Row, Task


def run(tasks: Sequence[Task], *, jobs: int) -> Iterator[Row]:
    """The row of each task, in the order in which they are done. Raises EOFError where a worker died."""
    spawned = multiprocessing.get_context("spawn")
    left = list(reversed(tasks))
    with ExitStack() as stack:
        busy: list[Connection] = []
        for _ in range(min(jobs, len(tasks))):
            ours, theirs = spawned.Pipe()
            worker = spawned.Process(target=_work, args=(theirs,), daemon=True)
            worker.start()
            theirs.close()
            stack.callback(worker.join)
            stack.callback(ours.close)  # the worker's end: it reads EOF
            ours.send(left.pop())
            busy.append(ours)
        while busy:
            for ready in wait(busy):
                assert isinstance(ready, Connection)
                row = ready.recv()
                if left:
                    ready.send(left.pop())
                else:
                    busy.remove(ready)
                yield row


def _work(tasks: Connection) -> None:
    """Answers each task with its row, until there are no more."""
    checks = mutation.checks()
    mutants = {}
    with Launcher() as launcher:
        while True:
            try:
                task: Task = tasks.recv()
            except EOFError:
                return
            if task.module not in mutants:
                mutants[task.module] = {mutant.name: mutant for mutant in mutation.mutants_of(task.module)}
            mutant = mutants[task.module][task.mutant]
            submission = mutation.edited(task.module, mutant)
            stuck = mutation.expects_hang(mutant)
            verdict = mutation.verdict_of(checks[task.check], submission, launcher, stuck=stuck)
            rationale = verdict.explanation.rationale if verdict.explanation else ""
            tasks.send(Row(task, verdict.status, next(iter(rationale.splitlines()), "")))
