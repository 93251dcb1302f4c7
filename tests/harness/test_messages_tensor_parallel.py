"""The messages of tensor_parallel's checks name the classic mistakes: what the student did, in the first line."""

from __future__ import annotations

import pytest

from grader.world import Launcher
from tests.harness import mutation

CHECKS = mutation.checks()
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("tensor_parallel")}

SAID = [
    ("cat_of_rows", "gather_for_sharded", ("joined along dimension 0",)),
    ("gather_into_tensor_as_it_lies", "gather_for_replicated", ("one below the other",)),
    ("identical_shards", "linear_starts_from_one_master", ("ranks 0, 1, 2, 3 hold equal columns",)),
    ("load_takes_the_first_columns", "linear_loads_a_master", ("rank 1", "rank 0's columns")),
    ("all_gather_cuts_autograd", "mlp_is_the_unsplit_network", ("no weight gets a gradient", "autograd")),
    ("sharded_puts_its_own_back", "gather_for_sharded", ("this rank's own gradient alone", "not the sum")),
    ("copy_does_not_sum", "copy_to_shards", ("own part alone", "not the sum over the 2 ranks")),
    ("copy_takes_the_mean", "copy_to_shards", ("too small by 2, the world size",)),
    ("input_never_copied", "linear_gathers_its_output", ("the gradient of x", "own part alone")),
    ("chain_without_a_copy", "mlp_is_the_unsplit_network", ("the gradient of x", "own part alone")),
    ("replicated_sums", "gather_for_replicated", ("too large by 2, the world size",)),
    ("output_gathered_for_sharded", "linear_gathers_its_output", ("too large by 2, the world size",)),
    ("replicated_slices_the_first_columns", "linear_gathers_its_output", ("rank 1", "rank 0's columns")),
    ("sharded_sums_the_first_columns", "gather_for_sharded", ("rank 1", "rank 0's columns")),
    ("chain_of_replicated", "mlp_is_the_unsplit_network", ("slicing in every gather's backward",)),
    ("chain_of_sharded", "mlp_is_the_unsplit_network", ("a sum in every gather's backward", "the world size")),
    ("chain_that_copies_and_scatters", "mlp_is_the_unsplit_network", ("two sums over the ranks",)),
    ("copy_meets_in_forward", "copy_to_shards", ("calls barrier in forward", "nothing may be sent")),
    ("copy_gathers_all_gradients", "copy_to_shards", ("moves 4 times as much", "in backward")),
    ("copy_sums_over_all_ranks", "copy_to_shards_of_any_layout", ("rank 1", "ranks [1, 2]", "the wrong group")),
    ("copy_sums_where_needed", "linear_gathers_its_output", ("rank 1 calls", "rank 0 has gone on", "without it")),
    ("master_sent_by_rank_0_alone", "linear_loads_a_master", ("rank 0 waits in broadcast", "gone on without calling")),
    ("gathers_twice", "gather_for_sharded", ("moves 2 times as much", "in forward")),
    ("gathers_through_the_store", "gather_for_sharded", ("calls no operation of torch.distributed in forward",)),
    ("replicated_takes_the_mean", "gather_for_replicated", ("calls reduce_scatter in backward",)),
    ("refuses_after_the_gather", "gather_for_sharded_of_any_columns", ("calls all_gather before it raises",)),
    ("chain_averages_at_the_end", "mlp_is_the_unsplit_network", ("in backward, before the gradient of activation 3",)),
    ("chain_of_replicated", "mlp_trains_as_the_unsplit_network", ("slicing in every gather's backward",)),
]


@pytest.mark.parametrize(("name", "check", "words"), SAID, ids=[f"{name}-{check}" for name, check, _ in SAID])
def test_first_line_says_what_was_done(name: str, check: str, words: tuple[str, ...], launcher: Launcher) -> None:
    submission = mutation.edited("tensor_parallel", MUTANTS[name])
    verdict = mutation.verdict_of(CHECKS[f"tensor_parallel.{check}"], submission, launcher)
    assert verdict.explanation is not None, "the mutant fails the check"
    first_line = verdict.explanation.rationale
    assert all(word in first_line for word in words), first_line
    assert verdict.explanation.help


def test_where_nothing_is_sent_a_rank_that_goes_alone_is_stuck(launcher: Launcher) -> None:
    """The proof beside the account: rank 0 waits for others, who do not start before it is done."""
    submission = mutation.edited("tensor_parallel", MUTANTS["load_sends_the_master"])
    verdict = mutation.verdict_of(CHECKS["tensor_parallel.linear_loads_a_master"], submission, launcher)
    assert verdict.explanation is not None
    assert "load_master(float32 (3, 8)) calls broadcast" in verdict.explanation.rationale
    assert "rank 0 waits in broadcast" in verdict.explanation.where
