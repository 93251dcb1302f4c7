"""Collectives whose results are right and whose messages are not: too many, by the wrong way, or none at all."""

from tests.mutants.collectives_places import (
    ALL_REDUCE_FLATTENS,
    ALL_REDUCE_GATHERS,
    ALL_REDUCE_SIZES,
    BROADCAST_RECEIVES,
    GATHER_SENDS,
    GATHER_SHIFTS,
    REDUCE_SENDS,
    SCATTER_SIZES,
    SHIFT_WAITS,
    before,
)
from tests.mutants.mutant import Edit, Mutant

GATHERS = "    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)\n"
IN_THE_WORLD = "dist.get_global_rank(group or dist.group.WORLD, {rank})"

ROOTED = [
    Mutant(
        "broadcast_by_all_gather",
        "Gathers every rank's tensor on every rank and keeps the root's.",
        (before(BROADCAST_RECEIVES, "    return all_gather(_copy(tensor).unsqueeze(0), group=group)[src].clone()\n"),),
        ("collectives.broadcast",),
    ),
    Mutant(
        "broadcast_through_the_store",
        "Hands the tensor over in the store that the ranks met by, and sends no message.",
        (
            Edit("def _place(group", "_KEYS: list[str] = []\n\n\ndef _place(group"),
            before(
                BROADCAST_RECEIVES,
                "    import io\n\n"
                "    _KEYS.append(f'broadcast {len(_KEYS)} {dist.get_process_group_ranks(group)}')\n"
                "    store, file = dist.distributed_c10d._get_default_store(), io.BytesIO()\n"
                "    if rank == src:\n"
                "        torch.save(_copy(tensor), file)\n"
                "        store.set(_KEYS[-1], file.getvalue())\n"
                "    return torch.load(io.BytesIO(store.get(_KEYS[-1])))\n",
            ),
        ),
        ("collectives.broadcast",),
    ),
    Mutant(
        "scatter_by_broadcast",
        "Sends the whole tensor to every rank, which cuts its piece from it.",
        (
            before(
                SCATTER_SIZES,
                "    own = tensor if rank == src else torch.empty(spec.shape, dtype=spec.dtype)\n"
                "    whole = broadcast(own, src, group=group)\n"
                "    return torch.split(whole, piece_sizes(rows, world_size))[rank].clone()\n",
            ),
        ),
        ("collectives.scatter",),
    ),
    Mutant(
        "gather_as_a_sum_of_wholes",
        "Each rank puts its piece into a whole of zeros; the wholes are summed on the root.",
        (
            before(
                "    if rank != dst:\n" + GATHER_SENDS,
                "    whole = piece.new_zeros((sum(sizes), *piece.shape[1:]))\n"
                "    torch.split(whole, sizes)[rank].copy_(piece)\n"
                "    return reduce(whole, dst, group=group)\n",
            ),
        ),
        ("collectives.gather",),
    ),
    Mutant(
        "reduces_in_the_world",
        "Sends in the default group, by global ranks, whatever group is passed.",
        (
            Edit(REDUCE_SENDS, f"        dist.send(_plain(tensor), {IN_THE_WORLD.format(rank='dst')})\n"),
            Edit(
                "            dist.recv(received, group=group, group_src=source)\n",
                f"            dist.recv(received, {IN_THE_WORLD.format(rank='source')})\n",
            ),
        ),
        ("collectives.reduce_in_groups",),
    ),
]

