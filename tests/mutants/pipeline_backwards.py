"""Wrong backwards, gradients and losses of PipelineStage, and what it leaves behind."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails

BACKWARDS = [
    Mutant(
        "sum_of_losses",
        "adds the losses of the microbatches up without weights",
        (Edit(text.WEIGHT, "torch.ones_like(output)"),),
        fails("train_step", "accumulation", "training", "overlap_results"),
        mistake=62,
    ),
    Mutant(
        "mean_over_microbatches",
        "gives each microbatch the weight 1 / m, whatever its rows",
        (Edit(text.WEIGHT, "torch.full_like(output, 1 / len(self.rows))"),),
        fails("uneven_rows", "uneven_training", "odd_worlds"),
        mistake=62,
    ),
    Mutant(
        "sum_with_overlap",
        "forgets the weights with overlap=True",
        (Edit(text.WEIGHT, text.WEIGHT.replace("self.rows[k] /", "1.0 if self.stage.overlap else self.rows[k] /")),),
        fails("overlap_results", "uneven_training"),
        mistake=62,
    ),
    Mutant(
        "activation_without_gradient",
        "receives activations into tensors that require no gradient, and sends zeros back",
        (Edit(text.LEAF, "self.inputs[action.microbatch] = buffer"),),
        fails("train_step", "accumulation", "training"),
        mistake=60,
    ),
    Mutant(
        "gradient_of_nothing_is_sent",
        "receives activations into tensors that require no gradient, and sends their .grad",
        (
            Edit(text.LEAF, "self.inputs[action.microbatch] = buffer"),
            Edit(text.INPUT_GRADIENT, "            self.input_gradients[k] = self.inputs.pop(k).grad\n"),
        ),
        fails("train_step", "in_place_layers"),
        mistake=60,
    ),
    Mutant(
        "one_receive_buffer",
        "receives all microbatches into the same memory, which backward still needs",
        (
            Edit(
                text.RECEIVE_BUFFER,
                '            if "buffer" not in vars(self):\n    '
                + text.RECEIVE_BUFFER.replace("buffer = ", "self.buffer = ")
                + "            buffer = self.buffer[: self.rows[k]]\n",
            ),
            Edit(text.RECEIVED, "return self.inputs[k] if self.training else self.inputs.pop(k)"),
        ),
        fails("train_step", "training"),
        mistake=61,
    ),
    Mutant(
        "one_receive_buffer_and_one_leaf",
        "receives all microbatches into one leaf, whose gradient adds up",
        (
            Edit(
                text.RECEIVE_BUFFER,
                '            if "buffer" not in vars(self):\n    '
                + text.RECEIVE_BUFFER.replace("buffer = ", "self.buffer = ")
                + "            buffer = self.buffer.detach() if self.rows[k] != len(self.buffer) else self.buffer\n",
            ),
        ),
        fails("train_step"),
        mistake=61,
    ),
    Mutant(
        "cleared_between_microbatches",
        "clears the gradients before each microbatch's backward",
        (Edit(text.BACKWARD, text.BACKWARD + "        self.stage.zero_grad()\n"),),
        fails("train_step", "accumulation", "training"),
        mistake=63,
    ),
    Mutant(
        "cleared_at_the_start",
        "train_step clears the gradients first",
        (Edit(text.TRAIN_RUN, "        self.zero_grad()\n" + text.TRAIN_RUN),),
        fails("accumulation"),
        mistake=63,
    ),
    Mutant(
        "losses_with_weights",
        "returns losses that are weighted by rows",
        (Edit(text.LOSS, text.LOSS.replace(".detach())", ".detach() * self.rows[k] / self.num_rows)")),),
        fails("losses", "uneven_rows"),
    ),
    Mutant(
        "losses_in_autograd",
        "returns losses with their graphs",
        (Edit(text.LOSS, text.LOSS.replace(".detach()", "")),),
        fails("losses", "odd_worlds"),
    ),
    Mutant(
        "list_of_losses",
        "returns a list of losses",
        (Edit(text.LOSSES, text.LOSSES.replace("torch.stack(run.losses)", "run.losses")),),
        fails("losses"),
    ),
    Mutant(
        "mean_of_losses",
        "returns one loss",
        (Edit(text.LOSSES, text.LOSSES.replace("(run.losses)", "(run.losses).mean()")),),
        fails("losses"),
    ),
    Mutant(
        "losses_on_every_stage",
        "returns zeros where there are no losses",
        (Edit(text.LOSSES, text.LOSSES.replace("else None", "else torch.zeros(self.num_microbatches)")),),
        fails("losses"),
    ),
    Mutant(
        "every_output_has_a_graph",
        "goes backward through outputs that no parameter has entered",
        (Edit(text.BACKWARD_CALL, "        torch.autograd.backward(output, gradient)\n"),),
        fails("stages_without_parameters"),
    ),
    Mutant(
        "frozen_parameters_thawed",
        "makes every parameter require a gradient",
        (Edit("        self.layers = layers\n", "        self.layers = layers.requires_grad_()\n"),),
        fails("stages_without_parameters", "overlap_any_layers"),
    ),
]

LEFT_BEHIND = [
    Mutant(
        "activations_kept",
        "forward_only keeps every activation that it has received until it returns",
        (Edit(text.RECEIVED, "return self.inputs[k].clone() if self.training else self.inputs[k]"),),
        fails("holds_nothing"),
    ),
    Mutant(
        "copies_of_activations_kept",
        "forward_only keeps copies of the activations, for a look at them",
        (
            Edit(
                text.RECEIVED,
                "self.seen = [*vars(self).get('seen', []), self.inputs[k].clone()]\n        " + text.RECEIVED,
            ),
        ),
        fails("holds_nothing"),
    ),
    Mutant(
        "graphs_in_forward_only",
        "forward_only runs the layers as training does, and detaches the output",
        (Edit("with torch.set_grad_enabled(self.training):", "with torch.enable_grad():"),),
        fails("holds_nothing"),
    ),
    Mutant(
        "run_kept",
        "keeps all tensors of the last training step in the stage",
        (
            Edit(text.TRAIN_RUN, text.TRAIN_RUN + "        self.run = run\n"),
            Edit(text.INPUT_GRADIENT, text.INPUT_GRADIENT.replace("self.inputs.pop(k)", "self.inputs[k]")),
        ),
        fails("holds_nothing"),
    ),
    Mutant(
        "losses_kept",
        "keeps the losses with their graphs, for a report",
        (
            Edit(
                text.LOSS,
                text.LOSS + "            self.stage.__dict__.setdefault('history', []).append(self.outputs[k])\n",
            ),
        ),
        fails("holds_nothing"),
    ),
    Mutant(
        "outputs_kept",
        "keeps the outputs of forward_only",
        (Edit(text.OUTPUT, "        self.outputs = list(run.outputs.values())\n" + text.OUTPUT),),
        fails("holds_nothing"),
    ),
    Mutant(
        "messages_kept",
        "keeps what was sent in the stage",
        (Edit(text.COMPLETE, text.COMPLETE + '        self.stage.__dict__.setdefault("sent", []).append(buffer)\n'),),
        fails("holds_nothing"),
    ),
]
