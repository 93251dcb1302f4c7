"""Pieces of reference/pipeline_parallel.py that its mutants and variants edit."""

from __future__ import annotations


def fails(*names: str) -> tuple[str, ...]:
    """The full names of checks of this module."""
    return tuple(f"pipeline_parallel.{name}" for name in names)


RANGES = "    return [piece_range(num_layers, stage, num_stages) for stage in range(num_stages)]\n"
PIECES = "    return [batch[rows.start : rows.stop] for rows in pieces]\n"
BACKWARDS = """    for k in range(num_microbatches):
        if has_next:
            schedule.append(Action(Kind.RECEIVE_GRADIENT, k))
"""
SCHEDULE_OF_NONE = "\n    if num_microbatches < 1:\n"
FORWARD_RUN = "        run = _Run(self, num_rows=num_rows, batch=batch)\n"
TRAIN_RUN = "        run = _Run(self, num_rows=num_rows, batch=batch, target=target, loss_fn=loss_fn)\n"
OUTPUT = "        return torch.cat([run.outputs[k] for k in range(self.num_microbatches)]).detach().contiguous()\n"
LOSSES = "        return torch.stack(run.losses) if self.is_last else None\n"
TOO_FEW_MICROBATCHES = "        if num_microbatches < 1:\n"
OUTSIDE = "        if stage < 0:\n"
RANKS = "self.ranks = dist.get_process_group_ranks(group)"
ENDS = "self.is_first, self.is_last = stage == 0, stage == self.num_stages - 1"
TOO_FEW_ROWS = "        if num_rows < m:\n"
MISSING = """    if rows is None:
        raise ValueError(f"{name} is missing; this stage reads it, expected a tensor of {num_rows} rows")
"""
WRONG_ROWS = "    if rows.dim() == 0 or rows.shape[0] != num_rows:\n"
ROWS = "        self.rows = piece_sizes(num_rows, m)  # of each microbatch\n"
BATCH = """        self.batch = _microbatches("batch", batch, num_rows, m) if stage.is_first else []\n"""
TARGET = """_microbatches("target", target, num_rows, m) if stage.is_last and self.training else []\n"""
STEPS = "            for verb, action in steps:\n"
RECEIVE_BUFFER = (
    "            buffer = torch.empty(self.rows[k], *stage.input_shape, dtype=stage.dtype, device=stage.device)\n"
)
GRADIENT_BUFFER = "            buffer = self.outputs[k].new_empty(self.outputs[k].shape)\n"
SENT_ACTIVATION = "(self.outputs[k] if self.training else self.outputs.pop(k)).detach().contiguous()"
MESSAGE = """        start = dist.isend if action.kind in SEND_KINDS else dist.irecv
        work = start(buffer, peer, group=stage.group)
        assert work is not None, "torch returns None outside the group only"
        self.in_flight[action] = (work, buffer)
"""
COMPLETE = """        work, buffer = self.in_flight.pop(action)
        work.wait()
"""
LEAF = "self.inputs[action.microbatch] = buffer.requires_grad_(self.training and differentiable)"
LAYERS = "        self.outputs[k] = self.stage.layers(self.entering(k))\n"
LOSS = "            self.losses.append(self.outputs[k].detach())\n"
BATCH_ROWS = "return self.batch[k].to(self.stage.device, copy=True)"
RECEIVED = "return self.inputs[k].clone() if self.training else self.inputs.pop(k)"
BACKWARD = "        output = self.outputs.pop(k)\n"
WEIGHT = "torch.full_like(output, self.rows[k] / self.num_rows)"
BACKWARD_CALL = """        if output.requires_grad:  # not so on a first stage without trainable parameters
            torch.autograd.backward(output, gradient)
"""
INPUT_GRADIENT = """            leaf = self.inputs.pop(k)
            self.input_gradients[k] = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
"""
STEPS_CHOSEN = "        steps = steps_overlapped(schedule) if self.stage.overlap else steps_in_order(schedule)\n"
PREFETCH = """            if posted is not None:
                steps.append(Step("post", posted))
"""
BETWEEN = """            steps.append(Step("compute", action))
            if sending is not None:
"""
RECEIVE_STEP = """                steps.append(Step("post", action))
            steps.append(Step("wait", action))
"""
SEND_BUFFER = f"            buffer = {SENT_ACTIVATION}\n"
RECEIVE_WAIT = '            steps.append(Step("wait", action))\n'
CLASS_OF_STAGE = "    layers: nn.Sequential\n\n"
IF_SENDING = "            if sending is not None:\n"
