"""Right solutions of pipeline_parallel.py that are written differently. Each differs in many places at once."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Variant

SPLITS_BY_HAND = (
    Edit(text.PIECES, "    return list(batch.tensor_split(num_microbatches))\n"),
    Edit(
        text.RANGES,
        "    size, rest = divmod(num_layers, num_stages)\n"
        "    starts = [stage * size + min(stage, rest) for stage in range(num_stages + 1)]\n"
        "    return [range(start, end) for start, end in zip(starts, starts[1:])]\n",
    ),
)
BLOCKING_MESSAGES = (
    Edit(
        text.MESSAGE,
        "        if stage.overlap:\n"
        "            start = dist.isend if action.kind in SEND_KINDS else dist.irecv\n"
        "            self.in_flight[action] = (start(buffer, peer, group=stage.group), buffer)\n"
        "        else:\n"
        "            move = dist.send if action.kind in SEND_KINDS else dist.recv\n"
        "            move(buffer, peer, group=stage.group)\n"
        "            self.in_flight[action] = (None, buffer)\n",
    ),
    Edit(
        text.COMPLETE,
        "        work, buffer = self.in_flight.pop(action)\n        if work is not None:\n            work.wait()\n",
    ),
)
LAYERS_ONE_BY_ONE = (
    Edit(
        text.LAYERS,
        "        x = self.entering(k)\n"
        "        for layer in self.stage.layers:\n"
        "            x = layer(x)\n"
        "        self.outputs[k] = x\n",
    ),
)
RESULTS_FILLED = (
    Edit(
        text.OUTPUT,
        "        first = run.outputs[0]\n"
        "        whole = torch.empty(num_rows, *first.shape[1:], dtype=first.dtype, device=first.device)\n"
        "        for k, rows in enumerate(split_microbatches(whole, self.num_microbatches)):\n"
        "            rows.copy_(run.outputs[k])\n"
        "        return whole\n",
    ),
    Edit(
        text.LOSSES,
        "        if not self.is_last:\n"
        "            return None\n"
        "        losses = torch.empty(len(run.losses), dtype=run.losses[0].dtype)\n"
        "        for k, loss in enumerate(run.losses):\n"
        "            losses[k] = loss\n"
        "        return losses\n",
    ),
)
SPLIT_BY_SIZES = (Edit(text.PIECES, "    return list(batch.split([len(rows) for rows in pieces]))\n"),)
BATCHED_MESSAGES = (
    Edit(
        text.MESSAGE,
        "        start = dist.isend if action.kind in SEND_KINDS else dist.irecv\n"
        "        to = stage.stage + 1 if action.kind in NEXT_KINDS else stage.stage - 1\n"
        "        message = dist.P2POp(start, buffer, group=stage.group, group_peer=to)\n"
        "        (work,) = dist.batch_isend_irecv([message])\n"
        "        self.in_flight[action] = (work, buffer)\n",
    ),
)
WEIGHTED_LOSS = (
    Edit(text.LOSS, text.LOSS + "            self.outputs[k] = self.outputs[k] * (self.rows[k] / self.num_rows)\n"),
    Edit(text.WEIGHT, "torch.ones_like(output)"),
)
ACTIVATIONS_COPIED = (
    Edit(text.RECEIVED, "return self.inputs[k] * 1 if self.training else self.inputs.pop(k).clone()"),
    Edit(text.SENT_ACTIVATION, "self.outputs[k].detach().clone(memory_format=torch.contiguous_format)"),
)
GRADIENTS_ASKED_FOR = (
    Edit(
        text.BACKWARD_CALL,
        "        entered = [] if self.stage.is_first else [self.inputs[k]]\n"
        "        own = [each for each in self.stage.parameters() if each.requires_grad]\n"
        "        if output.requires_grad:\n"
        "            found = torch.autograd.grad(output, [*entered, *own], gradient)\n"
        "            for each, added in zip(own, found[len(entered) :]):\n"
        "                each.grad = added.clone() if each.grad is None else each.grad + added\n",
    ),
    Edit(text.INPUT_GRADIENT, "            self.inputs.pop(k)\n            self.input_gradients[k] = found[0]\n"),
)
LOSSES_IN_BACKWARD = (
    Edit(
        "        if self.loss_fn is not None and self.stage.is_last:\n"
        "            self.outputs[k] = self.loss_fn(self.outputs[k], self.target[k].to(self.stage.device))\n"
        + text.LOSS,
        "",
    ),
    Edit(
        text.BACKWARD,
        text.BACKWARD + "        if self.stage.is_last:\n"
        "            output = self.loss_fn(output, self.target[k])\n"
        "            self.losses.append(output.detach())\n",
    ),
)
SENDS_AWAITED_AT_THE_END = (
    Edit(
        "    sending: Action | None = None  # the send that is not waited for yet\n", "    sends: list[Action] = []\n"
    ),
    Edit(
        "            if sending is not None:\n"
        '                steps.append(Step("wait", sending))\n'
        "                sending = None\n",
        "",
    ),
    Edit("            sending = action\n", "            sends.append(action)\n"),
    Edit(
        '    if sending is not None:\n        steps.append(Step("wait", sending))\n    return steps\n',
        '    return steps + [Step("wait", send) for send in sends]\n',
    ),
)

TAGS = (Edit(text.MESSAGE, text.MESSAGE.replace("group=stage.group)", "group=stage.group, tag=2 * k)")),)
POLLS = (
    Edit(
        text.COMPLETE,
        text.COMPLETE.replace("work.wait()", "while not work.is_completed():\n            pass"),
    ),
)
RECEIVES_AWAITED_FIRST = (
    Edit(
        text.STEPS_CHOSEN,
        text.STEPS_CHOSEN + "        if self.stage.overlap:  # before what was computed is sent\n"
        "            received = [Kind.RECEIVE_ACTIVATION, Kind.RECEIVE_GRADIENT]\n"
        "            for wait in [one for one in steps if one.verb == 'wait' and one.action.kind in received]:\n"
        "                kind, k = wait.action\n"
        "                if k > 0:\n"
        "                    before = Action(COMPUTE_KINDS[received.index(kind)], k - 1)\n"
        "                    steps.remove(wait)\n"
        "                    steps.insert(steps.index(Step('compute', before)) + 1, wait)\n",
    ),
)

VARIANTS: list[Variant] = [
    Variant(
        "with_loops",
        "splits by hand and with tensor_split, uses send and recv, calls layer by layer, and fills the results in",
        (*SPLITS_BY_HAND, *BLOCKING_MESSAGES, *LAYERS_ONE_BY_ONE, *RESULTS_FILLED),
    ),
    Variant(
        "with_batches_and_copies",
        "splits by sizes, uses batch_isend_irecv, weighs the loss in the graph, and copies all activations",
        (*SPLIT_BY_SIZES, *BATCHED_MESSAGES, *WEIGHTED_LOSS, *ACTIVATIONS_COPIED),
    ),
    Variant(
        "with_autograd_grad",
        "adds gradients of autograd.grad up, computes losses when their backward comes, and waits for sends at the end",
        (*GRADIENTS_ASKED_FOR, *LOSSES_IN_BACKWARD, *SENDS_AWAITED_AT_THE_END),
    ),
    Variant(
        "with_tags_and_polls",
        "gives each message a tag, asks again and again whether it is there, and waits for receives before it sends",
        (*TAGS, *POLLS, *RECEIVES_AWAITED_FIRST),
    ),
]