RINGS = [
    Mutant(
        "gathers_both_ways",
        "Sends half of the pieces to each neighbour.",
        (
            Edit(
                GATHERS,
                "    sizes = exchange_sizes(piece.shape[0], group=group)\n"
                "    rank, world_size = _place(group)\n"
                "    found = {rank: piece}\n"
                "    for step in range(1, world_size // 2 + 1):\n"
                "        messages = []\n"
                "        for way in (1, -1) if step <= (world_size - 1) // 2 else (1,):\n"
                "            source, last = (rank - way * step) % world_size, (rank - way * (step - 1)) % world_size\n"
                "            found[source] = piece.new_empty((sizes[source], *piece.shape[1:]))\n"
                "            to, of = (rank + way) % world_size, (rank - way) % world_size\n"
                "            messages.append(dist.P2POp(dist.isend, found[last], group=group, group_peer=to))\n"
                "            messages.append(dist.P2POp(dist.irecv, found[source], group=group, group_peer=of))\n"
                "        for work in dist.batch_isend_irecv(messages):\n"
                "            work.wait()\n"
                "    return torch.cat([found[source] for source in range(world_size)])\n",
            ),
        ),
        ("collectives.all_gather",),
    ),
    Mutant(
        "one_step_too_many",
        "Goes on until its own piece comes back.",
        (
            Edit(
                "    for step in range(world_size - 1):\n        " + GATHER_SHIFTS,
                "    for step in range(world_size if world_size > 1 else 0):\n        " + GATHER_SHIFTS,
            ),
        ),
        ("collectives.all_gather", "collectives.all_reduce", "collectives.all_reduce_any_shape"),
        mistake=3,
    ),
    Mutant(
        "each_step_in_two",
        "Sends each piece in two halves, the second when the first has been received.",
        (
            Edit(
                SHIFT_WAITS,
                "    halves = zip(outgoing.view(-1).tensor_split(2), incoming.view(-1).tensor_split(2))\n"
                "    for half, received in halves:\n"
                "        step = [\n"
                "            dist.P2POp(dist.isend, half, group=group, group_peer=right),\n"
                "            dist.P2POp(dist.irecv, received, group=group, group_peer=left),\n"
                "        ]\n"
                "        for work in dist.batch_isend_irecv(step):\n"
                "            work.wait()\n\n\n"
                "def _ring_reduce",
            ),
        ),
        ("collectives.all_gather", "collectives.reduce_scatter", "collectives.all_reduce"),
    ),
    Mutant(
        "reduce_scatter_from_all_reduce",
        "Reduces everything on every rank and keeps its own piece.",
        (
            Edit(
                "    return _ring_reduce(pieces, op, group)\n",
                "    whole = all_reduce(tensor, op, group=group)\n"
                "    pieces = torch.split(whole, piece_sizes(tensor.shape[0], world_size))\n"
                "    return pieces[dist.get_rank(group)].clone()\n",
            ),
        ),
        ("collectives.reduce_scatter", "collectives.reduce_scatter_uneven"),
    ),
    Mutant(
        "all_reduce_along_a_chain",
        "Reduces along a chain onto the last rank, and sends the result back along it.",
        (
            before(
                ALL_REDUCE_FLATTENS,
                "    rank = dist.get_rank(group)\n"
                "    total = _copy(tensor)\n"
                "    if rank > 0:\n"
                "        received = torch.empty_like(total)\n"
                "        dist.recv(received, group=group, group_src=rank - 1)\n"
                "        _combine(total, received, op)\n"
                "    if rank < world_size - 1:\n"
                "        dist.send(total, group=group, group_dst=rank + 1)\n"
                "        dist.recv(total, group=group, group_src=rank + 1)\n"
                "    else:\n"
                "        _finish(total, op, world_size)\n"
                "    if rank > 0:\n"
                "        dist.send(total, group=group, group_dst=rank - 1)\n"
                "    return total\n",
            ),
        ),
        ("collectives.all_reduce", "collectives.all_reduce_operators"),
        mistake=5,
    ),
    Mutant(
        "all_reduce_in_float64",
        "Sends numbers of single precision in double precision.",
        (
            Edit(
                ALL_REDUCE_FLATTENS,
                ALL_REDUCE_FLATTENS + "    flat = flat.double() if flat.is_floating_point() else flat\n",
            ),
            Edit(
                ALL_REDUCE_GATHERS,
                "    return _ring_gather(own, sizes, group).to(tensor.dtype).reshape(tensor.shape)\n",
            ),
        ),
        ("collectives.all_reduce", "collectives.all_reduce_any_shape"),
    ),
    Mutant(
        "gathers_all_and_adds",
        "Gathers all tensors round the ring, and each rank adds them up in rank order.",
        (
            before(
                ALL_REDUCE_SIZES,
                "    gathered = _ring_gather(flat, [flat.numel()] * world_size, group).view(world_size, -1)\n"
                "    total = gathered[0].clone()\n"
                "    for one in gathered[1:]:\n        _combine(total, one, op)\n"
                "    return _finish(total, op, world_size).reshape(tensor.shape)\n",
            ),
        ),
        ("collectives.all_reduce", "collectives.all_reduce_operators"),
    ),
    Mutant(
        "collective_in_a_thread",
        "Has a thread call the collective of torch.",
        (
            before(
                ALL_REDUCE_FLATTENS,
                "    from threading import Thread\n\n"
                "    total = _copy(tensor)\n"
                '    helper = Thread(target=dist.all_reduce, args=(total, op), kwargs={"group": group})\n'
                "    helper.start()\n"
                "    helper.join()\n"
                "    return total\n",
            ),
        ),
        ("collectives.all_reduce",),
    ),
]

ALL_TO_ALL = [
    Mutant(
        "passes_all_pieces_round",
        "Gathers all pieces on every rank and keeps those that are for it.",
        (
            before(
                "    messages = []\n",
                "    mine = []\n"
                "    for target, piece in enumerate(outgoing):\n"
                "        sizes = exchange_sizes(piece.shape[0], group=group)\n"
                "        gathered = _ring_gather(piece, sizes, group)\n"
                "        mine = torch.split(gathered, sizes) if target == rank else mine\n"
                "    return [piece.clone() for piece in mine]\n",
            ),
        ),
        ("collectives.all_to_all",),
    ),
    Mutant(
        "sends_all_pieces_to_each",
        "Sends all its pieces to each rank, which picks its own.",
        (
            before(
                "    messages = []\n",
                "    whole = torch.cat(outgoing)\n"
                "    totals = exchange_sizes(whole.shape[0], group=group)\n"
                "    starts = exchange_counts(\n"
                "        [sum(len(piece) for piece in outgoing[:peer]) for peer in range(world_size)], group=group\n"
                "    )\n"
                "    others = [peer for peer in range(world_size) if peer != rank]\n"
                "    theirs = {peer: whole.new_empty((totals[peer], *whole.shape[1:])) for peer in others}\n"
                "    works = [dist.isend(whole, group=group, group_dst=peer) for peer in others]\n"
                "    works += [dist.irecv(theirs[peer], group=group, group_src=peer) for peer in others]\n"
                "    for work in works:\n"
                "        work.wait()\n"
                "    for peer in others:\n"
                "        incoming[peer].copy_(theirs[peer][starts[peer] : starts[peer] + counts[peer]])\n"
                "    return incoming\n",
            ),
        ),
        ("collectives.all_to_all",),
    ),
]

MUTANTS = [*ROOTED, *RINGS, *ALL_TO_ALL]
