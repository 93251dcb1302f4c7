"""Right solutions of data_parallel.py written differently."""

from tests.mutants.data_parallel_texts import (
    ALL_ROWS,
    DIVIDE,
    FINALIZE,
    FLAT_STEP,
    FUNCTIONS,
    HOOK,
    NAIVE_STEP,
    NO_SYNC,
    OWN_ROWS,
    PLAN,
    REDUCE,
    REGISTER,
    SECOND,
    WRITE,
)
from tests.mutants.mutant import Edit, Variant

VARIANTS: list[Variant] = [
    Variant(
        "functions_by_other_calls",
        "tensor_split, an all-reduce of the rows, copies that are broadcast, one open bucket that is flushed.",
        (
            Edit(
                OWN_ROWS,
                """\
    if not 0 <= rank < world_size:
        raise ValueError(f"rank is {rank}; expected 0 to {world_size - 1}")
    return batch.tensor_split(world_size)[rank].clone()
""",
            ),
            Edit(
                f"    all_rows = {ALL_ROWS}\n",
                """\
    total = torch.tensor(local_rows)
    dist.all_reduce(total, group=group)
    all_rows = int(total)
""",
            ),
            Edit("        memory = _memory_of(tensor)\n", "        memory = (tensor.data_ptr(), tensor.numel())\n"),
            Edit("message = elements.contiguous()", "message = elements.clone(memory_format=torch.contiguous_format)"),
            Edit(
                PLAN,
                """\
    buckets: list[list[int]] = []
    current: list[int] = []
    used = 0
    for index, parameter in list(enumerate(parameters))[::-1]:
        size = parameter.nbytes
        if current:
            last = parameters[current[-1]]
            if used + size > bucket_bytes or last.dtype != parameter.dtype or last.device != parameter.device:
                buckets.append(current)
                current, used = [], 0
        current.append(index)
        used += size
    return buckets + [current] * bool(current)
""",
            ),
        ),
        FUNCTIONS,
    ),
    Variant(
        "each_wrapper_for_itself",
        "NaiveDDP and FlatDDP share no function; the hooks are on AccumulateGrad nodes; DDP refuses without ABC.",
        (
            Edit(
                NAIVE_STEP,
                """\
        for parameter in self._trainable:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            whole = parameter.grad.contiguous()
            dist.all_reduce(whole, group=self._group)
            parameter.grad.copy_(whole).div_(dist.get_world_size(self._group))
""",
            ),
            Edit(
                FLAT_STEP,
                """\
        for (dtype, device), parameters in alike.items():
            sizes = [parameter.numel() for parameter in parameters]
            buffer = torch.zeros(sum(sizes), dtype=dtype, device=device)
            for place, parameter in zip(buffer.split(sizes), parameters, strict=True):
                if parameter.grad is not None:
                    place.copy_(parameter.grad.flatten())
            dist.all_reduce(buffer, group=self._group)
            for place, parameter in zip(buffer.split(sizes), parameters, strict=True):
                parameter.grad = (place / dist.get_world_size(self._group)).view_as(parameter)
""",
            ),
            Edit(
                REGISTER,
                """\
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._nodes = [*getattr(self, "_nodes", []), node]
        handle = node.register_hook(lambda *_: on_gradient(_))
""",
            ),
            Edit("class DDP(nn.Module, ABC):", "class DDP(nn.Module):"),
            Edit(
                "        super().__init__()\n",
                '        if type(self) is DDP:\n            raise TypeError("make one of the four")\n'
                "        super().__init__()\n",
            ),
        ),
    ),
    Variant(
        "averaged_by_the_backend",
        "AVG; NaiveDDP waits at the end; the end of backward sets a flag for the second; no_sync() puts back what was.",
        (
            Edit(REDUCE, REDUCE.replace("SUM", "AVG")),
            Edit(DIVIDE, ""),
            Edit(
                NAIVE_STEP,
                """\
        started = [_issue([parameter], self._group) for parameter in self._trainable]
        for reduction in started:
            _finish(reduction, self._group)
""",
            ),
            Edit(
                SECOND,
                """\
            if self._backward == -1:
                raise RuntimeError("call synchronize_gradients() before another backward()")
            if self._backward is None:
                torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: setattr(self, "_backward", None if self._backward is None else -1)
                )
""",
            ),
            Edit(
                NO_SYNC,
                """\
        before = self._no_sync.depth
        self._no_sync.depth = 1
        try:
            yield
        finally:
            self._no_sync.depth = before
""",
            ),
        ),
    ),
    Variant(
        "divided_first_and_in_place",
        "Each rank divides, then sums in place; backward's last callback waits; a new wrapper takes off the old hooks.",
        (
            Edit(DIVIDE, ""),
            Edit(REDUCE, DIVIDE + REDUCE),
            Edit(
                WRITE,
                "        if parameter.grad is None:\n            parameter.grad = torch.empty_like(parameter)\n"
                "        parameter.grad.copy_(piece.view(parameter.shape))\n",
            ),
            Edit(
                "    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])\n",
                """\
    flat = gradients[0].reshape(-1)
    if len(gradients) > 1:
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
""",
            ),
            Edit(
                "            self._backward = backward\n",
                """\
            if self._backward is None:
                torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: [reduction.work.wait() for reduction in self._issued]
                )
            self._backward = backward
""",
            ),
            Edit(
                HOOK,
                """\
        if hasattr(parameter, "hook_of_ddp"):
            parameter.hook_of_ddp.remove()
        this = lambda: self  # noqa: E731
""",
            ),
            Edit(FINALIZE, "        parameter.hook_of_ddp = handle\n"),
        ),
    ),
]
