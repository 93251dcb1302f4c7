"""Places of reference/collectives.py that several edits touch."""

from tests.mutants.mutant import Edit

AVERAGE = "    return total.div_(world_size) if op == _AVG else total\n"
BROADCAST_RECEIVES = "    if rank != src:\n        received = torch.empty(tensor.shape"
SCATTER_SIZES = "    sizes = piece_sizes(rows, world_size)\n"
GATHER_BEGINS = "    piece = _plain(piece)\n    sizes"
GATHER_SENDS = "        dist.send(piece, group=group, group_dst=dst)\n"
REDUCE_SENDS = "        dist.send(_plain(tensor), group=group, group_dst=dst)\n"
REDUCE_COMBINES = "            _combine(total, received, op)\n"
SHIFT_WAITS = "    for work in dist.batch_isend_irecv(step):\n        work.wait()\n\n\ndef _ring_reduce"
RING_STARTS = "    partial = pieces[(rank - 1) % world_size].clone()\n"
RING_OWN = "        own = pieces[(rank - step - 2) % world_size]\n"
RING_COMBINES = "        _combine(received, own, op)\n"
GATHER_SHIFTS = "_shift(pieces[(rank - step) % world_size], pieces[(rank - step - 1) % world_size], group)"
ALL_REDUCE_FLATTENS = "    flat = _plain(tensor).reshape(-1)\n"
ALL_REDUCE_SIZES = "    sizes = piece_sizes(flat.numel(), world_size)\n"
ALL_REDUCE_GATHERS = "    return _ring_gather(own, sizes, group).reshape(tensor.shape)\n"
WHILE_STARTS = "    work = dist.all_reduce(total, _SUM if op == _AVG else op, group=group, async_op=True)\n"
WHILE_COMPUTES = "    try:\n        result = compute()\n"
WHILE_WAITS = "    finally:\n        work.wait()\n"


def before(place: str, text: str) -> Edit:
    """Puts `text` in front of a place."""
    return Edit(place, text + place)
