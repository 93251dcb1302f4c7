"""Mutants of tensor_parallel.py: the shards and the three functions that are conjugates."""

from tests.mutants.mutant import Edit, Mutant
from tests.mutants.tensor_texts import (
    BACKWARD_OF_COPY,
    BACKWARD_OF_REPLICATED,
    BACKWARD_OF_SHARDED,
    FORWARD_OF_REPLICATED,
    FORWARD_OF_SHARDED,
    GATHER,
    REDUCE_SCATTER,
    fails,
)

SHARDS = [
    Mutant(
        "shard_is_a_view",
        "Slices without a copy: the shard keeps the whole weight alive and is not contiguous.",
        (Edit("columns.stop].clone(memory_format=torch.contiguous_format)", "columns.stop]"),),
        fails("shard_columns"),
    ),
    Mutant(
        "shard_of_rows",
        "Splits dimension 0, as for nn.Linear's layout (out, in).",
        (
            Edit("piece_range(weight_DF.shape[-1], rank, world_size)", "piece_range(len(weight_DF), rank, world_size)"),
            Edit("return weight_DF[..., columns.start", "return weight_DF[columns.start"),
        ),
        fails("shard_columns", "linear_loads_a_master"),
    ),
    Mutant(
        "shard_forgets_the_rest",
        "Every rank owns F // W columns, and the last ones belong to nobody.",
        (
            Edit(
                "columns = piece_range(weight_DF.shape[-1], rank, world_size)",
                "width = weight_DF.shape[-1] // world_size\n    columns = range(rank * width, (rank + 1) * width)",
            ),
        ),
        fails("shard_columns_of_any_number"),
        mistake=50,
    ),
    Mutant(
        "shard_of_any_rank",
        "A rank that is out of range wraps around.",
        (Edit("piece_range(weight_DF.shape[-1], rank, w", "piece_range(weight_DF.shape[-1], rank % world_size, w"),),
        fails("shard_columns_of_any_number"),
    ),
]

