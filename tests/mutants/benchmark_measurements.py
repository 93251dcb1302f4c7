"""Mutants of benchmark.py: which time and which size benchmark_collective reports."""

from tests.mutants.mutant import Edit, Mutant

REDUCED = "    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)\n"
MEDIAN = "    median = statistics.median(slowest.tolist())\n"
ROUNDED_UP = "    length = -(-num_elements // world_size) * world_size\n"
NUM_BYTES = "    num_bytes = length * dtype.itemsize\n"
WHOLE = "    whole = torch.zeros(length, dtype=dtype, device=device)\n"
SLOWEST = "benchmark.median_of_the_slowest"
SIZE = "benchmark.size_of_the_whole_array"
BUFFERS = "benchmark.buffers_stay_finite"

MUTANTS: list[Mutant] = [
    Mutant(
        "own_median",
        "Every rank reports its own median.",
        (Edit(REDUCED, ""),),
        (SLOWEST,),
    ),
    Mutant(
        "mean_over_ranks",
        "Takes the mean over ranks, as the lecture does.",
        (Edit(REDUCED, "    dist.all_reduce(slowest, group=group)\n    slowest /= world_size\n"),),
        (SLOWEST,),
    ),
    Mutant(
        "slowest_median",
        "Takes the median first and the maximum over ranks of the medians afterwards.",
        (
            Edit(
                REDUCED,
                "    slowest = torch.tensor([statistics.median(seconds)], dtype=torch.float64)\n" + REDUCED,
            ),
        ),
        (SLOWEST,),
    ),
    Mutant(
        "mean_over_iterations",
        "Takes the mean over iterations.",
        (Edit(MEDIAN, "    median = statistics.mean(slowest.tolist())\n"),),
        (SLOWEST,),
    ),
    Mutant(
        "lower_median",
        "torch.median takes the lower of the two in the middle.",
        (Edit(MEDIAN, "    median = float(slowest.median())\n"),),
        (SLOWEST,),
    ),
    Mutant(
        "all_reduce_returns_nothing",
        "Takes the result of dist.all_reduce, which is None.",
        (Edit(REDUCED, "    slowest = dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)\n"),),
        (SLOWEST,),
        mistake=14,
    ),
    Mutant(
        "only_on_rank_0",
        "Reduces the times to rank 0; the others keep what is in their buffer.",
        (Edit(REDUCED, "    dist.reduce(slowest, group_dst=0, op=dist.ReduceOp.MAX, group=group)\n"),),
        (SLOWEST,),
    ),
    Mutant(
        "size_not_rounded",
        "Reports the size that was asked for.",
        (Edit(NUM_BYTES, "    num_bytes = num_elements * dtype.itemsize\n"),),
        (SIZE,),
    ),
    Mutant(
        "rounded_down",
        "Drops the elements that do not divide.",
        (Edit(ROUNDED_UP, "    length = num_elements // world_size * world_size or world_size\n"),),
        (SIZE,),
    ),
    Mutant(
        "four_bytes_each",
        "Counts 4 bytes for every dtype.",
        (Edit(NUM_BYTES, "    num_bytes = length * 4\n"),),
        (SIZE,),
        mistake=20,
    ),
    Mutant(
        "kibibytes",
        "Reports the size in units of 1024 bytes.",
        (Edit(NUM_BYTES, "    num_bytes = length * dtype.itemsize / 1024\n"),),
        (SIZE,),
        mistake=20,
    ),
    Mutant(
        "size_of_the_smaller_side",
        "Reports the output's bytes of a reduce-scatter, and the input's of an all-gather.",
        (
            Edit(
                NUM_BYTES,
                NUM_BYTES
                + '    if operation in ("reduce_scatter", "all_gather"):\n'
                + "        num_bytes //= world_size\n",
            ),
        ),
        (SIZE,),
        mistake=19,
    ),
    Mutant(
        "the_whole_array_is_the_input",
        "Gathers whole arrays, so that S is one rank's input.",
        (
            Edit(
                WHOLE,
                "    piece_length = length\n"
                "    whole = torch.zeros(length * dist.get_world_size(group), dtype=dtype, device=device)\n",
            ),
            Edit("torch.zeros(length // dist.get_world_size(group),", "torch.zeros(piece_length,"),
        ),
        (SIZE,),
    ),
    Mutant(
        "float32_always",
        "Allocates float32 and reports the bytes of the dtype.",
        (Edit(WHOLE, "    dtype = torch.float32\n" + WHOLE),),
        (SIZE,),
    ),
    Mutant(
        "always_all_reduce",
        "Runs an all-reduce for every operation.",
        (Edit("    match operation:\n", '    match "all_reduce":\n'),),
        (SIZE, BUFFERS),
    ),
    Mutant(
        "algorithm_bandwidth_twice",
        "Reports the algorithm bandwidth as bus bandwidth as well.",
        (
            Edit(
                "        bus_bandwidth(operation, num_bytes, median, world_size),\n",
                "        algorithm_bandwidth(num_bytes, median),\n",
            ),
        ),
        (SIZE,),
    ),
    Mutant(
        "a_plain_tuple",
        "Returns a plain tuple of the six values.",
        (Edit("    return Measurement(\n        operation,\n", "    return (\n        operation,\n"),),
        (SLOWEST,),
    ),
]
