"""Wrong splits and schedules of pipeline_parallel.py."""

from __future__ import annotations

from tests.mutants.mutant import Edit, Mutant
from tests.mutants.pipeline_texts import BACKWARDS, PIECES, RANGES, ROWS, SCHEDULE_OF_NONE, STEPS, fails

SPLITS = [
    Mutant(
        "layers_left_out",
        "divides with // and leaves the remainder out",
        (
            Edit(
                RANGES,
                "    n = num_layers // num_stages\n    return [range(s * n, s * n + n) for s in range(num_stages)]\n",
            ),
        ),
        fails("split_layers"),
        mistake=65,
    ),
    Mutant(
        "remainder_on_the_last_stage",
        "gives the last stage all that is left over",
        (
            Edit(
                RANGES,
                "    n = num_layers // num_stages\n"
                "    ends = [*range(n, n * num_stages, n), num_layers]\n"
                "    return [range(s * n, end) for s, end in enumerate(ends)]\n",
            ),
        ),
        fails("split_layers"),
        mistake=65,
    ),
    Mutant(
        "lists_of_layers",
        "returns lists in place of ranges",
        (
            Edit(
                RANGES, RANGES.replace("[piece_range", "[[*piece_range").replace("num_stages) for", "num_stages)] for")
            ),
        ),
        fails("split_layers"),
    ),
    Mutant(
        "stages_without_layers",
        "does not refuse fewer layers than stages",
        (Edit("    if num_layers < num_stages:\n", "    if num_layers < 0:\n"),),
        fails("split_layers"),
    ),
    Mutant(
        "chunk",
        "splits with chunk, which may give fewer microbatches",
        (Edit(PIECES, "    return list(batch.chunk(len(pieces)))\n"),),
        fails("split_microbatches", "uneven_rows"),
        mistake=59,
    ),
    Mutant(
        "chunk_decides_how_many_are_sent",
        "the first stage sends as many microbatches as chunk gives, and the next waits for more",
        (
            Edit(PIECES, "    return list(batch.chunk(len(pieces)))\n"),
            Edit(ROWS, "        self.rows = [*map(len, torch.empty(num_rows).chunk(m)), *[1] * m][:m]\n"),
            Edit(STEPS, STEPS + "                if stage_skips(self, action):\n                    continue\n"),
            Edit(
                "class _Run:\n",
                "def stage_skips(run, action):\n"
                "    return run.stage.is_first and action.microbatch >= len(run.batch)\n\n\nclass _Run:\n",
            ),
        ),
        fails("overlap_results"),
        mistake=59,
    ),
    Mutant(
        "microbatches_copied",
        "copies the rows",
        (Edit(PIECES, PIECES.replace("rows.stop]", "rows.stop].clone()")),),
        fails("split_microbatches"),
    ),
    Mutant(
        "more_microbatches_than_rows",
        "returns empty microbatches where there are too few rows",
        (Edit("    if not 1 <= num_microbatches <= num_rows:\n", "    if not 1 <= num_microbatches:\n"),),
        fails("split_microbatches"),
    ),
    Mutant(
        "every_mth_row",
        "deals the rows out like cards",
        (Edit(PIECES, "    return [batch[k :: len(pieces)] for k in range(len(pieces))]\n"),),
        fails("split_microbatches", "forward_only"),
    ),
]

SCHEDULES = [
    Mutant(
        "backwards_in_reverse",
        "runs the backwards from the last microbatch to the first",
        (Edit(BACKWARDS, BACKWARDS.replace("in range(num_microbatches)", "in reversed(range(num_microbatches))")),),
        fails("gpipe_schedule"),
    ),
    Mutant(
        "blocking_1f1b",
        "the last stage goes backward at once and sends, while the others still send forward",
        (
            Edit(
                BACKWARDS,
                "    if not has_next:\n"
                "        kinds = [Kind.RECEIVE_ACTIVATION, Kind.FORWARD, Kind.BACKWARD, Kind.SEND_GRADIENT]\n"
                "        kinds = kinds if has_previous else kinds[1:3]\n"
                "        return [Action(kind, k) for k in range(num_microbatches) for kind in kinds]\n" + BACKWARDS,
            ),
        ),
        fails("train_step"),
        mistake=64,
    ),
    Mutant(
        "schedule_of_1f1b_on_the_last_stage",
        "the last stage goes backward after each forward",
        (
            Edit(
                BACKWARDS,
                "    if not has_next:\n"
                "        schedule.sort(key=lambda action: action.microbatch)\n"
                "        kinds = [Kind.BACKWARD, Kind.SEND_GRADIENT] if has_previous else [Kind.BACKWARD]\n"
                "        schedule += [Action(kind, k) for k in range(num_microbatches) for kind in kinds]\n"
                "        return sorted(schedule, key=lambda action: action.microbatch)\n" + BACKWARDS,
            ),
        ),
        fails("gpipe_schedule"),
        mistake=64,
    ),
    Mutant(
        "all_receives_first",
        "receives all activations before the first forward",
        (
            Edit(
                "    for k in range(num_microbatches):\n        if has_previous:\n",
                "    if has_previous:\n"
                "        schedule = [Action(Kind.RECEIVE_ACTIVATION, k) for k in range(num_microbatches)]\n"
                "    for k in range(num_microbatches):\n        if False:\n",
            ),
        ),
        fails("gpipe_schedule"),
    ),
    Mutant(
        "first_stage_sends_a_gradient",
        "sends a gradient from the first stage",
        (
            Edit(
                "        if has_previous:\n            schedule.append(Action(Kind.SEND_GRADIENT, k))\n",
                "        schedule.append(Action(Kind.SEND_GRADIENT, k))\n",
            ),
        ),
        fails("gpipe_schedule"),
    ),
    Mutant(
        "strings_for_actions",
        "returns text",
        (Edit("    return schedule\n", "    return [repr(action) for action in schedule]\n"),),
        fails("gpipe_schedule"),
    ),
    Mutant(
        "any_stage",
        "does not refuse a stage out of range",
        (Edit("    if not 0 <= stage < num_stages:\n", "    if stage < 0:\n"),),
        fails("gpipe_schedule"),
    ),
    Mutant(
        "no_microbatch",
        "does not refuse a schedule without microbatches",
        (Edit(SCHEDULE_OF_NONE, "\n    if num_microbatches is None:\n"),),
        fails("gpipe_schedule"),
    ),
]
