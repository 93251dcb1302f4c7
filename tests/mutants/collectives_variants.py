"""Right collectives that are written differently. Each variant changes several functions, to save worlds."""

from tests.mutants.collectives_places import (
    ALL_REDUCE_FLATTENS,
    AVERAGE,
    BROADCAST_RECEIVES,
    GATHER_SENDS,
    GATHER_SHIFTS,
    REDUCE_SENDS,
    RING_OWN,
    RING_STARTS,
    SHIFT_WAITS,
    WHILE_COMPUTES,
    WHILE_STARTS,
    WHILE_WAITS,
    before,
)
from tests.mutants.mutant import Edit, Variant

BROADCAST_ALONG_A_CHAIN = before(
    BROADCAST_RECEIVES,
    "    place = (rank - src) % world_size\n"
    "    passed = _copy(tensor)\n"
    "    if place > 0:\n"
    "        dist.recv(passed, group=group, group_src=(rank - 1) % world_size)\n"
    "    if place < world_size - 1:\n"
    "        dist.send(passed, group=group, group_dst=(rank + 1) % world_size)\n"
    "    return passed\n",
)
# In each round every rank that has the tensor sends it to one that has not; peers are global ranks here.
BROADCAST_BY_A_TREE = before(
    BROADCAST_RECEIVES,
    "    ranks = dist.get_process_group_ranks(group)\n"
    "    place, reach = (rank - src) % world_size, 1\n"
    "    passed = _copy(tensor)\n"
    "    while reach < world_size:\n"
    "        if place < reach and place + reach < world_size:\n"
    "            dist.send(passed, ranks[(src + place + reach) % world_size], group=group)\n"
    "        elif reach <= place < 2 * reach:\n"
    "            dist.recv(passed, ranks[(src + place - reach) % world_size], group=group)\n"
    "        reach *= 2\n"
    "    return passed\n",
)
ROOT_SENDS_ONE_BY_ONE = Edit(
    "    works = [dist.isend(tensor, group=group, group_dst=peer) for peer, tensor in tensors.items()]\n"
    "    for work in works:\n"
    "        assert work is not None  # None is for ranks outside the group\n"
    "        work.wait()\n",
    "    for peer, tensor in tensors.items():\n        dist.send(tensor, group=group, group_dst=peer)\n",
)
NO_EMPTY_MESSAGES = (
    Edit(
        "        dist.recv(received, group=group, group_src=src)\n        return received\n    assert",
        "        if received.numel():\n            dist.recv(received, group=group, group_src=src)\n"
        "        return received\n    assert",
    ),
    Edit(
        "    _send_all({peer: pieces[peer] for peer in range(world_size) if peer != src}, group)\n",
        "    others = [peer for peer in range(world_size) if peer != src and pieces[peer].numel()]\n"
        "    _send_all({peer: pieces[peer] for peer in others}, group)\n",
    ),
    Edit(GATHER_SENDS, "        if piece.numel():\n    " + GATHER_SENDS),
    Edit(
        "        else:\n            dist.recv(rows, group=group, group_src=source)\n",
        "        elif rows.numel():\n            dist.recv(rows, group=group, group_src=source)\n",
    ),
)
REDUCE_ALONG_A_CHAIN = before(
    "    if rank != dst:\n" + REDUCE_SENDS,
    "    place = (rank - dst - 1) % world_size  # dst is the last\n"
    "    total = _copy(tensor)\n"
    "    if place > 0:\n"
    "        dist.recv(total, group=group, group_src=(rank - 1) % world_size)\n"
    "        _combine(total, _plain(tensor), op)\n"
    "    if rank != dst:\n"
    "        dist.send(total, group=group, group_dst=(rank + 1) % world_size)\n"
    "        return None\n"
    "    return _finish(total, op, world_size)\n",
)
RINGS_TO_THE_LEFT = (
    Edit(
        "    right, left = (rank + 1) % world_size, (rank - 1)", "    right, left = (rank - 1) % world_size, (rank + 1)"
    ),
    Edit(RING_STARTS, RING_STARTS.replace("rank - 1", "rank + 1")),
    Edit(RING_OWN, RING_OWN.replace("rank - step - 2", "rank + step + 2")),
    Edit(GATHER_SHIFTS, GATHER_SHIFTS.replace("step - 1", "step + 1").replace("rank - step", "rank + step")),
)
EVEN_RANKS_SEND_FIRST = Edit(
    SHIFT_WAITS,
    "    if rank % 2 == 0:\n"
    "        dist.send(outgoing, group=group, group_dst=right)\n"
    "        dist.recv(incoming, group=group, group_src=left)\n"
    "    else:\n"
    "        dist.recv(incoming, group=group, group_src=left)\n"
    "        dist.send(outgoing, group=group, group_dst=right)\n"
    "\n\ndef _ring_reduce",
)
ISEND_AND_RECV = Edit(
    SHIFT_WAITS,
    "    work = dist.isend(outgoing, group=group, group_dst=right)\n"
    "    dist.recv(incoming, group=group, group_src=left)\n"
    "    work.wait()\n"
    "\n\ndef _ring_reduce",
)
ALL_GATHER_AS_A_LIST = Edit(
    "    return _ring_gather(piece, exchange_sizes(piece.shape[0], group=group), group)\n",
    "    sizes = exchange_sizes(piece.shape[0], group=group)\n"
    "    rank, world_size = _place(group)\n"
    "    found = {rank: piece}\n"
    "    for step in range(1, world_size):\n"
    "        source = (rank - step) % world_size\n"
    "        found[source] = piece.new_empty((sizes[source], *piece.shape[1:]))\n"
    "        _shift(found[(source + 1) % world_size], found[source], group)\n"
    "    return torch.cat([found[source] for source in range(world_size)])\n",
)
ALL_REDUCE_FROM_ITS_HALVES = before(
    ALL_REDUCE_FLATTENS,
    "    own = reduce_scatter(tensor.reshape(-1), op, group=group)\n"
    "    return all_gather(own, group=group).reshape(tensor.shape)\n",
)
ALL_TO_ALL_IN_PAIRS = before(
    "    messages = []\n",
    "    for peer in range(world_size):\n"
    "        if rank < peer:\n"
    "            dist.send(outgoing[peer], group=group, group_dst=peer)\n"
    "        if rank != peer:\n"
    "            dist.recv(incoming[peer], group=group, group_src=peer)\n"
    "        if rank > peer:\n"
    "            dist.send(outgoing[peer], group=group, group_dst=peer)\n"
    "    return incoming\n",
)
ALL_TO_ALL_UNBATCHED = Edit(
    "        for work in dist.batch_isend_irecv(messages):\n",
    "        peer_of = {dist.isend: 'group_dst', dist.irecv: 'group_src'}\n"
    "        works = [one.op(one.tensor, group=one.group, **{peer_of[one.op]: one.group_peer}) for one in messages]\n"
    "        for work in works:\n",
)
AVERAGE_BY_A_PRODUCT = Edit(AVERAGE, "    return total.mul_(1 / world_size) if op == _AVG else total\n")
AVERAGE_LEFT_TO_TORCH = (
    Edit(WHILE_STARTS, WHILE_STARTS.replace("_SUM if op == _AVG else op", "op")),
    Edit(
        WHILE_WAITS + "    return _finish(total, op, world_size), result\n",
        WHILE_WAITS + "    return total, result\n",
    ),
)
WAITS_IN_BOTH_BRANCHES = Edit(
    WHILE_COMPUTES + WHILE_WAITS,
    "    try:\n"
    "        result = compute()\n"
    "    except BaseException:\n"
    "        work.wait()\n"
    "        raise\n"
    "    work.get_future().wait()\n",
)
SETUP_WITHOUT_A_DEVICE_ID = Edit('        device_id=device if device.type == "cuda" else None,\n', "")
COPIES_WITHOUT_AUTOGRAD = Edit(
    "    return tensor.detach().resolve_conj().resolve_neg().contiguous()\n",
    "    with torch.no_grad():\n        return tensor.clone(memory_format=torch.contiguous_format)\n",
)

