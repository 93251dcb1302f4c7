"""Mutants of tensor_parallel.py whose numbers are right, and which send too much, too early, or to the wrong ranks."""

from tests.mutants.mutant import Edit, Mutant
from tests.mutants.tensor_texts import (
    BACKWARD_OF_COPY,
    BACKWARD_OF_REPLICATED,
    CHAIN,
    FORWARD_OF_COPY,
    FORWARD_OF_SHARDED,
    GATHER,
    LOAD_WEIGHT,
    REDUCE_SCATTER,
    fails,
)

SUM_OF_ALL = """        parts = [torch.empty_like(gradient) for _ in range(dist.get_world_size(ctx.group))]
        dist.all_gather(parts, gradient.contiguous(), group=ctx.group)
        summed = torch.stack(parts).sum(0)
"""
SUM_OF_ALL_COLUMNS = """    parts = [torch.empty(full.shape, dtype=full.dtype) for _ in sizes]
    dist.all_gather(parts, full.contiguous(), group=group)
    return torch.split(torch.stack(parts).sum(0), sizes, dim=-1)[rank].clone()
"""
GATHER_OF_WHOLES = """    own = piece_range(full_size, *_place(group))
    whole = local.new_zeros(*local.shape[:-1], full_size)
    whole[..., own.start : own.stop] = local
    wholes = [torch.empty_like(whole) for _ in range(dist.get_world_size(group))]
    dist.all_gather(wholes, whole, group=group)
    return torch.stack(wholes).sum(0)
"""
GATHER_THROUGH_THE_STORE = """    rank, world_size = _place(group)
    if world_size == 1:
        return local.clone()
    store = dist.distributed_c10d._get_default_store()
    _PIECES[str(group)] = number = _PIECES.get(str(group), 0) + 1
    store.set(f"{group}/{number}/{rank}", str(local.tolist()))
    pieces = [store.get(f"{group}/{number}/{other}").decode() for other in range(world_size)]
    return torch.cat([local.new_tensor(eval(piece)) for piece in pieces], dim=-1)
"""

