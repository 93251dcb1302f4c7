"""Wrong collectives with a root: broadcast, scatter, gather and reduce."""

from tests.mutants.collectives_places import (
    BROADCAST_RECEIVES,
    GATHER_BEGINS,
    GATHER_SENDS,
    REDUCE_COMBINES,
    REDUCE_SENDS,
    SCATTER_SIZES,
    before,
)
from tests.mutants.mutant import Edit, Mutant

BROADCAST = [
    Mutant(
        "root_is_always_0",
        "Broadcasts from rank 0, whatever src says.",
        (before(BROADCAST_RECEIVES, "    src = 0\n"),),
        ("collectives.broadcast", "collectives.broadcast_in_groups"),
        mistake=1,
    ),
    Mutant(
        "root_is_a_rank_of_the_world",
        "Takes src for a global rank when it receives.",
        (
            Edit(
                "dist.recv(received, group=group, group_src=src)\n        return received\n    result",
                "dist.recv(received, group=group, src=src)\n        return received\n    result",
            ),
        ),
        ("collectives.broadcast_in_groups",),
    ),
    Mutant(
        "root_returns_its_argument",
        "The root of broadcast returns the tensor that it was given.",
        (Edit("    result = _copy(tensor)\n    _send", "    result = tensor.detach().contiguous()\n    _send"),),
        ("collectives.broadcast",),
    ),
    Mutant(
        "result_in_autograd",
        "Keeps the root's copy in autograd.",
        (Edit("    result = _copy(tensor)\n    _send", "    result = tensor.contiguous().clone()\n    _send"),),
        ("collectives.broadcast",),
    ),
    Mutant(
        "received_as_float32",
        "Receives into a fresh tensor of the default dtype.",
        (Edit("torch.empty(tensor.shape, dtype=tensor.dtype,", "torch.empty(tensor.shape,"),),
        ("collectives.broadcast",),
    ),
    Mutant(
        "one_buffer_for_all_calls",
        "Receives into a buffer that it keeps from call to call.",
        (
            Edit("def _place(group", "_BUFFERS: dict[Any, Tensor] = {}\n\n\ndef _place(group"),
            Edit(
                "        received = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)\n",
                "        received = _BUFFERS.setdefault((tensor.shape, tensor.dtype), torch.empty_like(tensor))\n",
            ),
        ),
        ("collectives.broadcast",),
    ),
    Mutant(
        "sends_are_not_waited_for",
        "Starts the sends of the root and goes on without waiting for them.",
        (
            Edit(
                "        assert work is not None  # None is for ranks outside the group\n        work.wait()\n",
                "        pass\n",
            ),
        ),
        ("collectives.broadcast",),
        mistake=7,
    ),
    Mutant(
        "negative_roots_count_from_the_end",
        "Takes root -1 for the last rank.",
        (Edit("    if not 0 <= root < world_size:\n", "    if not -world_size <= root < world_size:\n"),),
        ("collectives.broadcast_in_groups",),
    ),
]

SCATTER = [
    Mutant(
        "scatter_drops_the_rest",
        "Scatters rows // W rows to each rank and forgets the others.",
        (
            Edit(SCATTER_SIZES, "    sizes = [rows // world_size] * world_size\n"),
            Edit("torch.split(_plain(tensor), sizes)", "torch.split(_plain(tensor)[: sum(sizes)], sizes)"),
        ),
        ("collectives.scatter_uneven",),
        mistake=8,
    ),
    Mutant(
        "scatter_as_chunk",
        "Makes the first pieces as long as the longest, as torch.chunk does.",
        (
            Edit(
                SCATTER_SIZES,
                "    most = -(-rows // world_size)\n"
                "    sizes = [max(0, min(most, rows - most * peer)) for peer in range(world_size)]\n",
            ),
        ),
        ("collectives.scatter_uneven",),
    ),
    Mutant(
        "scatters_from_rank_0",
        "Scatters rank 0's tensor, whatever src says.",
        (before("    spec = broadcast_spec(tensor, src, group=group)\n", "    src = 0\n"),),
        ("collectives.scatter",),
        mistake=1,
    ),
    Mutant(
        "scatter_takes_what_is_at_hand",
        "A rank that was passed a tensor cuts its piece from that.",
        (
            Edit(
                "    if rank != src:\n        received = torch.empty((sizes",
                "    if tensor is not None and rank != src:\n"
                "        ignored = torch.empty((sizes[rank], *trailing), dtype=spec.dtype)\n"
                "        dist.recv(ignored, group=group, group_src=src)\n"
                "        return torch.split(_copy(tensor), sizes)[rank].clone()\n"
                "    if rank != src:\n        received = torch.empty((sizes",
            ),
        ),
        ("collectives.scatter",),
    ),
    Mutant(
        "own_piece_is_a_view",
        "The root of scatter returns a view of its tensor.",
        (Edit("    return pieces[src].clone()\n", "    return pieces[src]\n"),),
        ("collectives.scatter",),
    ),
    Mutant(
        "scatter_lets_outsiders_pass",
        "A rank outside the group gets nothing from scatter, and no error.",
        (
            Edit(
                '    _check_root("src", src, world_size)\n    spec',
                "    spec",
            ),
            Edit(
                "    rank, world_size = _place(group)\n    spec",
                "    if dist.get_rank(group) < 0:\n        return torch.empty(0)\n"
                "    rank, world_size = _place(group)\n    spec",
            ),
        ),
        ("collectives.scatter_uneven",),
    ),
]

