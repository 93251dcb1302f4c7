"""The messages of data_parallel.py's checks say what the student did: the chief classic mistakes, by their number."""

from __future__ import annotations

import pytest

from grader.checking import Explanation
from grader.world import Launcher
from tests.harness import mutation

CHECKS = mutation.checks()
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("data_parallel")}

# mutant, check, words of the first line
FIRST_LINES = [
    (
        "parameters_not_broadcast",
        "wrapper",
        "'weight' after NaiveDDP(module)",
        "rank's own values",
        "was not sent",
    ),  # 23
    ("parameters_not_broadcast", "flat_training", "each rank's own weights and buffers", "nothing was broadcast"),
    (
        "buffers_not_broadcast",
        "broadcast_module",
        "the buffer 'count'",
        "this rank's own values",
        "it was not sent",
    ),  # 24
    ("buffers_not_broadcast", "naive_training", "each rank's own buffers"),
    ("sum_without_average", "flat_gradients", "the sum over the ranks", "too large by 4, the world size"),  # 25
    ("sum_without_average", "naive_training", "the sum of the gradients", "too large by 4, the world size"),
    ("divided_by_2", "naive_trainable", "divided by 2, where the world size is 3"),  # 26
    ("average_divided_again", "naive_gradients", "divided by the world size once more"),  # 27
    ("loss_scale_of_own_rows", "loss_scale", "this rank's own rows", "a mean of means"),  # 28
    ("parameters_reduced_instead_of_gradients", "naive_gradients", "the mean of the parameters over the ranks"),  # 29
    ("waits_in_the_hook", "overlapped_in_flight", "rank 0 waits for its all-reduce inside backward"),  # 30
    ("waits_for_the_one_before", "bucketed_in_flight", "rank 0 waits for its all-reduce inside backward"),
    ("only_fakes_asynchrony", "bucketed_in_flight", "with async_op=True and waits for it at once, inside backward"),
    ("rank_1_waits_in_the_hook", "overlapped_in_flight", "rank 1 issues its all-reduce", "waits for it at once"),
    (
        "asks_in_the_hook_until_it_is_done",
        "overlapped_in_flight",
        "rank 0 asks again and again for all_reduce before it has computed the gradient of its first layer",
    ),
    ("sends_everything_after_backward", "overlapped_in_flight", "rank 0 sends nothing during backward"),  # 31
    ("sends_when_the_last_gradient_is_there", "bucketed_in_flight", "when backward has computed its last gradient"),
    ("sends_the_first_alone_during_backward", "overlapped_in_flight", "the all-reduce of 'layer 4' too late"),
    ("missing_gradient_is_an_error", "naive_missing_gradients", "a .grad that is None counts as zeros"),  # 32
    ("missing_gradient_is_skipped", "naive_missing_gradients", "leaves out 1 of the 5 all-reduces that are due"),  # 33
    ("frozen_gradients_are_averaged", "naive_trainable", "frozen at construction", "it was averaged"),  # 34
    ("only_the_first_step_is_synchronized", "naive_gradients", "not averaged in this step"),  # 35
    ("last_bucket_is_lost", "plan_buckets", "all buckets but the last"),  # 36
    ("buckets_in_elements", "plan_buckets", "count elements, not bytes"),  # 37
    ("first_bucket_is_empty", "plan_buckets", "an empty bucket"),  # 38
    ("counters_are_not_reset", "overlapped_gradients", "the gradient of the step before"),  # 39
    (
        "flat_list_of_gradients_that_exist",
        "flat_missing_gradients",
        "issues an all-reduce of float32, 18 elements, which is not due",
    ),  # 40
    ("wrapper_is_no_module", "wrapper", "NaiveDDP(module) is no nn.Module"),  # 41
    ("shard_pads_with_duplicates", "shard_batch", "rows of the beginning once more", "count twice"),  # 42
    ("loss_scale_of_rank_0", "loss_scale", "the rows of rank 0"),  # 43
    ("mean_over_those_that_have_one", "naive_missing_gradients", "the ranks that have a gradient, not over all 2"),
    ("issued_in_the_order_of_readiness", "overlapped_gradients", "different parameters met", "'b' of rank 1"),
    ("naive_sends_all_at_once", "naive_gradients", "synchronize_gradients() of NaiveDDP", "1 all-reduce, not 5"),
    ("flat_sends_one_by_one", "flat_gradients", "synchronize_gradients() of FlatDDP", "5 all-reduces, not 1"),
    ("overlapped_in_the_order_of_the_parameters", "overlapped_gradients", "its all-reduces in the wrong order"),
    ("buckets_are_sent_one_by_one", "bucketed_gradients", "issues 5 all-reduces, not 2"),
    ("sent_inside_no_sync_and_dropped", "overlapped_accumulation", "calls all_reduce inside no_sync()"),
    ("no_sync_begins_with_a_barrier", "naive_no_sync", "calls barrier inside no_sync()"),
    ("barrier_of_the_whole_world", "groups", "making NaiveDDP", "calls barrier in the wrong group"),
    ("tied_weights_are_broadcast_twice", "broadcast_module", "some memory is sent twice"),
]


def explanation(mutant: str, check: str, launcher: Launcher) -> Explanation:
    submission = mutation.edited("data_parallel", MUTANTS[mutant])
    told = mutation.verdict_of(CHECKS[f"data_parallel.{check}"], submission, launcher).explanation
    assert told is not None, f"{mutant} passes {check}"
    return told


@pytest.mark.parametrize(("mutant", "check", "words"), [(one, name, words) for one, name, *words in FIRST_LINES])
def test_the_first_line_says_what_was_done(mutant: str, check: str, words: list[str], launcher: Launcher) -> None:
    told = explanation(mutant, check, launcher)
    assert all(word in told.rationale for word in words), told
    assert told.help, told
    assert sum(len(text) for text in (told.rationale, told.expected, told.actual, told.where, told.help)) < 2000


def test_the_help_tells_which_gradients_are_right(launcher: Launcher) -> None:
    told = explanation("last_bucket_is_lost", "bucketed_gradients", launcher)
    assert "'a'" in told.rationale
    assert told.help.endswith("on this rank right: 'b', 'c', 'd', 'e'")


def test_the_help_tells_of_a_layout(launcher: Launcher) -> None:
    told = explanation("reduced_gradient_is_written_to_a_copy", "naive_trainable", launcher)
    assert "laid out by columns in memory" in told.rationale
    assert "reshape(-1)" in told.help