CONJUGATES = [
    Mutant(
        "copy_does_not_sum",
        "Backward of copy_to_shards passes this rank's gradient on.",
        (Edit(BACKWARD_OF_COPY, "        return gradient.clone(), None\n"),),
        fails("copy_to_shards", "linear_gathers_its_output", "mlp_is_the_unsplit_network"),
        mistake=54,
    ),
    Mutant(
        "copy_takes_the_mean",
        "Backward of copy_to_shards is an all-reduce with AVG.",
        (Edit("dist.all_reduce(summed, op=dist.ReduceOp.SUM,", "dist.all_reduce(summed, op=dist.ReduceOp.AVG,"),),
        fails("copy_to_shards"),
    ),
    Mutant(
        "copy_sums_in_place",
        "Backward of copy_to_shards reduces into the gradient that it is given, which others hold too.",
        (Edit("summed = gradient.clone(memory_format=torch.contiguous_format)", "summed = gradient.contiguous()"),),
        fails("copy_to_shards_of_any_layout"),
    ),
    Mutant(
        "copy_sums_in_any_layout",
        "Backward of copy_to_shards keeps the memory layout of a gradient, which gloo then sums in the wrong places.",
        (Edit("gradient.clone(memory_format=torch.contiguous_format)", "gradient.clone()"),),
        fails("copy_to_shards_of_any_layout"),
        mistake=11,
    ),
    Mutant(
        "copy_outside_the_group",
        "copy_to_shards returns x on a rank that is not in the group.",
        (Edit("    _place(group)\n    return _apply(_CopyToShards", "    return _apply(_CopyToShards"),),
        fails("copy_to_shards_of_any_layout"),
    ),
    Mutant(
        "cat_of_rows",
        "The gathered pieces are concatenated along dimension 0.",
        (Edit("zip(blocks, sizes, strict=True)], dim=-1)", "zip(blocks, sizes, strict=True)], dim=0)"),),
        fails("gather_for_sharded", "gather_for_replicated", "linear_gathers_its_output"),
        mistake=51,
    ),
    Mutant(
        "gather_into_tensor_as_it_lies",
        "all_gather_single lays the ranks' blocks one below the other; the result is only given another shape.",
        (
            Edit(
                GATHER,
                "    world_size = dist.get_world_size(group)\n"
                "    flat = local.new_empty(world_size * local.numel())\n"
                "    all_gather_single(flat, local.reshape(-1), group=group)\n"
                "    return flat.reshape(*local.shape[:-1], full_size)\n",
            ),
            Edit("from grader.given import piece_range, piece_sizes", "from grader.given import *"),
        ),
        fails("gather_for_sharded", "gather_for_replicated"),
        mistake=51,
    ),
    Mutant(
        "sharded_keeps_its_slice",
        "Slicing everywhere: backward of gather_for_sharded keeps the own slice and loses what other ranks add.",
        (Edit(BACKWARD_OF_SHARDED, "return shard_columns(gradient, *_place(ctx.group)), None, None"),),
        fails("gather_for_sharded", "mlp_is_the_unsplit_network", "mlp_trains_as_the_unsplit_network"),
        mistake=54,
    ),
    Mutant(
        "replicated_sums",
        "Reduce-scatter everywhere: backward of gather_for_replicated counts the gradient W times.",
        (Edit(BACKWARD_OF_REPLICATED, BACKWARD_OF_SHARDED),),
        fails(
            "gather_for_replicated",
            "linear_gathers_its_output",
            "mlp_is_the_unsplit_network",
            "mlp_trains_as_the_unsplit_network",
        ),
        mistake=55,
    ),
    Mutant(
        "all_gather_cuts_autograd",
        "Gathers with dist.all_gather alone, through which no gradient comes back.",
        (
            Edit(FORWARD_OF_SHARDED, "return _gather_columns(local.detach(), full_size, group)"),
            Edit(FORWARD_OF_REPLICATED, "return _gather_columns(local.detach(), full_size, group)"),
        ),
        fails(
            "gather_for_sharded",
            "gather_for_replicated",
            "linear_gathers_its_output",
            "mlp_is_the_unsplit_network",
            "mlp_trains_as_the_unsplit_network",
        ),
        mistake=53,
    ),
    Mutant(
        "sharded_puts_its_own_back",
        "gather_for_sharded puts the own piece, with its graph, among those that dist.all_gather brought.",
        (
            Edit(
                FORWARD_OF_SHARDED,
                "rank, world_size = _place(group)\n"
                "    gathered = _gather_columns(local.detach(), full_size, group)\n"
                "    blocks = list(torch.split(gathered, piece_sizes(full_size, world_size), dim=-1))\n"
                "    blocks[rank] = local\n"
                "    return torch.cat(blocks, dim=-1)",
            ),
        ),
        fails("gather_for_sharded", "mlp_is_the_unsplit_network"),
        mistake=53,
    ),
    Mutant(
        "replicated_slices_the_first_columns",
        "Every rank takes rank 0's slice of the gradient, which a gradient of ones does not show.",
        (Edit(BACKWARD_OF_REPLICATED, "return shard_columns(gradient, 0, _place(ctx.group)[1]), None, None"),),
        fails("gather_for_replicated", "linear_gathers_its_output"),
        mistake=58,
    ),
    Mutant(
        "sharded_sums_the_first_columns",
        "Every rank takes rank 0's columns of the sum, which gradients of ones do not show.",
        (Edit(REDUCE_SCATTER, REDUCE_SCATTER.replace("(block, blocks,", "(block, blocks[:1] * world_size,")),),
        fails("gather_for_sharded", "mlp_is_the_unsplit_network"),
        mistake=58,
    ),
    Mutant(
        "padding_stays",
        "The columns that make pieces equally wide for the all-gather stay in the result.",
        (Edit("torch.cat([block[..., :size] for block, size", "torch.cat([block for block, size"),),
        fails("gather_for_sharded_of_any_columns", "gather_for_replicated_of_any_columns", "mlp_of_uneven_columns"),
    ),
    Mutant(
        "any_number_of_columns",
        "The gathers take whatever number of columns comes.",
        (Edit("if local.dim() == 0 or local.shape[-1] != own:", "if local.dim() == 0:"),),
        fails("gather_for_sharded_of_any_columns", "gather_for_replicated_of_any_columns"),
    ),
    Mutant(
        "one_rank_returns_its_argument",
        "In a world of 1 the gathers return what they are given.",
        (Edit(GATHER, "    if dist.get_world_size(group) == 1:\n        return local\n" + GATHER),),
        fails("gather_for_sharded", "gather_for_replicated"),
    ),
    Mutant(
        "rank_of_the_world",
        "Takes the rank in the world for the rank in the group.",
        (
            Edit(
                "    return rank, dist.get_world_size(group)\n",
                "    return dist.get_rank(), dist.get_world_size(group)\n",
            ),
        ),
        fails("gather_for_sharded_of_any_columns", "gather_for_replicated_of_any_columns", "linear_of_any_shape"),
    ),
]
