"""Arguments that PipelineStage does not refuse, or refuses too late."""

from __future__ import annotations

from tests.mutants import pipeline_texts as text
from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import fails

REFUSALS = [
    Mutant(
        "any_number_of_microbatches",
        "does not refuse fewer than one microbatch",
        (Edit(text.TOO_FEW_MICROBATCHES, "        if num_microbatches is None:\n"),),
        fails("refused"),
    ),
    Mutant(
        "any_number_of_rows",
        "does not refuse fewer rows than microbatches",
        (
            Edit(text.TOO_FEW_ROWS, "        if num_rows < 0:\n"),
            Edit("    if not 1 <= num_microbatches <= num_rows:\n", "    if not 1 <= num_microbatches:\n"),
        ),
        fails("refused"),
    ),
    Mutant(
        "rows_counted_on_the_first_stage",
        "only the first stage refuses fewer rows than microbatches",
        (Edit(text.TOO_FEW_ROWS, "        if num_rows < m and stage.is_first:\n"),),
        fails("refused"),
    ),
    Mutant(
        "missing_batch",
        "does not look whether the batch and the target are there",
        (Edit(text.MISSING, ""),),
        fails("refused"),
    ),
    Mutant(
        "any_batch",
        "does not count the rows of the batch and the target",
        (Edit(text.WRONG_ROWS, "    if rows.dim() == 0:\n"),),
        fails("refused"),
    ),
    Mutant(
        "assertions",
        "asserts in place of raising ValueError",
        (
            Edit(
                text.MISSING,
                "    assert rows is not None\n",
            ),
        ),
        fails("refused"),
    ),
    Mutant(
        "target_checked_late",
        "looks at the target when the first activation has come",
        (
            Edit(text.TARGET, "target\n"),
            Edit(
                "self.target[k].to(self.stage.device)",
                "_microbatches('target', self.target, self.num_rows, len(self.rows))[k]",
            ),
        ),
        fails("refused"),
    ),
]
