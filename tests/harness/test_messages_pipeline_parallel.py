"""The messages of pipeline_parallel's checks name the classic mistakes: what the student did, in the first line."""

from __future__ import annotations

import pytest

from grader.world import Launcher
from tests.harness import mutation

CHECKS = mutation.checks()
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("pipeline_parallel")}

SAID = [
    ("layers_left_out", "split_layers", ("leaves out layer 2 of 3",)),
    ("remainder_on_the_last_stage", "split_layers", ("1, 2 layers, not 2, 1",)),
    ("chunk", "split_microbatches", ("torch.chunk",)),
    ("activation_without_gradient", "train_step", ("all zeros", "no gradient came back from stage 1")),
    ("gradient_of_nothing_is_sent", "train_step", ("AttributeError",)),
    ("one_receive_buffer", "train_step", ("one receive buffer for all microbatches",)),
    ("one_receive_buffer", "training", ("one receive buffer for all microbatches",)),
    ("one_receive_buffer_and_one_leaf", "train_step", ("holds those of the earlier microbatches",)),
    ("sum_of_losses", "train_step", ("without weights", "too large by 2, num_microbatches")),
    ("sum_of_losses", "training", ("without weights",)),
    ("mean_over_microbatches", "uneven_rows", ("1 / num_microbatches each",)),
    ("cleared_between_microbatches", "train_step", ("the last microbatch's part alone",)),
    ("cleared_at_the_start", "accumulation", ("what .grad held before is gone",)),
    ("losses_with_weights", "losses", ("times their weights",)),
    ("last_microbatch_only", "forward_only", ("the output of microbatch 1 alone",)),
    ("chunk_decides_how_many_are_sent", "overlap_results", ("2 rows, not 1", "as torch.chunk splits")),
    ("blocking_1f1b", "train_step", ("its send of the gradient of microbatch 0", "1 of 2 activations")),
    ("float32_received", "training", ("receive of the activation of microbatch 0 as float32, not float64",)),
    ("rows_counted_on_the_first_stage", "refused", ("rank 1 waits for a message", "fewer rows than microbatches")),
    ("losses_broadcast", "messages", ("calls broadcast",)),
    ("losses_to_the_first_stage", "messages", ("receives 2 gradients from rank 1, not 1",)),
    ("isend_without_overlap", "messages", ("before it has waited for its send",)),
    ("messages_in_the_default_group", "sub_group", ("in the group of the ranks [0, 1, 2, 3]",)),
    ("no_overlap", "overlap", ("waits for its send", "no microbatch computed since it was posted")),
    ("prefetch_after_the_computation", "overlap", ("before it has posted its receive of the activation",)),
    ("prefetch_waited_for_at_once", "overlap", ("waits for its receive", "no microbatch computed")),
    ("told_apart_by_tags", "overlap", ("only tags tell the messages apart",)),
    ("activations_kept", "holds_nothing", ("holds 2 received activations", "begins the forward of microbatch 1")),
]


@pytest.mark.parametrize(("name", "check", "words"), SAID, ids=[f"{name}-{check}" for name, check, _ in SAID])
def test_first_line_says_what_was_done(name: str, check: str, words: tuple[str, ...], launcher: Launcher) -> None:
    submission = mutation.edited("pipeline_parallel", MUTANTS[name])
    verdict = mutation.verdict_of(CHECKS[f"pipeline_parallel.{check}"], submission, launcher)
    assert verdict.explanation is not None, "the mutant fails the check"
    first_line = verdict.explanation.rationale
    assert all(word in first_line for word in words), first_line
    assert verdict.explanation.help
