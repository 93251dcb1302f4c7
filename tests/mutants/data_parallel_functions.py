"""Mutants of the functions of data_parallel.py."""

from tests.mutants.data_parallel_texts import ALL_ROWS, ALL_TENSORS, OWN_ROWS
from tests.mutants.mutant import Edit, Mutant

MUTANTS: list[Mutant] = [
    Mutant(
        "shard_drops_the_remainder",
        "Every rank gets n // W rows; the last rows are on no rank.",
        (
            Edit(
                OWN_ROWS,
                """\
    piece_range(batch.shape[0], rank, world_size)
    size = batch.shape[0] // world_size
    return batch[rank * size : (rank + 1) * size]
""",
            ),
        ),
        ("data_parallel.shard_batch",),
    ),
    Mutant(
        "shard_pads_with_duplicates",
        "Every rank gets ceil(n / W) rows; the last ranks begin again with the first rows.",
        (
            Edit(
                OWN_ROWS,
                """\
    piece_range(batch.shape[0], rank, world_size)
    size = -(-batch.shape[0] // world_size)
    return batch[[(rank * size + row) % batch.shape[0] for row in range(size)]]
""",
            ),
        ),
        ("data_parallel.shard_batch",),
        mistake=42,
    ),
    Mutant(
        "shard_takes_every_wth_row",
        "Rank r takes rows r, r + W, r + 2W, ….",
        (Edit(OWN_ROWS, "    piece_range(batch.shape[0], rank, world_size)\n    return batch[rank::world_size]\n"),),
        ("data_parallel.shard_batch",),
    ),
    Mutant(
        "shard_of_rank_minus_one",
        "The rank is an index into a list of shards, so that -1 is the last rank.",
        (Edit(OWN_ROWS, "    return torch.tensor_split(batch, world_size)[rank]\n"),),
        ("data_parallel.shard_batch",),
    ),
    Mutant(
        "buffers_not_broadcast",
        "The parameters are broadcast and the buffers are not.",
        (Edit(ALL_TENSORS, "list(module.parameters())"),),
        ("data_parallel.broadcast_module", "data_parallel.wrapper", "data_parallel.naive_training"),
        mistake=24,
    ),
    Mutant(
        "only_the_state_dict_is_broadcast",
        "What is broadcast is the state_dict, which lacks the buffers that are not persistent.",
        (Edit(ALL_TENSORS, "list(module.state_dict(keep_vars=True).values())"),),
        ("data_parallel.broadcast_module",),
    ),
    Mutant(
        "frozen_not_broadcast",
        "Only parameters that want a gradient are broadcast.",
        (Edit(ALL_TENSORS, "[*(p for p in module.parameters() if p.requires_grad), *module.buffers()]"),),
        ("data_parallel.broadcast_module",),
        mistake=34,
    ),
    Mutant(
        "broadcast_from_0_always",
        "src is ignored.",
        (Edit("dist.broadcast(message, group_src=src,", "dist.broadcast(message, group_src=0,"),),
        ("data_parallel.broadcast_module", "data_parallel.groups"),
    ),
    Mutant(
        "broadcast_from_a_global_rank",
        "src is taken as a rank of the world, not of the group.",
        (Edit("dist.broadcast(message, group_src=src,", "dist.broadcast(message, src=src,"),),
        ("data_parallel.groups",),
    ),
    Mutant(
        "broadcast_wraps_src_around",
        "A src outside the group is taken modulo the world size.",
        (Edit("    if not 0 <= src < world_size:\n", "    src %= world_size\n    if not 0 <= src < world_size:\n"),),
        ("data_parallel.broadcast_module",),
    ),
    Mutant(
        "broadcast_replaces_the_memory",
        "The tensors get new memory with the right values.",
        (
            Edit("message = elements.contiguous()", "message = elements.contiguous().clone()"),
            Edit("            elements.copy_(message)\n", "            tensor.data = message\n"),
        ),
        ("data_parallel.broadcast_module", "data_parallel.broadcast_module_layouts"),
    ),
    Mutant(
        "broadcast_of_views_as_they_lie",
        "Tensors that are not contiguous are given to the backend, which mixes up their elements.",
        (Edit("message = elements.contiguous()", "message = elements"),),
        ("data_parallel.broadcast_module_layouts",),
        mistake=11,
    ),
    Mutant(
        "loss_scale_of_own_rows",
        "The scale is 1 / (own rows): each rank's mean, whatever the others hold.",
        (Edit(ALL_ROWS, "local_rows * world_size"),),
        ("data_parallel.loss_scale",),
        mistake=28,
    ),
    Mutant(
        "loss_scale_of_rank_0",
        "Every rank is taken to have the rows of rank 0.",
        (Edit(ALL_ROWS, "exchange_sizes(local_rows, group=group)[0] * world_size"),),
        ("data_parallel.loss_scale",),
        mistake=43,
    ),
    Mutant(
        "loss_scale_of_nothing_is_0",
        "Where no rank has a row the scale is 0.",
        (Edit("    if all_rows == 0:\n", "    if all_rows == 0:\n        return 0.0\n    if all_rows < 0:\n"),),
        ("data_parallel.loss_scale",),
    ),
    Mutant(
        "loss_scale_is_a_tensor",
        "The scale is returned as a tensor of one element.",
        (Edit("return world_size / all_rows", "return torch.tensor(world_size / all_rows)"),),
        ("data_parallel.loss_scale",),
    ),
    Mutant(
        "loss_scale_takes_rows_below_0",
        "A number of rows below 0 is not refused.",
        (Edit("    if local_rows < 0:\n", "    if local_rows < -(2**62):\n"),),
        ("data_parallel.loss_scale",),
    ),
    Mutant(
        "loss_scale_of_the_world",
        "W is the size of the whole world, not of the group.",
        (Edit("return world_size / all_rows", "return dist.get_world_size() / all_rows"),),
        ("data_parallel.groups",),
    ),
    Mutant(
        "buckets_in_elements",
        "Elements are counted, not bytes.",
        (Edit("size = parameter.numel() * parameter.element_size()", "size = parameter.numel()"),),
        ("data_parallel.plan_buckets",),
        mistake=37,
    ),
    Mutant(
        "buckets_in_mebibytes",
        "bucket_bytes is taken for a number of MiB.",
        (Edit("num_bytes + size > bucket_bytes", "num_bytes + size > bucket_bytes * 2**20"),),
        ("data_parallel.plan_buckets",),
        mistake=37,
    ),
    Mutant(
        "buckets_of_4_bytes_an_element",
        "Every element is taken to have 4 bytes.",
        (Edit("size = parameter.numel() * parameter.element_size()", "size = parameter.numel() * 4"),),
        ("data_parallel.plan_buckets",),
        mistake=37,
    ),
    Mutant(
        "last_bucket_is_lost",
        "The bucket that is open at the end is never added.",
        (Edit("    return buckets\n", "    return buckets[:-1]\n"),),
        ("data_parallel.plan_buckets", "data_parallel.bucketed_gradients"),
        mistake=36,
    ),
    Mutant(
        "first_bucket_is_empty",
        "The list of buckets begins with an empty one.",
        (Edit("    buckets: list[list[int]] = []\n", "    buckets: list[list[int]] = [[]]\n"),),
        ("data_parallel.plan_buckets", "data_parallel.bucketed_gradients"),
        mistake=38,
    ),
    Mutant(
        "buckets_from_the_first_layer",
        "Parameters are taken in their own order, not in reverse.",
        (Edit("in reversed(range(len(parameters))):", "in range(len(parameters)):"),),
        ("data_parallel.plan_buckets", "data_parallel.bucketed_gradients"),
    ),
    Mutant(
        "buckets_mix_dtypes",
        "A new dtype does not close the bucket.",
        (Edit("if kind != (parameter.dtype, parameter.device) or", "if kind is None or"),),
        ("data_parallel.plan_buckets",),
    ),
    Mutant(
        "buckets_mix_devices",
        "Another device does not close the bucket.",
        (
            Edit(
                "if kind != (parameter.dtype, parameter.device) or",
                "if kind is None or kind[0] != parameter.dtype or",
            ),
        ),
        ("data_parallel.plan_buckets",),
    ),
    Mutant(
        "a_full_bucket_closes_early",
        "A bucket that would be exactly full is closed before.",
        (Edit("num_bytes + size > bucket_bytes", "num_bytes + size >= bucket_bytes"),),
        ("data_parallel.plan_buckets",),
    ),
    Mutant(
        "buckets_of_0_bytes",
        "bucket_bytes of 0 is not refused.",
        (Edit("    if bucket_bytes < 1:\n", "    if bucket_bytes < 0:\n"),),
        ("data_parallel.plan_buckets", "data_parallel.bucketed_gradients"),
    ),
]