TRAFFIC = [
    Mutant(
        "copy_averages_x",
        "copy_to_shards makes sure that x is the same everywhere: it returns the mean over the ranks.",
        (
            Edit(
                FORWARD_OF_COPY,
                "x = x.contiguous()\n"
                "    same = x.detach().clone()\n"
                "    dist.broadcast(same, group_src=0, group=group)\n"
                "    return _apply(_CopyToShards, x + (same - x.detach()), group)",
            ),
        ),
        fails("copy_to_shards"),
    ),
    Mutant(
        "copy_meets_in_forward",
        "copy_to_shards calls a barrier before it returns x.",
        (Edit(FORWARD_OF_COPY, "dist.barrier(group=group)\n    " + FORWARD_OF_COPY),),
        fails("copy_to_shards", "linear_gathers_its_output"),
    ),
    Mutant(
        "copy_gathers_all_gradients",
        "Backward of copy_to_shards gathers the gradients of all ranks, and each rank adds them up.",
        (Edit(BACKWARD_OF_COPY, SUM_OF_ALL + "        return summed, None\n"),),
        fails("copy_to_shards", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "copy_sums_over_all_ranks",
        "Backward of copy_to_shards leaves the group out of its all-reduce.",
        (Edit("dist.all_reduce(summed, op=dist.ReduceOp.SUM, group=ctx.group)", "dist.all_reduce(summed)"),),
        fails("copy_to_shards_of_any_layout", "linear_of_any_shape", "mlp_of_uneven_columns"),
    ),
    Mutant(
        "copy_sums_where_needed",
        "Backward of copy_to_shards leaves out its all-reduce on rank 0.",
        (
            Edit(
                BACKWARD_OF_COPY,
                "        summed = gradient.clone(memory_format=torch.contiguous_format)\n"
                "        if dist.get_rank(ctx.group) > 0:\n"
                "            dist.all_reduce(summed, group=ctx.group)\n"
                "        return summed, None\n",
            ),
        ),
        fails("copy_to_shards", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
        mistake=54,
    ),
    Mutant(
        "sharded_gathers_all_gradients",
        "Backward of gather_for_sharded gathers the gradients of all ranks, and each rank adds up its columns.",
        (Edit(REDUCE_SCATTER, SUM_OF_ALL_COLUMNS),),
        fails("gather_for_sharded", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "gathers_wholes",
        "The gathers send the own columns among zeros for those of all others, and add up what comes.",
        (Edit(GATHER, GATHER_OF_WHOLES),),
        fails("gather_for_sharded", "gather_for_replicated", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "gathers_twice",
        "The gathers gather once to see that all is well, and once more.",
        (Edit(GATHER, GATHER.replace("    return", "    dist.all_gather(blocks, block, group=group)\n    return")),),
        fails("gather_for_sharded", "gather_for_replicated", "mlp_is_the_unsplit_network"),
    ),
    Mutant(
        "gathers_among_all_ranks",
        "The gathers leave the group out of their all-gather.",
        (Edit("dist.all_gather(blocks, block, group=group)", "dist.all_gather(blocks, block)"),),
        fails("gather_for_sharded_of_any_columns", "gather_for_replicated_of_any_columns", "mlp_of_uneven_columns"),
    ),
    Mutant(
        "gathers_unless_it_owns_nothing",
        "A rank without columns leaves the gathers out.",
        (
            Edit(
                GATHER,
                "    if local.shape[-1] == 0:\n        return local.new_zeros(*local.shape[:-1], full_size)\n" + GATHER,
            ),
        ),
        fails("gather_for_sharded_of_any_columns", "gather_for_replicated_of_any_columns", "mlp_of_uneven_columns"),
    ),
    Mutant(
        "gathers_through_the_store",
        "The gathers pass the columns on through the store, by which the ranks have found each other.",
        (
            Edit(GATHER, GATHER_THROUGH_THE_STORE),
            Edit("class _CopyToShards(", "_PIECES: dict[str, int] = {}\n\n\nclass _CopyToShards("),
        ),
        fails("gather_for_sharded", "gather_for_replicated"),
    ),
    Mutant(
        "replicated_takes_the_mean",
        "Backward of gather_for_replicated is the mean over the ranks of what all of them have already.",
        (
            Edit(
                BACKWARD_OF_REPLICATED,
                "columns = _reduce_scatter_columns(gradient, ctx.group)\n"
                "        return columns / dist.get_world_size(ctx.group), None, None",
            ),
        ),
        fails("gather_for_replicated", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
        mistake=55,
    ),
    Mutant(
        "refuses_after_the_gather",
        "The gathers look at the number of columns when they have gathered them.",
        (
            Edit(
                "    _expect_own_columns(local, full_size, group)\n    " + FORWARD_OF_SHARDED,
                "    pieces = [torch.empty_like(local) for _ in range(dist.get_world_size(group))]\n"
                "    if local.shape[-1] * len(pieces) != full_size:\n"
                "        exchanged = [torch.zeros(1) for _ in pieces]\n"
                "        dist.all_gather(exchanged, torch.ones(1), group=group)\n"
                "    _expect_own_columns(local, full_size, group)\n    " + FORWARD_OF_SHARDED,
            ),
        ),
        fails("gather_for_sharded_of_any_columns"),
    ),
    Mutant(
        "load_sends_the_master",
        "load_master takes the master of rank 0, and sends it to all ranks.",
        (
            Edit(
                LOAD_WEIGHT,
                "            weight_DF = weight_DF.detach().clone(memory_format=torch.contiguous_format)\n"
                "            dist.broadcast(weight_DF, group_src=0, group=self._group)\n" + LOAD_WEIGHT,
            ),
        ),
        fails("linear_loads_a_master"),
    ),
    Mutant(
        "layer_meets_in_forward",
        "The layer's forward starts with a barrier.",
        (
            Edit(
                "        if self.copy_input:\n            x = copy",
                "        dist.barrier(group=self._group)\n        if self.copy_input:\n            x = copy",
            ),
        ),
        fails("linear_computes_its_own_columns", "mlp_of_any_shape"),
    ),
    Mutant(
        "master_sent_by_rank_0_alone",
        "Only rank 0 calls the broadcast of the master.",
        (
            Edit(
                "        dist.broadcast(master, group_src=0, group=self._group)\n",
                "        if self._rank == 0:\n            dist.broadcast(master, group_src=0, group=self._group)\n",
            ),
        ),
        fails("linear_starts_from_one_master", "linear_loads_a_master"),
    ),
    Mutant(
        "refuses_features_together",
        "The constructor asks all ranks whether they want the same, before it looks at the number of features.",
        (
            Edit(
                "        super().__init__()\n        if in_features < 1",
                "        super().__init__()\n"
                "        dist.all_reduce(torch.tensor(in_features), group=group)\n"
                "        if in_features < 1",
            ),
        ),
        fails("linear_refuses_wrong_shapes"),
    ),
    Mutant(
        "chain_averages_at_the_end",
        "The last gather sums in backward, too; the network divides by W what comes in there.",
        (
            Edit(
                CHAIN,
                "            h = self.activation(layer(x))\n"
                "            if layer is self.layers[-1]:\n"
                "                share = 1 / dist.get_world_size(self._group)\n"
                "                h = h * share + h.detach() * (1 - share)\n"
                "            x = gather_for_sharded(h, width, group=self._group)\n",
            ),
            Edit(
                "            gather = gather_for_replicated if layer is self.layers[-1] else gather_for_sharded\n",
                "",
            ),
        ),
        fails("mlp_is_the_unsplit_network", "mlp_of_any_shape"),
        mistake=55,
    ),
    Mutant(
        "chain_gathers_before_and_after",
        "Gathers the products, too, before the activation of the own columns.",
        (
            Edit(
                CHAIN,
                "            product = layer(x)\n"
                "            gather_for_replicated(product.detach(), width, group=self._group)\n"
                "            x = gather(self.activation(product), width, group=self._group)\n",
            ),
        ),
        fails("mlp_is_the_unsplit_network", "mlp_of_any_shape"),
    ),
]
