"""Mutants of the wrappers of data_parallel.py: missing and frozen gradients, groups, steps, order and buckets."""

from tests.mutants.data_parallel_texts import (
    DIVIDE,
    FINALIZE,
    FINISH,
    FLAT_LIST,
    GRADIENT,
    HOOK,
    ISSUE_IN_ORDER,
    MISSING,
    NAIVE_STEP,
    TRAINABLE,
    WRITE,
)
from tests.mutants.mutant import Edit, Mutant

MUTANTS: list[Mutant] = [
    Mutant(
        "missing_gradient_is_an_error",
        "The gradient is taken to be there.",
        (Edit(GRADIENT, "p.grad.detach().to_dense()"),),
        MISSING,
        mistake=32,
    ),
    Mutant(
        "missing_gradient_is_skipped",
        "A rank leaves out the all-reduce of a parameter that it did not use; its peers wait.",
        (
            Edit(
                NAIVE_STEP,
                NAIVE_STEP.replace(
                    "            _finish",
                    "            if parameter.grad is None:\n                continue\n            _finish",
                ),
            ),
        ),
        ("data_parallel.naive_missing_gradients",),
        mistake=33,
    ),
    Mutant(
        "left_out_gradients_are_not_issued",
        "synchronize_gradients() waits for what backward issued, and issues nothing itself.",
        (
            Edit(
                FINISH,
                FINISH.split("        for reduction")[0].split("        while")[0]
                + "        for reduction"
                + FINISH.split("        for reduction")[1],
            ),
        ),
        ("data_parallel.overlapped_missing_gradients",),
        mistake=33,
    ),
    Mutant(
        "flat_list_of_gradients_that_exist",
        "The flat buffer holds the gradients that this rank has, so its length differs between ranks.",
        (Edit(FLAT_LIST, "            if parameter.grad is not None:\n    " + FLAT_LIST),),
        ("data_parallel.flat_missing_gradients",),
        mistake=40,
    ),
    Mutant(
        "frozen_gradients_are_averaged",
        "Parameters that want no gradient are treated like the others.",
        (Edit(TRAINABLE, "    return list(module.parameters())\n"),),
        (
            "data_parallel.naive_missing_gradients",
            "data_parallel.naive_trainable",
            "data_parallel.overlapped_missing_gradients",
        ),
        mistake=34,
    ),
    Mutant(
        "trainable_is_read_in_every_step",
        "requires_grad is read in every synchronize_gradients().",
        (Edit(NAIVE_STEP, NAIVE_STEP.replace("in self._trainable", "in _trainable(self.module)")),),
        ("data_parallel.naive_trainable",),
        mistake=34,
    ),
    Mutant(
        "only_the_first_step_is_synchronized",
        "A flag says that the gradients are reduced, and is never taken back.",
        (Edit(NAIVE_STEP, NAIVE_STEP + "        self._trainable = []\n"),),
        ("data_parallel.naive_gradients", "data_parallel.naive_training"),
        mistake=35,
    ),
    Mutant(
        "counters_are_not_reset",
        "What was issued in the first step still counts as issued in the second.",
        (Edit(FINISH, FINISH.replace("        self._begin_step()\n", "        self._backward = None\n")),),
        ("data_parallel.overlapped_gradients", "data_parallel.bucketed_gradients"),
        mistake=39,
    ),
    Mutant(
        "reduced_gradient_is_written_to_a_copy",
        "The result is copied into .grad.reshape(-1), which is a copy where .grad is not contiguous.",
        (
            Edit(
                WRITE,
                "        if parameter.grad is None:\n            parameter.grad = torch.zeros_like(parameter)\n"
                "        parameter.grad.reshape(-1).copy_(piece)\n",
            ),
        ),
        (
            "data_parallel.naive_trainable",
            "data_parallel.groups",
            "data_parallel.flat_missing_gradients",
            "data_parallel.bucketed_missing_gradients",
        ),
        mistake=11,
    ),
    Mutant(
        "mean_over_the_world",
        "The sum over the group is divided by the size of the world.",
        (Edit(DIVIDE, "    flat /= dist.get_world_size()\n"),),
        (
            "data_parallel.groups",
            "data_parallel.flat_no_sync",
            "data_parallel.overlapped_missing_gradients",
            "data_parallel.bucketed_missing_gradients",
        ),
    ),
    Mutant(
        "issued_in_the_order_of_readiness",
        "Each gradient is sent when it is ready, in an order that differs between ranks.",
        (
            Edit(
                ISSUE_IN_ORDER,
                "            if self._num_missing[index] == 0:\n"
                "                self._issued.append(_issue(self._buckets[index], self._group))\n",
            ),
        ),
        ("data_parallel.overlapped_gradients",),
    ),
    Mutant(
        "bucket_is_sent_with_its_first_gradient",
        "A bucket is sent when the first of its gradients is ready.",
        (Edit("[len(bucket) for bucket in self._buckets]", "[1 for bucket in self._buckets]"),),
        ("data_parallel.bucketed_gradients",),
    ),
    Mutant(
        "bucket_bytes_is_ignored",
        "Buckets always have 25 MiB.",
        (Edit("plan_buckets(trainable, bucket_bytes)", "plan_buckets(trainable, 25 * 2**20)"),),
        ("data_parallel.bucketed_gradients",),
    ),
    Mutant(
        "bucket_bytes_is_looked_at_too_late",
        "The parameters are broadcast before a wrong bucket_bytes is refused.",
        (
            Edit(
                "        plan = plan_buckets(trainable, bucket_bytes)\n        super().__init__(module, group=group)\n",
                "        super().__init__(module, group=group)\n        plan = plan_buckets(trainable, bucket_bytes)\n",
            ),
        ),
        ("data_parallel.bucketed_gradients",),
    ),
    Mutant(
        "hooks_keep_the_wrapper",
        "The hooks hold the wrapper, which lives on with them when the module is wrapped again.",
        (
            Edit(HOOK, "        this = lambda: self  # noqa: E731\n"),
            Edit(FINALIZE, ""),
        ),
        ("data_parallel.overlapped_missing_gradients", "data_parallel.bucketed_missing_gradients"),
    ),
]
