"""Variants of tensor_parallel.py."""

from tests.mutants.mutant import Edit, Variant
from tests.mutants.tensor_collectives import OTHER_COLLECTIVES
from tests.mutants.tensor_texts import (
    ADD_BIAS,
    CHAIN_STARTS,
    CHAIN_STARTS_AT_ONCE,
    DRAW,
    FORWARD_OF_COPY,
    FORWARD_OF_REPLICATED,
    GATHER,
    LOAD_WEIGHT,
    NEW_LAYER,
    OWN_OF_MASTER,
    REDUCE_SCATTER,
)

VARIANTS = [
    Variant(
        "with_broadcasts_and_hooks",
        "A broadcast of each piece; an all-reduce and a slice; a copy with a hook; loads through .data; F.linear.",
        (
            Edit(
                GATHER,
                "    rank, world_size = _place(group)\n"
                "    pieces = []\n"
                "    for root, size in enumerate(piece_sizes(full_size, world_size)):\n"
                "        piece = local.contiguous() if root == rank else local.new_empty(*local.shape[:-1], size)\n"
                "        dist.broadcast(piece, group_src=root, group=group)\n"
                "        pieces.append(piece)\n"
                "    return torch.cat(pieces, dim=-1)\n",
            ),
            Edit(
                REDUCE_SCATTER,
                "    full = full.clone(memory_format=torch.contiguous_format)\n"
                "    dist.all_reduce(full, group=group)\n"
                "    return torch.split(full, sizes, dim=-1)[rank].clone()\n",
            ),
            Edit(
                FORWARD_OF_COPY,
                "copied = x.clone()\n"
                "    if copied.requires_grad:\n"
                "        copied.register_hook(lambda gradient: _summed(gradient, group))\n"
                "    return copied",
            ),
            Edit(
                "class _CopyToShards(",
                "def _summed(gradient: Tensor, group: Group) -> Tensor:\n"
                "    total = gradient.contiguous().clone()\n"
                "    dist.all_reduce(total, group=group)\n"
                "    return total\n\n\n"
                "class _CopyToShards(",
            ),
            Edit(
                LOAD_WEIGHT,
                LOAD_WEIGHT.replace("self.weight.copy_(", "self.weight.data = (").rstrip("\n") + ".detach()\n",
            ),
            Edit(ADD_BIAS, "        y = F.linear(x, self.weight.t(), self.bias)\n"),
        ),
    ),
    Variant(
        "with_sums",
        "A sum of own columns among zeros; a reduce to each rank.",
        (
            Edit(
                GATHER,
                "    own = piece_range(full_size, *_place(group))\n"
                "    whole = local.new_zeros(*local.shape[:-1], full_size)\n"
                "    whole[..., own.start : own.stop] = local\n"
                "    dist.all_reduce(whole, group=group)\n"
                "    return whole\n",
            ),
            Edit(
                REDUCE_SCATTER,
                "    pieces = [piece.clone().contiguous() for piece in torch.split(full, sizes, dim=-1)]\n"
                "    for root, piece in enumerate(pieces):\n"
                "        dist.reduce(piece, group_dst=root, group=group)\n"
                "    return pieces[rank]\n",
            ),
        ),
    ),
    Variant(
        "with_columns_first",
        "The tensor forms, with columns in dimension 0 and evened with zeros; rank 0 alone draws, and scatters.",
        (
            Edit(
                GATHER,
                "    sizes = piece_sizes(full_size, dist.get_world_size(group))\n"
                "    block = _widened(local, max(sizes)).movedim(-1, 0).contiguous()\n"
                "    whole = block.new_empty(len(sizes) * len(block), *block.shape[1:])\n"
                "    all_gather_single(whole, block, group=group)\n"
                "    blocks = torch.split(whole, len(block)) if len(block) else [whole] * len(sizes)\n"
                "    parts = [block[:size] for block, size in zip(blocks, sizes, strict=True)]\n"
                "    return torch.cat(parts).movedim(0, -1).contiguous()\n",
            ),
            Edit(
                REDUCE_SCATTER,
                "    pieces = torch.split(full, sizes, dim=-1)\n"
                "    blocks = [_widened(piece, max(sizes)).movedim(-1, 0) for piece in pieces]\n"
                "    own = torch.empty_like(blocks[rank].contiguous())\n"
                "    reduce_scatter_single(own, torch.cat(blocks), group=group)\n"
                "    return own[: sizes[rank]].movedim(0, -1)\n",
            ),
            Edit(
                "from grader.given import piece_range, piece_sizes",
                "from grader.given import all_gather_single, piece_range, piece_sizes, reduce_scatter_single",
            ),
            Edit(
                DRAW,
                "if len(shape) == 1:\n"
                "            return shard_columns(torch.zeros(shape), self._rank, self._world_size)\n"
                "        master = torch.empty(shape, device=_device(self._group))\n"
                "        if self._rank == 0:\n"
                "            master.normal_(std=bound)",
            ),
            Edit(
                OWN_OF_MASTER,
                "        blocks = None\n"
                "        width = max(piece_sizes(shape[-1], self._world_size))\n"
                "        if self._rank == 0:\n"
                "            blocks = [\n"
                "                _widened(shard_columns(master, rank, self._world_size), width)\n"
                "                for rank in range(self._world_size)\n"
                "            ]\n"
                "        block = torch.empty(*shape[:-1], width)\n"
                "        dist.scatter(block, blocks, group_src=0, group=self._group)\n"
                "        own = piece_sizes(shape[-1], self._world_size)[self._rank]\n"
                "        return block[..., :own].clone(memory_format=torch.contiguous_format)\n",
            ),
        ),
    ),
    Variant(
        "with_all_to_all",
        "The sum of what an all-to-all brings; the own piece put back among the gathered; the first layer copies x.",
        (
            Edit(
                REDUCE_SCATTER,
                "    sent = full.movedim(-1, 0).contiguous()\n"
                "    received = sent.new_empty(world_size * sizes[rank], *sent.shape[1:])\n"
                "    dist.all_to_all_single(received, sent, [sizes[rank]] * world_size, sizes, group=group)\n"
                "    parts = received.reshape(world_size, sizes[rank], *sent.shape[1:])\n"
                "    return parts.sum(0).movedim(0, -1)\n",
            ),
            Edit(
                FORWARD_OF_REPLICATED,
                "rank, world_size = _place(group)\n"
                "    gathered = _gather_columns(local.detach(), full_size, group)\n"
                "    blocks = list(torch.split(gathered, piece_sizes(full_size, world_size), dim=-1))\n"
                "    blocks[rank] = local\n"
                "    return torch.cat(blocks, dim=-1)",
            ),
            Edit(CHAIN_STARTS, CHAIN_STARTS_AT_ONCE),
            Edit(NEW_LAYER, NEW_LAYER.replace("copy_input=False", "copy_input=number == 0")),
            Edit("for width_in, width_out in pairwise", "for number, (width_in, width_out) in enumerate(pairwise"),
            Edit("(pairwise(sizes)\n", "(pairwise(sizes))\n"),
        ),
    ),
    *OTHER_COLLECTIVES,
]
