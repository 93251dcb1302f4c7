"""The first line of a failed check of collectives.py says what the student did."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from grader.world import Launcher
from grader.world.values import ReturnedTensor
from tests.harness import mutation
from tests.public.oracles import collectives as oracle
from tests.public.runs.call_told import entry_told, result_told
from tests.public.runs.calls import Call
from tests.public.runs.origins import Source, moved
from tests.public.runs.reductions import reduced_wrongly

CHECKS = mutation.checks()
MUTANTS = {mutant.name: mutant for mutant in mutation.mutants_of("collectives")}
FIRST_LINES = {
    "root_is_always_0": "rank 0: broadcast(src=1, float32 (4,)) gave rank 0's tensor, not rank 1's tensor",
    "scatters_from_rank_0": "rank 0 is the source and passed None; expected a tensor there (in a world of 2, src=1",
    "gathers_on_rank_0": "rank 0: gather(dst=1, float32 (4,)) returned the result, which only rank 1 is to have",
    "partial_sums_off_the_root": "rank 1: reduce(dst=0) returned its own argument, where ranks other than dst return",
    "ring_off_by_one": "gave rank 1's piece of the SUM, not rank 0's piece of the SUM",
    "gather_ring_off_by_one": "gave NaN, not rank 0's piece, then rank 1's piece",
    "own_piece_counts_twice": "gave a sum that counts ranks 2 and 3 twice",
    "scatter_drops_the_rest": "gave rows 0 to 1 of rank 0's tensor, not rows 0 to 2",
    "reduce_scatter_drops_the_rest": "gave rows 0 to 1 of rank 0's piece of the SUM, not all",
    "all_reduce_leaves_the_tail": "own numbers, reduced with nobody's, in 1 of 15 elements (number 14)",
    "own_piece_is_not_written": "gave NaN, not rank 0's piece",
    "reduces_in_place": "reduce(dst=0) changed its argument, which holds the result now",
    "all_reduces_the_argument": "works on its argument, not on a copy",
    "unreduced_original_returned": "(every other element of a wider one)) gave this rank's own numbers, reduced with",
    "everything_to_everyone": "gave rank 0's rows, then rank 1's rows, not rows 1 to 2 of rank 0, then rows 1, 3, 5",
    "result_of_an_operation_in_place": "rank 0: all_reduce(float32 (4,)) returned None",
    "average_is_the_sum": "gave the sum over the ranks, not their mean: too large by 2, the world size",
    "average_over_the_world": "gave the sum divided by 3, the size of the world, where the group has 2 ranks",
    "all_reduce_on_rank_0": "goes through rank 0, which gets every rank's numbers and sends the result to all",
    "all_reduce_along_a_chain": "all_reduce(float32 (4,)) sends 32 bytes, 2 times a whole tensor, where 24 will do",
    "all_reduce_in_float64": "all_reduce(float32 (4,)) sends 32 bytes of float64, not float32, where 16 will do",
    "one_step_too_many": "rank 0: all_gather(float32 (40, 4)) sends in 2 steps, where 1 will do",
    "gathers_both_ways": "sends to both of its neighbours in the ring",
    "all_gather_by_all_to_all": "sends to rank 2, which is not its neighbour in the ring",
    "wraps_the_collective_of_torch": "calls all_reduce of torch, where messages between two ranks alone are allowed",
    "collective_in_a_thread": "calls all_reduce of torch, where messages between two ranks alone are allowed",
    "broadcast_through_the_store": "receives 0 bytes in messages, fewer than its result needs",
    "scatter_by_broadcast": "rank 0: scatter(src=0, float64 (8, 3)) sends 192 bytes, where 96 will do",
    "reduces_in_the_world": "asks the group of ranks [0, 1, 2] for recv, not the group that it is called with",
    "sends_all_pieces_to_each": "sends 96 bytes to rank 1, whose piece has 48",
    "all_reduce_sends_before_it_checks": "asked for send to rank 1, recv from rank 2",
    "all_send_first": "ranks 0 and 1 wait for each other: rank 0 waits in send to rank 1, rank 1 waits in send",
    "sends_are_not_waited_for": "never waits for the handle of its isend to rank",
    "group_made_by_its_members": "disagree on the members of a new group: [",
    "gather_expects_equal_lengths": "disagree on the length of a message",
    "received_as_float32": "ranks 0 and 1 disagree on the dtype of a message: rank 0 sends float64 (8, 3), rank 1 "
    "receives float32 (8, 3)",
    "never_waits": "never waits for the handle of its asynchronous all_reduce",
    "divides_before_it_waits": "writes to the buffer of its asynchronous all_reduce before it has waited for it",
    "computes_first": "starts its all-reduce when compute() has begun, so that nothing runs beside it",
    "waits_before_it_computes": "rank 0 waits in all_reduce before it has finished compute() of call 0; rank 1 has not",
    "two_all_reduces": "asks for all_reduce, all_reduce, not for one all-reduce",
    "picks_from_everything": "also rows that are for other ranks",
    "mean_of_means": "gave the mean of the ranks' means, whatever they hold",
}
DTYPES = (torch.float32, torch.float16, torch.bool, torch.int64, torch.int16, torch.complex64, torch.uint16)
SHAPES = ((), (0,), (3,), (3, 0), (2, 2), (4, 2), (4, 1, 2))


@pytest.mark.parametrize("name", FIRST_LINES)
def test_the_first_line_says_what_was_done(name: str, launcher: Launcher) -> None:
    mutant = MUTANTS[name]
    verdict = mutation.verdict_of(CHECKS[mutant.fails[0]], mutation.edited("collectives", mutant), launcher)
    assert verdict.explanation
    assert FIRST_LINES[name] in verdict.explanation.rationale
    assert verdict.explanation.help


def test_rows_that_may_be_of_two_ranks_are_told_of_none() -> None:
    rows = torch.arange(6.0).reshape(3, 2)
    assert moved(rows[1:], rows[:2], [Source("rank 0's rows", rows), Source("rank 1's rows", rows.clone())]) is None
    told = moved(rows[[2, 0, 1]], rows, [Source("rank 0's rows", rows, of="rank 0")])
    assert told is not None
    assert told.did == "gave rows 2, 0 to 1 of rank 0, not all in their order"


def test_a_piece_for_another_rank_is_told_by_sender_and_receiver() -> None:
    pieces = [[torch.arange(2.0) + 10 * source + 100 * target for target in range(2)] for source in range(2)]
    call = Call("pieces", pieces, [[pieces[source][target] for source in range(2)] for target in range(2)])
    came = ReturnedTensor(pieces[1][1], contiguous=True, requires_grad=False, device="cpu")
    told = entry_told(call, 1, came, rank=0, members=[0, 1])
    assert told is not None
    assert told.did == "gave the piece of rank 1 for rank 1, not the piece of rank 1 for rank 0"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((0, 1, 0), "gave this rank's own numbers, reduced with nobody's"),
        ((1, 0, 0), "gave the numbers of rank 4 alone"),
        ((1, 1, 0), "gave a sum without rank 6"),
        ((2, 1, 1), "gave a sum that counts rank 4 twice"),
        ((2, 1, 0), "gave a sum that counts rank 4 twice and rank 6 not at all"),
        ((2, 2, 2), None),
        ((1, 1, 3), None),
    ],
)
def test_shares_in_a_sum_are_told_by_rank(counts: tuple[int, ...], words: str | None) -> None:
    tensors = [torch.rand(4, generator=torch.Generator().manual_seed(rank)) + 1000 * rank for rank in range(3)]
    came = sum(count * tensor for count, tensor in zip(counts, tensors, strict=True))
    assert isinstance(came, torch.Tensor)
    told = reduced_wrongly(came, tensors, "SUM", rank=5, members=[4, 5, 6], world_size=7)
    assert (told and told.did) == words


@pytest.mark.parametrize("of", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("function", ["broadcast", "scatter", "gather", "reduce", "reduce_scatter", "all_reduce"])
def test_whatever_comes_is_told_without_an_error(function: str, of: torch.dtype) -> None:
    inputs = [torch.arange(8).reshape(4, 2).to(of) + 100 * rank for rank in range(2)]
    root = [1] if function in ("broadcast", "scatter", "gather", "reduce") else []
    expected = [None if function in ("gather", "reduce") else inputs[0], oracle.reduced(inputs, "SUM")]
    call = Call("it", inputs, expected, root)
    for shape, dtype, fill in product(SHAPES, DTYPES, (1.0, float("nan"), float("inf"))):
        tensor = torch.full(shape, fill).to(dtype)
        came = ReturnedTensor(tensor, contiguous=True, requires_grad=False, device="cpu")
        for rank, value in ((0, came), (1, came), (1, None), (1, "text")):
            told = result_told(function, call, value, rank=rank, members=[0, 1])
            assert told is None or told.did
