"""Wrong forwards of PipelineStage, with and without overlap."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails

FORWARDS = [
    Mutant(
        "last_microbatch_only",
        "returns the output of the last microbatch alone",
        (Edit(text.OUTPUT, "        return run.outputs[self.num_microbatches - 1].detach()\n"),),
        fails("forward_only", "overlap_results"),
    ),
    Mutant(
        "outputs_in_reverse",
        "puts the microbatches together from the last to the first",
        (Edit(text.OUTPUT, text.OUTPUT.replace("in range(self.num_microbatches)", "in reversed(run.outputs)")),),
        fails("forward_only", "overlap_results", "odd_worlds"),
    ),
    Mutant(
        "output_in_autograd",
        "keeps the graph of the output",
        (
            Edit("with torch.set_grad_enabled(self.training):", "with torch.set_grad_enabled(True):"),
            Edit(text.OUTPUT, text.OUTPUT.replace(".detach()", "")),
        ),
        fails("forward_only"),
    ),
    Mutant(
        "output_on_every_stage",
        "returns something on every stage",
        (
            Edit(
                "        if not self.is_last:\n            return None\n",
                "        if not self.is_last:\n            return torch.zeros(num_rows)\n",
            ),
        ),
        fails("forward_only"),
    ),
    Mutant(
        "one_microbatch",
        "sends the whole batch through at once",
        (
            Edit("        self.num_microbatches = num_microbatches\n", "        self.num_microbatches = 1\n"),
            Edit(text.TOO_FEW_ROWS, "        if num_rows < stage.given:\n"),
            Edit(
                "        self.layers = layers\n",
                "        self.layers = layers\n        self.given = num_microbatches\n",
            ),
        ),
        fails("forward_only", "train_step", "losses"),
    ),
    Mutant(
        "layers_copied",
        "keeps a copy of the layers, which the optimizer does not know",
        (
            Edit("        self.layers = layers\n", "        self.layers = copy.deepcopy(layers)\n"),
            Edit("from typing import Literal, NamedTuple\n", "import copy\nfrom typing import Literal, NamedTuple\n"),
        ),
        fails("forward_only", "train_step", "training"),
    ),
    Mutant(
        "batch_read_everywhere",
        "looks at the batch on every stage that is passed one",
        (Edit(text.BATCH, text.BATCH.replace("if stage.is_first else", "if batch is not None else")),),
        fails("forward_only"),
    ),
    Mutant(
        "batch_not_copied",
        "hands the rows of the batch to layers that change them",
        (Edit(text.BATCH_ROWS, "return self.batch[k].to(self.stage.device)"),),
        fails("in_place_layers"),
    ),
    Mutant(
        "leaf_not_copied",
        "hands the received leaf to layers that act in place",
        (Edit(text.RECEIVED, "return self.inputs[k] if self.training else self.inputs.pop(k)"),),
        fails("in_place_layers"),
    ),
    Mutant(
        "leaf_not_copied_with_overlap",
        "the same with overlap=True only",
        (
            Edit(
                text.RECEIVED,
                "if self.stage.overlap and self.training:\n            return self.inputs[k]\n        " + text.RECEIVED,
            ),
        ),
        fails("overlap_any_layers"),
    ),
    Mutant(
        "prefetch_of_the_wrong_size",
        "posts the next receive with the size of the microbatch under way",
        (
            Edit(
                text.RECEIVE_BUFFER,
                "            size = self.rows[max(k - 1, 0) if stage.overlap else k]\n"
                + text.RECEIVE_BUFFER.replace("self.rows[k]", "size"),
            ),
        ),
        fails("overlap_results"),
    ),
    Mutant(
        "sizes_of_the_first_call",
        "uses the number of rows of the first call for ever",
        (Edit(text.ROWS, '        self.rows = stage.__dict__.setdefault("rows", piece_sizes(num_rows, m))\n'),),
        fails("odd_worlds", "accumulation"),
    ),
    Mutant(
        "four_stages_at_most",
        "takes the fourth stage for the last",
        (Edit(text.ENDS, text.ENDS.replace("self.num_stages - 1", "min(self.num_stages, 4) - 1")),),
        fails("odd_worlds", "overlap_any_layers"),
    ),
]