GATHER = [
    Mutant(
        "gathers_on_rank_0",
        "Gathers on rank 0, whatever dst says.",
        (before("    if rank != dst:\n" + GATHER_SENDS, "    dst = 0\n"),),
        ("collectives.gather",),
        mistake=1,
    ),
    Mutant(
        "gather_returns_everywhere",
        "Ranks other than dst return their piece.",
        (Edit(GATHER_SENDS + "        return None\n", GATHER_SENDS + "        return piece.clone()\n"),),
        ("collectives.gather",),
    ),
    Mutant(
        "gather_puts_its_own_first",
        "The root of gather puts its own piece before the others.",
        (
            Edit(
                "    for source, rows in enumerate(torch.split(whole, sizes)):\n",
                "    order = [dst, *(peer for peer in range(world_size) if peer != dst)]\n"
                "    sizes = [sizes[source] for source in order]\n"
                "    for source, rows in zip(order, torch.split(whole, sizes)):\n",
            ),
        ),
        ("collectives.gather", "collectives.gather_uneven"),
    ),
    Mutant(
        "gather_expects_equal_lengths",
        "Expects pieces as long as its own.",
        (
            Edit(
                GATHER_BEGINS + " = exchange_sizes(piece.shape[0], group=group)\n",
                GATHER_BEGINS + " = [piece.shape[0]] * world_size\n",
            ),
        ),
        ("collectives.gather_uneven",),
    ),
]

REDUCE = [
    Mutant(
        "partial_sums_off_the_root",
        "Every rank returns what it holds.",
        (Edit(REDUCE_SENDS + "        return None\n", REDUCE_SENDS + "        return _copy(tensor)\n"),),
        ("collectives.reduce",),
        mistake=2,
    ),
    Mutant(
        "reduces_in_place",
        "The root of reduce adds into the tensor that it was given, and returns a copy.",
        (
            Edit("    total = _copy(tensor)\n    received", "    total = _plain(tensor)\n    received"),
            Edit(
                REDUCE_COMBINES + "    return _finish(total, op, world_size)\n",
                REDUCE_COMBINES + "    return _finish(total.clone(), op, world_size)\n",
            ),
        ),
        ("collectives.reduce",),
        mistake=10,
    ),
    Mutant(
        "reduces_on_rank_0",
        "Reduces on rank 0, whatever dst says.",
        (before("    if rank != dst:\n" + REDUCE_SENDS, "    dst = 0\n"),),
        ("collectives.reduce", "collectives.reduce_in_groups"),
        mistake=1,
    ),
    Mutant(
        "reduce_knows_only_sum",
        "Ignores the operator.",
        (Edit(REDUCE_COMBINES, "            total += received\n"),),
        ("collectives.reduce", "collectives.reduce_operators"),
    ),
    Mutant(
        "reduce_in_float32",
        "Returns half precision as float32.",
        (
            Edit(
                REDUCE_COMBINES + "    return _finish(total, op, world_size)\n",
                REDUCE_COMBINES + "    total = total.to(torch.promote_types(total.dtype, torch.float32))\n"
                "    return _finish(total, op, world_size)\n",
            ),
        ),
        ("collectives.reduce_operators",),
    ),
]

MUTANTS = [*BROADCAST, *SCATTER, *GATHER, *REDUCE]
