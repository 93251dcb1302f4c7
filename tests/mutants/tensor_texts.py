"""Texts of reference/tensor_parallel.py that several mutants and variants replace."""


def fails(*names: str) -> tuple[str, ...]:
    """The full names of checks of tensor_parallel.py."""
    return tuple(f"tensor_parallel.{name}" for name in names)


FORWARD_OF_COPY = "return _apply(_CopyToShards, x, group)"
FORWARD_OF_SHARDED = "return _apply(_GatherForSharded, local, full_size, group)"
FORWARD_OF_REPLICATED = "return _apply(_GatherForReplicated, local, full_size, group)"
BACKWARD_OF_SHARDED = "return _reduce_scatter_columns(gradient, ctx.group), None, None"
BACKWARD_OF_REPLICATED = "return shard_columns(gradient, *_place(ctx.group)), None, None"
BACKWARD_OF_COPY = """        summed = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(summed, op=dist.ReduceOp.SUM, group=ctx.group)
        return summed, None
"""
GATHER = """    sizes = piece_sizes(full_size, dist.get_world_size(group))
    block = _widened(local, max(sizes))
    blocks = [torch.empty_like(block) for _ in sizes]
    dist.all_gather(blocks, block, group=group)
    return torch.cat([block[..., :size] for block, size in zip(blocks, sizes, strict=True)], dim=-1)
"""
REDUCE_SCATTER = """    blocks = [_widened(piece, max(sizes)) for piece in torch.split(full, sizes, dim=-1)]
    block = torch.empty_like(blocks[rank])
    dist.reduce_scatter(block, blocks, op=dist.ReduceOp.SUM, group=group)
    return block[..., : sizes[rank]].contiguous()
"""
OWN_OF_MASTER = """        dist.broadcast(master, group_src=0, group=self._group)
        return shard_columns(master, self._rank, self._world_size)
"""
DRAW = "master = torch.empty(shape, device=_device(self._group)).uniform_(-bound, bound)"
NEW_WEIGHT = "self.weight = nn.Parameter(self._own_columns_of_new_master(in_features, out_features))"
LOAD_WEIGHT = "            self.weight.copy_(shard_columns(weight_DF, self._rank, self._world_size))\n"
COPY_INPUT = "        if self.copy_input:\n            x = copy_to_shards(x, group=self._group)\n"
ADD_BIAS = "        y = x @ self.weight\n        if self.bias is not None:\n            y = y + self.bias\n"
LAST_GATHER = "            gather = gather_for_replicated if layer is self.layers[-1] else gather_for_sharded\n"
CHAIN = "            x = gather(self.activation(layer(x)), width, group=self._group)\n"
CHAIN_STARTS = "        x = copy_to_shards(x, group=self._group)\n        for layer, width"
CHAIN_STARTS_AT_ONCE = "        for layer, width"
NEW_LAYER = "ColumnParallelLinear(width_in, width_out, bias, gather_output=False, copy_input=False, group=group)"
