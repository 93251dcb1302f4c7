"""Right collectives that send otherwise: in pieces, along chains, padded, with headers of their own."""

from tests.mutants.collectives_places import (
    BROADCAST_RECEIVES,
    GATHER_SENDS,
    REDUCE_SENDS,
    SCATTER_SIZES,
    WHILE_WAITS,
    before,
)
from tests.mutants.mutant import Edit, Variant

BROADCAST_IN_PIECES = before(
    BROADCAST_RECEIVES,
    "    flat = _copy(tensor).reshape(-1)\n"
    "    piece = scatter(flat if rank == src else None, src, group=group)\n"
    "    return _ring_gather(piece, piece_sizes(flat.numel(), world_size), group).reshape(tensor.shape)\n",
)
SCATTER_ALONG_A_CHAIN = Edit(
    SCATTER_SIZES,
    SCATTER_SIZES + "    order = [(src + step) % world_size for step in range(world_size)]\n"
    "    place = order.index(rank)\n"
    "    ahead = [sizes[peer] for peer in order[place:]]  # this rank's rows, and those that go on\n"
    "    if rank == src:\n"
    "        held = torch.cat([torch.split(_plain(tensor), sizes)[peer] for peer in order])\n"
    "    else:\n"
    "        held = torch.empty((sum(ahead), *trailing), dtype=spec.dtype)\n"
    "        dist.recv(held, group=group, group_src=(rank - 1) % world_size)\n"
    "    if place < world_size - 1:\n"
    "        dist.send(held[ahead[0] :], group=group, group_dst=(rank + 1) % world_size)\n"
    "    return held[: ahead[0]].clone()\n",
)
GATHER_ALONG_A_CHAIN = before(
    "    if rank != dst:\n" + GATHER_SENDS,
    "    order = [(dst + 1 + step) % world_size for step in range(world_size)]\n"
    "    place = order.index(rank)\n"
    "    held = piece.new_empty((sum(sizes[peer] for peer in order[:place]), *piece.shape[1:]))\n"
    "    if place > 0:\n"
    "        dist.recv(held, group=group, group_src=order[place - 1])\n"
    "    held = torch.cat([held, piece])\n"
    "    if rank != dst:\n"
    "        dist.send(held, group=group, group_dst=order[place + 1])\n"
    "        return None\n"
    "    pieces = dict(zip(order, torch.split(held, [sizes[peer] for peer in order])))\n"
    "    return torch.cat([pieces[peer] for peer in range(world_size)])\n",
)
REDUCE_IN_PIECES = before(
    "    if rank != dst:\n" + REDUCE_SENDS,
    "    flat = _plain(tensor).reshape(-1)\n"
    "    own = _ring_reduce(torch.split(flat, piece_sizes(flat.numel(), world_size)), op, group)\n"
    "    whole = gather(own, dst, group=group)\n"
    "    return None if whole is None else whole.reshape(tensor.shape)\n",
)
ALL_GATHER_PADDED = Edit(
    "    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)\n",
    "    world_size = dist.get_world_size(group)\n"
    "    lengths = _ring_gather(torch.tensor([piece.shape[0]]), [1] * world_size, group).tolist()\n"
    "    longest = max(lengths)\n"
    "    padded = piece.new_zeros((longest, *piece.shape[1:]))\n"
    "    padded[: piece.shape[0]] = piece\n"
    "    whole = _ring_gather(padded, [longest] * world_size, group)\n"
    "    return torch.cat([rows[:length] for rows, length in zip(torch.split(whole, longest or 1), lengths)])\n",
)
ALL_TO_ALL_WITH_HEADERS = Edit(
    "    counts = exchange_counts([piece.shape[0] for piece in pieces], group=group)\n",
    "    mine = [torch.tensor([piece.shape[0]]) for piece in pieces]\n"
    "    theirs = [one.clone() for one in mine]\n"
    "    others = [peer for peer in range(world_size) if peer != rank]\n"
    "    works = [dist.isend(mine[peer], group=group, group_dst=peer) for peer in others]\n"
    "    works += [dist.irecv(theirs[peer], group=group, group_src=peer) for peer in others]\n"
    "    for work in works:\n"
    "        work.wait()\n"
    "    counts = [int(one) for one in theirs]\n",
)
WAITS_BY_ASKING = Edit(WHILE_WAITS, "    finally:\n        while not work.is_completed():\n            pass\n")

VARIANTS = [
    Variant(
        "pieces_and_headers",
        "Scatters and gathers along chains, broadcasts and reduces in pieces, pads, and tells lengths by messages.",
        (
            BROADCAST_IN_PIECES,
            SCATTER_ALONG_A_CHAIN,
            GATHER_ALONG_A_CHAIN,
            REDUCE_IN_PIECES,
            ALL_GATHER_PADDED,
            ALL_TO_ALL_WITH_HEADERS,
            WAITS_BY_ASKING,
        ),
    ),
]