VARIANTS = [
    Variant(
        "chains_and_pairs",
        "Passes messages along chains, rings to the left, one peer after another, and none that are empty.",
        (
            BROADCAST_ALONG_A_CHAIN,
            *NO_EMPTY_MESSAGES,
            REDUCE_ALONG_A_CHAIN,
            *RINGS_TO_THE_LEFT,
            ALL_TO_ALL_IN_PAIRS,
            *AVERAGE_LEFT_TO_TORCH,
        ),
    ),
    Variant(
        "trees_and_parity",
        "Broadcasts by a tree, orders messages by the rank's parity, and waits for a future.",
        (
            BROADCAST_BY_A_TREE,
            ROOT_SENDS_ONE_BY_ONE,
            EVEN_RANKS_SEND_FIRST,
            ALL_GATHER_AS_A_LIST,
            ALL_TO_ALL_UNBATCHED,
            WAITS_IN_BOTH_BRANCHES,
            SETUP_WITHOUT_A_DEVICE_ID,
        ),
    ),
    Variant(
        "halves_and_products",
        "Builds all_reduce from reduce_scatter and all_gather, and averages by multiplying.",
        (ISEND_AND_RECV, ALL_REDUCE_FROM_ITS_HALVES, AVERAGE_BY_A_PRODUCT, COPIES_WITHOUT_AUTOGRAD),
    ),
]
