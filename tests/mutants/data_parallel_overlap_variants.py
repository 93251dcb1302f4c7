"""Right wrappers of data_parallel.py that overlap in other ways, as torch's own and those of other courses do."""

from tests.mutants.data_parallel_texts import (
    DIVIDE,
    FLAT_STEP,
    GRADIENT,
    ISSUE_IN_ORDER,
    OVERLAP,
    REDUCE,
    REGISTER,
    WRITE,
)
from tests.mutants.mutant import Edit, Variant

VARIANTS: list[Variant] = [
    Variant(
        "hooks_of_tensors_and_clones",
        "Hooks of the tensors, which run before .grad is written, send a clone of what .grad will be.",
        (
            Edit(
                REGISTER,
                """\
        def on_tensor(gradient: Tensor) -> None:
            overlap = this()
            if overlap is not None and overlap._no_sync.depth == 0:
                held = parameter.grad
                parameter.will_be = gradient.clone() if held is None else held + gradient
            on_gradient(gradient)

        handle = parameter.register_hook(on_tensor)
""",
            ),
            Edit(
                f"[{GRADIENT} for p in parameters]",
                """\
[
        p.__dict__.pop("will_be", torch.zeros_like(p) if p.grad is None else p.grad.detach()).to_dense()
        for p in parameters
    ]""",
            ),
        ),
        OVERLAP,
    ),
    Variant(
        "divided_in_a_callback_of_the_future",
        "The handle's future divides in its then(), and synchronize_gradients() waits for what comes of it.",
        (
            Edit(
                REDUCE,
                REDUCE + "    size = dist.get_world_size(group)\n"
                "    work = work.get_future().then(lambda future: future.value()[0].div_(size))\n",
            ),
            Edit(DIVIDE, ""),
        ),
        OVERLAP,
    ),
    Variant(
        "gradients_are_views_of_the_buckets",
        "Gradients are copied into the bucket, and .grad is a view of it from then on.",
        (
            Edit(
                REDUCE,
                """\
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.grad = piece.view(parameter.shape)
"""
                + REDUCE,
            ),
            Edit(WRITE, "        assert parameter.grad.data_ptr() == piece.data_ptr()\n"),
        ),
        OVERLAP,
    ),
    Variant(
        "waits_when_all_are_sent",
        "Readiness is looked up in a set; whoever issues the last all-reduce waits for all, at the end of backward.",
        (
            Edit(
                ISSUE_IN_ORDER,
                """\
            ready = {place for place, missing in enumerate(self._num_missing) if missing == 0}
            while len(self._issued) in ready:
                self._issue_next()
                if len(self._issued) == len(self._buckets):
                    for reduction in self._issued:
                        reduction.work.wait()
""",
            ),
        ),
        OVERLAP,
    ),
    Variant(
        "asks_whether_the_first_has_come",
        "Each hook asks once whether the first all-reduce is complete, and goes on in any case.",
        (
            Edit(
                ISSUE_IN_ORDER,
                ISSUE_IN_ORDER + "            for reduction in self._issued[:1]:\n"
                "                reduction.work.is_completed()\n",
            ),
        ),
        OVERLAP,
    ),
    Variant(
        "flat_as_a_list",
        "FlatDDP gives its gradients to one all-reduce as a list.",
        (
            Edit(
                FLAT_STEP,
                """\
        for parameters in alike.values():
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
            whole = [gradient.contiguous() for gradient in gradients]
            dist.all_reduce_coalesced(whole, group=self._group)
            for parameter, gradient in zip(parameters, whole, strict=True):
                parameter.grad = gradient / dist.get_world_size(self._group)
""",
            ),
        ),
        ("data_parallel.flat_gradients", "data_parallel.flat_training", "data_parallel.flat_no_sync"),
    ),
]
