"""Wrong rings: all_gather, reduce_scatter and all_reduce."""

from tests.mutants.collectives_places import (
    ALL_REDUCE_FLATTENS,
    ALL_REDUCE_GATHERS,
    ALL_REDUCE_SIZES,
    GATHER_SHIFTS,
    RING_COMBINES,
    RING_OWN,
    RING_STARTS,
    SHIFT_WAITS,
    before,
)
from tests.mutants.mutant import Edit, Mutant

STEPS = [
    Mutant(
        "ring_off_by_one",
        "Starts each partial result one rank too early: the pieces end on their left neighbours.",
        (Edit(RING_STARTS, RING_STARTS.replace("rank - 1", "rank")), Edit(RING_OWN, RING_OWN.replace("- 2", "- 1"))),
        ("collectives.reduce_scatter", "collectives.reduce_scatter_uneven", "collectives.all_reduce"),
        mistake=3,
    ),
    Mutant(
        "gather_ring_off_by_one",
        "Passes on the piece after the one that came.",
        (
            Edit(
                GATHER_SHIFTS,
                GATHER_SHIFTS.replace("rank - step)", "rank - step + 1)").replace("step - 1)", "step)"),
            ),
        ),
        ("collectives.all_gather", "collectives.all_reduce"),
        mistake=3,
    ),
    Mutant(
        "own_piece_counts_twice",
        "Adds its own piece to what came, and again before sending on.",
        (Edit(RING_COMBINES, RING_COMBINES + "        if step < world_size - 2:\n    " + RING_COMBINES),),
        ("collectives.reduce_scatter", "collectives.all_reduce"),
        mistake=4,
    ),
    Mutant(
        "all_send_first",
        "Every rank sends to its right neighbour before it receives from its left one.",
        (
            Edit(
                SHIFT_WAITS,
                "    dist.send(outgoing, group=group, group_dst=right)\n"
                "    dist.recv(incoming, group=group, group_src=left)\n\n\ndef _ring_reduce",
            ),
        ),
        ("collectives.all_reduce",),
        mistake=6,
    ),
    Mutant(
        "own_piece_is_not_written",
        "all_gather receives the others' pieces and forgets its own.",
        (Edit("    pieces[rank].copy_(piece)\n", ""),),
        ("collectives.all_gather", "collectives.all_gather_uneven", "collectives.all_reduce"),
        mistake=9,
    ),
    Mutant(
        "all_gather_by_all_to_all",
        "Sends its piece to every rank, not round the ring.",
        (
            Edit(
                "    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)\n",
                "    return torch.cat(all_to_all([piece] * dist.get_world_size(group), group=group))\n",
            ),
        ),
        ("collectives.all_gather", "collectives.all_gather_uneven"),
    ),
    Mutant(
        "reduce_scatter_by_all_to_all",
        "Sends each rank its piece, and adds up what comes.",
        (
            Edit(
                "    return _ring_reduce(pieces, op, group)\n",
                "    total, *others = all_to_all(pieces, group=group)\n"
                "    for one in others:\n        _combine(total, one, op)\n"
                "    return _finish(total, op, world_size)\n",
            ),
        ),
        ("collectives.reduce_scatter", "collectives.reduce_scatter_uneven"),
    ),
    Mutant(
        "all_gather_begins_with_itself",
        "Returns the pieces in the order in which they came.",
        (
            Edit(
                "    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)\n",
                "    sizes = exchange_sizes(piece.shape[0], group=group)\n"
                "    pieces = torch.split(_ring_gather(piece, sizes, group), sizes)\n"
                "    rank = dist.get_rank(group)\n"
                "    return torch.cat([pieces[rank - step] for step in range(len(sizes))])\n",
            ),
        ),
        ("collectives.all_gather", "collectives.all_gather_uneven"),
    ),
    Mutant(
        "reduce_scatter_drops_the_rest",
        "Reduces rows // W rows for each rank and forgets the others.",
        (
            Edit(
                "torch.split(_plain(tensor), piece_sizes(tensor.shape[0], world_size))",
                "_plain(tensor)[: tensor.shape[0] // world_size * world_size].chunk(world_size)\n"
                "    pieces = pieces if len(pieces) == world_size else [tensor.detach()[:0].clone()] * world_size",
            ),
        ),
        ("collectives.reduce_scatter_uneven",),
        mistake=8,
    ),
]

