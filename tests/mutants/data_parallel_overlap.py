"""Mutants of data_parallel.py that give right gradients, and leave nothing in flight during backward."""

from tests.mutants.data_parallel_texts import IN_FLIGHT, ISSUE_IN_ORDER, REDUCE
from tests.mutants.mutant import Edit, Mutant

FINISH_WAIT = "    work, flat, parameters = reduction\n    work.wait()\n"

MUTANTS: list[Mutant] = [
    Mutant(
        "waits_in_the_hook",
        "The hook calls an all-reduce that returns when it is done.",
        (
            Edit(REDUCE, REDUCE.replace("async_op=True", "async_op=False")),
            Edit(FINISH_WAIT, "    _, flat, parameters = reduction\n"),
        ),
        IN_FLIGHT,
        mistake=30,
    ),
    Mutant(
        "only_fakes_asynchrony",
        "The hook calls the all-reduce with async_op=True, and waits for its handle in the next line.",
        (Edit(REDUCE, REDUCE + "    work.wait()\n"),),
        IN_FLIGHT,
        mistake=30,
    ),
    Mutant(
        "waits_for_the_one_before",
        "Before the hook issues an all-reduce it waits for the one before.",
        (
            Edit(
                ISSUE_IN_ORDER,
                ISSUE_IN_ORDER.replace(
                    "                self._issue",
                    "                for reduction in self._issued[-1:]:\n                    reduction.work.wait()\n"
                    "                self._issue",
                ),
            ),
        ),
        IN_FLIGHT,
        mistake=30,
    ),
    Mutant(
        "rank_1_waits_in_the_hook",
        "One rank of the group waits in its hooks.",
        (Edit(REDUCE, REDUCE + "    if dist.get_rank(group) == 1:\n        work.wait()\n"),),
        IN_FLIGHT,
        mistake=30,
    ),
    Mutant(
        "asks_in_the_hook_until_it_is_done",
        "The hook does not wait for the handle; it asks again and again whether it is complete.",
        (Edit(REDUCE, REDUCE + "    while not work.is_completed():\n        pass\n"),),
        IN_FLIGHT,
        mistake=30,
    ),
    Mutant(
        "sends_everything_after_backward",
        "The hooks count, and synchronize_gradients() issues all.",
        (Edit(ISSUE_IN_ORDER, ""),),
        IN_FLIGHT,
        mistake=31,
    ),
    Mutant(
        "sends_when_the_last_gradient_is_there",
        "The hooks count, and the last of them issues all.",
        (
            Edit(
                ISSUE_IN_ORDER,
                ISSUE_IN_ORDER.replace("self._num_missing[len(self._issued)] == 0", "not any(self._num_missing)"),
            ),
        ),
        IN_FLIGHT,
        mistake=31,
    ),
    Mutant(
        "sends_in_the_last_callback_of_backward",
        "What autograd's engine calls at the end of backward issues all that is ready.",
        (
            Edit(
                ISSUE_IN_ORDER,
                """\
            if getattr(self, "_queued", None) != backward:
                self._queued = backward
                torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: [
                        self._issue_next() for _ in self._buckets if self._num_missing[len(self._issued)] == 0
                    ]
                )
""",
            ),
        ),
        IN_FLIGHT,
        mistake=31,
    ),
    Mutant(
        "sends_the_first_alone_during_backward",
        "The first all-reduce is issued in a hook, the others after backward.",
        (
            Edit(
                ISSUE_IN_ORDER,
                "            if not self._issued and self._num_missing[0] == 0:\n                self._issue_next()\n",
            ),
        ),
        IN_FLIGHT,
        mistake=31,
    ),
]
