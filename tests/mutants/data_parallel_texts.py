"""What edits of data_parallel.py begin from, each once in the reference, and names of checks that fail together."""

DIVIDE = "    flat /= dist.get_world_size(group)\n"
REDUCE = "    work = dist.all_reduce(flat, op=dist.ReduceOp.SUM, group=group, async_op=True)\n"
WRITE = "        parameter.grad = torch.empty_like(parameter).copy_(piece.view(parameter.shape))\n"
GRADIENT = "torch.zeros_like(p) if p.grad is None else p.grad.detach().to_dense()"
TRAINABLE = "    return [parameter for parameter in module.parameters() if parameter.requires_grad]\n"
NAIVE_STEP = """\
        for parameter in self._trainable:
            _finish(_issue([parameter], self._group), self._group)
"""
FLAT_LIST = "            alike.setdefault((parameter.dtype, parameter.device), []).append(parameter)\n"
OWN_ROWS = "    rows = piece_range(batch.shape[0], rank, world_size)\n    return batch[rows.start : rows.stop]\n"
ALL_ROWS = "sum(exchange_sizes(local_rows, group=group))"
ALL_TENSORS = "[*module.parameters(), *module.buffers()]"
ISSUE_IN_ORDER = """\
            while len(self._issued) < len(self._buckets) and self._num_missing[len(self._issued)] == 0:
                self._issue_next()
"""
NO_SYNC = """\
        self._no_sync.depth += 1
        try:
            yield
        finally:
            self._no_sync.depth -= 1
"""
FINISH = """\
        while len(self._issued) < len(self._buckets):
            self._issue_next()
        for reduction in self._issued:
            _finish(reduction, self._group)
        self._begin_step()
"""
SECOND = (
    "            if self._backward not in (None, backward):\n                raise RuntimeError(_SECOND_BACKWARD)\n"
)
HOOK = "        this = weakref.ref(self)\n"
REGISTER = """\
        handle = parameter.register_post_accumulate_grad_hook(on_gradient)  # type: ignore[no-untyped-call]
"""
FINALIZE = "        weakref.finalize(self, handle.remove)\n"
FLAT_STEP = """\
        for parameters in alike.values():
            _finish(_issue(parameters, self._group), self._group)
"""
PLAN = """\
    buckets: list[list[int]] = []
    kind: tuple[torch.dtype, torch.device] | None = None
    num_bytes = 0
    for index in reversed(range(len(parameters))):
        parameter = parameters[index]
        size = parameter.numel() * parameter.element_size()
        if kind != (parameter.dtype, parameter.device) or num_bytes + size > bucket_bytes:
            buckets.append([])
            kind, num_bytes = (parameter.dtype, parameter.device), 0
        buckets[-1].append(index)
        num_bytes += size
    return buckets
"""
OVERLAPPED_END = """\
        self._overlap.finish()
        # END SOLUTION


class BucketedDDP(DDP):
"""

GRADIENTS = tuple(f"data_parallel.{kind}_gradients" for kind in ("naive", "flat", "overlapped", "bucketed"))
TRAINING = ("data_parallel.naive_training", "data_parallel.flat_training", *GRADIENTS[2:])
MISSING = tuple(f"data_parallel.{kind}_missing_gradients" for kind in ("naive", "flat", "overlapped", "bucketed"))
ACCUMULATION = (
    "data_parallel.naive_no_sync",
    "data_parallel.flat_no_sync",
    "data_parallel.overlapped_accumulation",
    "data_parallel.bucketed_accumulation",
)
IN_FLIGHT = ("data_parallel.overlapped_in_flight", "data_parallel.bucketed_in_flight")
OVERLAP = (
    *GRADIENTS[2:],
    *MISSING[2:],
    *ACCUMULATION[2:],
    *IN_FLIGHT,
)
FUNCTIONS = (
    "data_parallel.shard_batch",
    "data_parallel.broadcast_module",
    "data_parallel.broadcast_module_layouts",
    "data_parallel.loss_scale",
    "data_parallel.groups",
    "data_parallel.plan_buckets",
    "data_parallel.wrapper",
    "data_parallel.bucketed_gradients",
)