ALL_REDUCE = [
    Mutant(
        "all_reduce_on_rank_0",
        "Sends everything to rank 0, which reduces and sends the result to all.",
        (
            before(
                ALL_REDUCE_FLATTENS,
                "    total = reduce(tensor, 0, op, group=group)\n"
                "    return broadcast(tensor if total is None else total, 0, group=group)\n",
            ),
        ),
        ("collectives.all_reduce",),
        mistake=5,
    ),
    Mutant(
        "sums_in_an_order_of_its_own",
        "Gathers all tensors, and each rank adds them up beginning with its own.",
        (
            Edit(
                ALL_REDUCE_SIZES,
                "    gathered = _ring_gather(flat, [flat.numel()] * world_size, group).view(world_size, -1)\n"
                "    rank = dist.get_rank(group)\n"
                "    return gathered.roll(-rank, 0).cumsum(0)[-1].to(flat.dtype).reshape(tensor.shape)\n"
                + ALL_REDUCE_SIZES,
            ),
        ),
        ("collectives.all_reduce",),
    ),
    Mutant(
        "all_reduce_leaves_the_tail",
        "Reduces W chunks of n // W elements; the elements after them stay as they were.",
        (
            Edit(
                ALL_REDUCE_SIZES,
                "    sizes = [flat.numel() // world_size] * world_size\n"
                "    flat, tail = flat[: sum(sizes)], flat[sum(sizes) :]\n",
            ),
            Edit(
                ALL_REDUCE_GATHERS,
                "    whole = torch.cat([_ring_gather(own, sizes, group), tail])\n"
                "    return whole.reshape(tensor.shape)\n",
            ),
        ),
        ("collectives.all_reduce_any_shape",),
        mistake=8,
    ),
    Mutant(
        "result_of_an_operation_in_place",
        "Returns what dist.all_reduce returns.",
        (before(ALL_REDUCE_FLATTENS, "    return dist.all_reduce(_copy(tensor), op, group=group)\n"),),
        ("collectives.all_reduce",),
        mistake=14,
    ),
    Mutant(
        "wraps_the_collective_of_torch",
        "Calls the collective that it should be made of messages.",
        (
            before(
                ALL_REDUCE_FLATTENS,
                "    total = _copy(tensor)\n    dist.all_reduce(total, op, group=group)\n    return total\n",
            ),
        ),
        ("collectives.all_reduce",),
    ),
    Mutant(
        "unreduced_original_returned",
        "Reduces a contiguous copy and, where that is not the tensor itself, returns the tensor.",
        (
            Edit(
                ALL_REDUCE_GATHERS,
                "    whole = _ring_gather(own, sizes, group).reshape(tensor.shape)\n"
                "    return whole if tensor.is_contiguous() else _copy(tensor)\n",
            ),
        ),
        ("collectives.all_reduce",),
        mistake=11,
    ),
    Mutant(
        "group_made_by_its_members",
        "Makes a group of its own among the members, which all ranks of the world would have to make.",
        (
            before(
                ALL_REDUCE_FLATTENS,
                "    if group is not None:\n        group = dist.new_group(dist.get_process_group_ranks(group))\n",
            ),
        ),
        ("collectives.all_reduce_any_shape",),
        mistake=12,
    ),
    Mutant(
        "all_reduce_sends_before_it_checks",
        "Gathers the tensors before it refuses an operator that it does not know.",
        (
            Edit(
                "    _check_op(op, tensor.dtype)\n" + ALL_REDUCE_FLATTENS,
                "    if op not in _COMBINE:\n        all_gather(tensor.reshape(-1), group=group)\n"
                "    _check_op(op, tensor.dtype)\n" + ALL_REDUCE_FLATTENS,
            ),
        ),
        ("collectives.all_reduce_operators",),
    ),
    Mutant(
        "all_reduce_needs_a_dimension",
        "Refuses a 0-dimensional tensor.",
        (before(ALL_REDUCE_FLATTENS, "    _check_rows(tensor)\n"),),
        ("collectives.all_reduce_any_shape",),
    ),
]

MUTANTS = [*STEPS, *ALL_REDUCE]
