"""Wrong messages of PipelineStage: peers, shapes, dtypes, and what nobody asked for."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails

MESSAGES = [
    Mutant(
        "number_of_rows_first",
        "each stage tells the next how many rows will come",
        (
            Edit(
                text.TOO_FEW_ROWS,
                "        told = torch.tensor([num_rows])\n"
                "        if not stage.is_first:\n"
                "            dist.recv(told, stage.ranks[stage.stage - 1], group=stage.group)\n"
                "        if not stage.is_last:\n"
                "            dist.send(told, stage.ranks[stage.stage + 1], group=stage.group)\n" + text.TOO_FEW_ROWS,
            ),
        ),
        fails("refused", "messages"),
    ),
    Mutant(
        "losses_sent_away",
        "the last stage sends its losses to the first, which does not wait for them",
        (
            Edit(
                text.LOSSES,
                "        if self.is_last and not self.is_first:\n"
                "            self.total = torch.tensor([num_rows])\n"
                "            self.work = dist.isend(self.total, self.ranks[0], group=self.group)\n" + text.LOSSES,
            ),
        ),
        fails("train_step"),
    ),
    Mutant(
        "last_message_to_the_first_stage",
        "the last stage tells the first that a pass of 8 microbatches is over",
        (
            Edit(
                text.LOSSES,
                "        if self.is_last and not self.is_first and self.num_microbatches == 8:\n"
                "            self.total = torch.tensor([num_rows])\n"
                "            self.work = dist.isend(self.total, self.ranks[0], group=self.group)\n" + text.LOSSES,
            ),
        ),
        fails("losses"),
    ),
    Mutant(
        "rank_of_the_world",
        "takes its rank in the world for its stage",
        (Edit("stage = dist.get_rank(group)", "stage = dist.get_rank()"),),
        fails("sub_group"),
    ),
    Mutant(
        "peers_by_stage",
        "sends to ranks in the group as if they were ranks of the world",
        (Edit(text.RANKS, "self.ranks = list(range(self.num_stages))"),),
        fails("sub_group"),
    ),
    Mutant(
        "outsiders_welcome",
        "makes a stage on a rank outside the group too",
        (
            Edit(text.OUTSIDE, "        if stage < -1:\n"),
            Edit(text.RANKS, "self.ranks = [] if stage < 0 else dist.get_process_group_ranks(group)"),
        ),
        fails("sub_group"),
    ),
    Mutant(
        "activations_not_contiguous",
        "sends activations as they lie in memory",
        (Edit(text.SENT_ACTIVATION, text.SENT_ACTIVATION.removesuffix(".contiguous()")),),
        fails("shapes", "overlap_any_layers"),
    ),
    Mutant(
        "gradients_not_contiguous",
        "sends gradients as autograd.grad gives them",
        (
            Edit("buffer = self.input_gradients.pop(k).contiguous()", "buffer = self.input_gradients.pop(k)"),
            Edit(
                text.BACKWARD_CALL,
                "        entered = [] if self.stage.is_first else [self.inputs[k]]\n"
                "        own = [each for each in self.stage.parameters() if each.requires_grad]\n"
                "        if output.requires_grad:\n"
                "            found = torch.autograd.grad(output, [*entered, *own], gradient)\n"
                "            for each, added in zip(own, found[len(entered) :]):\n"
                "                each.grad = added.clone() if each.grad is None else each.grad + added\n",
            ),
            Edit(
                text.INPUT_GRADIENT,
                "            self.inputs.pop(k)\n            self.input_gradients[k] = found[0]\n",
            ),
        ),
        fails("shapes"),
    ),
    Mutant(
        "float32_received",
        "receives activations as float32 whatever their dtype",
        (Edit(text.RECEIVE_BUFFER, text.RECEIVE_BUFFER.replace("dtype=stage.dtype", "dtype=torch.float32")),),
        fails("dtypes", "training"),
    ),
    Mutant(
        "gradient_of_the_entering_dtype",
        "receives gradients in the dtype of what enters the stage, not of what leaves it",
        (
            Edit(
                text.GRADIENT_BUFFER,
                text.GRADIENT_BUFFER.replace("self.outputs[k].shape", "self.outputs[k].shape, dtype=stage.dtype"),
            ),
        ),
        fails("dtypes"),
    ),
    Mutant(
        "gradient_of_the_entering_shape",
        "receives gradients in the shape of what enters the stage",
        (
            Edit(
                text.GRADIENT_BUFFER,
                text.GRADIENT_BUFFER.replace("self.outputs[k].shape", "self.rows[k], *stage.input_shape"),
            ),
        ),
        fails("accumulation"),
    ),
    Mutant(
        "batch_as_floats",
        "turns the batch into floats",
        (
            Edit(
                text.BATCH_ROWS,
                "return self.batch[k].to(self.stage.device, torch.float32, copy=True)",
            ),
        ),
        fails("integers"),
    ),
    Mutant(
        "gradient_of_the_batch",
        "asks for a gradient of the batch, which whole numbers do not have",
        (Edit(text.BATCH_ROWS, text.BATCH_ROWS + ".requires_grad_(self.training)"),),
        fails("integers"),
    ),
    Mutant(
        "no_gradient_message_without_parameters",
        "a stage that has nothing to train sends no gradient, and its neighbour waits for one",
        (
            Edit(
                text.STEPS,
                text.STEPS
                + "                trained = any(each.requires_grad for each in self.stage.parameters())\n"
                + "                if action.kind is Kind.SEND_GRADIENT and not trained:\n"
                + "                    continue\n",
            ),
        ),
        fails("stages_without_parameters"),
    ),
]
