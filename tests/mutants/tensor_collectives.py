"""Variants of tensor_parallel.py by other means of torch: through a root, pickled, and in autograd's own forms."""

from tests.mutants.mutant import Edit, Variant
from tests.mutants.tensor_texts import BACKWARD_OF_COPY, FORWARD_OF_SHARDED, GATHER, REDUCE_SCATTER
from tests.mutants.tensor_texts import fails as checks

OTHER_COLLECTIVES = [
    Variant(
        "with_a_root",
        "A gather to one rank and a broadcast; a reduce and a scatter; a reduce and a broadcast.",
        (
            Edit(
                GATHER,
                "    rank, world_size = _place(group)\n"
                "    sizes = piece_sizes(full_size, world_size)\n"
                "    block = _widened(local, max(sizes))\n"
                "    blocks = [torch.empty_like(block) for _ in sizes] if rank == 0 else None\n"
                "    dist.gather(block, blocks, group_dst=0, group=group)\n"
                "    whole = local.new_empty(*local.shape[:-1], full_size)\n"
                "    if blocks is not None:\n"
                "        pieces = [block[..., :size] for block, size in zip(blocks, sizes, strict=True)]\n"
                "        whole = torch.cat(pieces, dim=-1)\n"
                "    dist.broadcast(whole, group_src=0, group=group)\n"
                "    return whole\n",
            ),
            Edit(
                REDUCE_SCATTER,
                "    total = full.clone(memory_format=torch.contiguous_format)\n"
                "    dist.reduce(total, group_dst=0, group=group)\n"
                "    blocks = [_widened(piece, max(sizes)) for piece in torch.split(total, sizes, dim=-1)]\n"
                "    block = torch.empty_like(blocks[rank])\n"
                "    dist.scatter(block, blocks if rank == 0 else None, group_src=0, group=group)\n"
                "    return block[..., : sizes[rank]].contiguous()\n",
            ),
            Edit(
                BACKWARD_OF_COPY,
                "        summed = gradient.clone(memory_format=torch.contiguous_format)\n"
                "        dist.reduce(summed, group_dst=0, group=ctx.group)\n"
                "        dist.broadcast(summed, group_src=0, group=ctx.group)\n"
                "        return summed, None\n",
            ),
        ),
    ),
    Variant(
        "with_pickled_objects_and_handles",
        "Gathers pickled tensors, with the sizes that grader.given exchanges; sums with handles, in two halves.",
        (
            Edit(
                GATHER,
                "    sizes = exchange_sizes(local.shape[-1], group=group)\n"
                "    pieces: list[Any] = [None] * len(sizes)\n"
                "    dist.all_gather_object(pieces, local.detach().clone(), group=group)\n"
                "    return torch.cat(pieces, dim=-1)\n",
            ),
            Edit(
                BACKWARD_OF_COPY,
                "        summed = gradient.clone(memory_format=torch.contiguous_format)\n"
                "        halves = summed.reshape(-1).chunk(2)\n"
                "        handles = [dist.all_reduce(half, group=ctx.group, async_op=True) for half in halves]\n"
                "        for handle in handles:\n"
                "            handle.wait()\n"
                "        return summed, None\n",
            ),
            Edit(
                "from grader.given import piece_range, piece_sizes",
                "from grader.given import exchange_sizes, piece_range, piece_sizes",
            ),
        ),
    ),
    Variant(
        "with_torch_distributed_nn",
        "torch's own collectives that autograd goes through. On gloo they go wrong in a group of some ranks.",
        (
            Edit(
                FORWARD_OF_SHARDED,
                "sizes = piece_sizes(full_size, dist.get_world_size(group))\n"
                "    block = F.pad(local, (0, max(sizes) - local.shape[-1])).contiguous()\n"
                "    blocks = torch.distributed.nn.functional.all_gather(block, group or dist.group.WORLD)\n"
                "    return torch.cat([block[..., :size] for block, size in zip(blocks, sizes, strict=True)], dim=-1)",
            ),
            Edit(
                BACKWARD_OF_COPY,
                "        group = ctx.group or dist.group.WORLD\n"
                "        total = torch.distributed.nn.functional.all_reduce(gradient.contiguous(), group=group)\n"
                "        return total.clone(), None\n",
            ),
            Edit(
                "import torch.distributed as dist\n",
                "import torch.distributed as dist\nimport torch.distributed.nn.functional\n",
            ),
        ),
        checks("copy_to_shards", "gather_for_sharded", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
    ),
    Variant(
        "with_functional_collectives",
        "torch's functional collectives: tensors that wait by themselves.",
        (
            Edit(
                GATHER,
                "    sizes = piece_sizes(full_size, dist.get_world_size(group))\n"
                "    block = _widened(local.detach(), max(sizes)).reshape(1, -1)\n"
                "    rows = functional.all_gather_tensor(block, 0, group or dist.group.WORLD)\n"
                "    blocks = rows.reshape(len(sizes), *local.shape[:-1], max(sizes))\n"
                "    pieces = [block[..., :size] for block, size in zip(blocks, sizes, strict=True)]\n"
                "    return torch.cat(pieces, dim=-1)\n",
            ),
            Edit(
                BACKWARD_OF_COPY,
                '        summed = functional.all_reduce(gradient.contiguous(), "sum", ctx.group or dist.group.WORLD)\n'
                "        return functional.wait_tensor(summed), None\n",
            ),
            Edit(
                "import torch.distributed as dist\n",
                "import torch.distributed as dist\nimport torch.distributed._functional_collectives as functional\n",
            ),
        ),
    ),
]
