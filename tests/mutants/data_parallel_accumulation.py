"""Mutants of the wrappers of data_parallel.py: no_sync() and the second backward."""

from tests.mutants.data_parallel_texts import ACCUMULATION, FINISH, NO_SYNC, OVERLAPPED_END, SECOND
from tests.mutants.mutant import Edit, Mutant

MUTANTS: list[Mutant] = [
    Mutant(
        "no_sync_survives_an_exception",
        "The end of no_sync() is not reached when an exception leaves it.",
        (Edit(NO_SYNC, "        self._no_sync.depth += 1\n        yield\n        self._no_sync.depth -= 1\n"),),
        ACCUMULATION,
    ),
    Mutant(
        "inner_no_sync_ends_the_outer",
        "no_sync() is a flag, which the inner one takes back.",
        (Edit(NO_SYNC, NO_SYNC.replace("depth -= 1", "depth = 0")),),
        ("data_parallel.naive_no_sync", "data_parallel.overlapped_accumulation"),
    ),
    Mutant(
        "synchronized_inside_no_sync",
        "synchronize_gradients() inside no_sync() sends what there is.",
        (
            Edit(
                "        if self._no_sync.depth > 0:\n            raise",
                "        if self._no_sync.depth < 0:\n            raise",
            ),
        ),
        ("data_parallel.naive_no_sync", "data_parallel.flat_no_sync", "data_parallel.bucketed_accumulation"),
    ),
    Mutant(
        "nothing_is_sent_without_a_backward_outside",
        "synchronize_gradients() does nothing where the last backward was inside no_sync().",
        (Edit(FINISH, "        if self._backward is None:\n            return\n" + FINISH),),
        (
            "data_parallel.overlapped_accumulation",
            "data_parallel.bucketed_accumulation",
            "data_parallel.overlapped_gradients",
        ),
        mistake=35,
    ),
    Mutant(
        "left_out_gradients_are_zeros",
        "What the last backward did not use is sent as zeros, though no_sync() has accumulated there.",
        (
            Edit(
                FINISH,
                FINISH.replace(
                    "            self._issue_next()\n",
                    "            for parameter in self._buckets[len(self._issued)]:\n"
                    "                parameter.grad = None\n            self._issue_next()\n",
                ),
            ),
        ),
        (
            "data_parallel.overlapped_accumulation",
            "data_parallel.bucketed_accumulation",
            "data_parallel.overlapped_gradients",
        ),
    ),
    Mutant(
        "backward_inside_no_sync_sends",
        "The hooks do not ask whether no_sync() is on.",
        (
            Edit(
                "            if self._no_sync.depth > 0:\n                if index",
                "            if self._no_sync.depth < 0:\n                if index",
            ),
        ),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
        mistake=35,
    ),
    Mutant(
        "second_backward_is_accepted",
        "A second backward goes on, and what it adds is lost.",
        (Edit(SECOND, ""),),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
        mistake=35,
    ),
    Mutant(
        "second_backward_is_noticed_by_its_parameter",
        "A second backward is refused only where it reaches a parameter of the first.",
        (
            Edit(
                SECOND,
                "            if self._num_missing[index] <= 0:\n                raise RuntimeError(_SECOND_BACKWARD)\n",
            ),
        ),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
        mistake=35,
    ),
    Mutant(
        "second_backward_is_noticed_once_something_is_sent",
        "A second backward is refused only where the first has sent something.",
        (Edit(SECOND, SECOND.replace("if self._backward", "if self._issued and self._backward")),),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
    ),
    Mutant(
        "second_backward_says_nothing",
        "The RuntimeError does not say what to do.",
        (Edit(SECOND, SECOND.replace("_SECOND_BACKWARD", '"a gradient is in flight"')),),
        ("data_parallel.overlapped_accumulation", "data_parallel.bucketed_accumulation"),
    ),
    Mutant(
        "two_forwards_count_as_two_backwards",
        "A second forward before synchronize_gradients() is refused too.",
        (
            Edit(
                "        self._overlap = _Overlap(buckets, self._no_sync, group)\n",
                """\
        self._overlap = _Overlap(buckets, self._no_sync, group)
        self._in_step = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._in_step:
            raise RuntimeError(_SECOND_BACKWARD)
        self._in_step = True
        return super().forward(*args, **kwargs)
""",
            ),
            Edit(OVERLAPPED_END, "        self._in_step = False\n" + OVERLAPPED_END),
        ),
        ("data_parallel.overlapped_accumulation",),
    ),
]
