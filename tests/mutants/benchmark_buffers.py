"""Mutants of benchmark.py: what benchmark_collective runs, in which group, and what it refuses."""

from tests.mutants.mutant import Edit, Mutant

REDUCED = "    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)\n"
ROUNDED_UP = "    length = -(-num_elements // world_size) * world_size\n"
ALL_REDUCE = "            return partial(dist.all_reduce, whole, group=group)\n"
WHOLE = "    whole = torch.zeros(length, dtype=dtype, device=device)\n"
BARRIER = "barrier=barrier or (lambda: dist.barrier(group=group)),"
SYNCHRONIZE = "synchronize=synchronize or (lambda: given.synchronize(device)),"
MEASURED = "    median = statistics.median(slowest.tolist())\n"
SIZE = "benchmark.size_of_the_whole_array"
BUFFERS = "benchmark.buffers_stay_finite"
DEFAULTS = "benchmark.own_synchronize_and_barrier"
GROUPS = "benchmark.any_group"
ARGUMENTS = "benchmark.wrong_arguments"

MUTANTS: list[Mutant] = [
    Mutant(
        "ones_that_grow",
        "Sums ones in place, again and again.",
        (Edit(WHOLE, WHOLE.replace("zeros", "ones")),),
        (BUFFERS,),
    ),
    Mutant(
        "memory_that_is_not_written",
        "Leaves the array as torch.empty has it.",
        (Edit(WHOLE, WHOLE.replace("zeros", "empty")),),
        (BUFFERS,),
    ),
    Mutant(
        "allocates_while_timed",
        "Makes a fresh tensor in each run, which keeps values finite and is measured too.",
        (Edit(ALL_REDUCE, "            return lambda: dist.all_reduce(torch.ones_like(whole), group=group)\n"),),
        (BUFFERS,),
        mistake=18,
    ),
    Mutant(
        "times_the_launch",
        "Starts the collective asynchronously and does not wait for it.",
        (Edit(ALL_REDUCE, ALL_REDUCE.replace("group=group", "group=group, async_op=True")),),
        (BUFFERS, SIZE),
        mistake=15,
    ),
    Mutant(
        "waits_for_the_run_before",
        "Each run waits for the all-reduce that the run before has started.",
        (
            Edit("def _check_counts(", "_STARTED: list[dist.Work] = []\n\n\ndef _check_counts("),
            Edit(
                ALL_REDUCE,
                "            def run() -> None:\n"
                "                while _STARTED:\n                    _STARTED.pop().wait()\n"
                "                _STARTED.append(dist.all_reduce(whole, group=group, async_op=True))\n\n"
                "            return run\n",
            ),
            Edit(REDUCED, "    while _STARTED:\n        _STARTED.pop().wait()\n" + REDUCED),
        ),
        (BUFFERS,),
        mistake=15,
    ),
    Mutant(
        "two_in_one",
        "Warms the links up with a second all-reduce in each run.",
        (
            Edit(
                ALL_REDUCE,
                "            return lambda: [dist.all_reduce(whole, group=group) for _ in range(2)]\n",
            ),
        ),
        (BUFFERS,),
    ),
    Mutant(
        "no_synchronize_of_its_own",
        "Synchronizes only if a function for it is passed.",
        (Edit(SYNCHRONIZE, "synchronize=synchronize or (lambda: None),"),),
        (DEFAULTS,),
        mistake=16,
    ),
    Mutant(
        "no_barrier_of_its_own",
        "Meets the other ranks only if a function for it is passed.",
        (Edit(BARRIER, "barrier=barrier or (lambda: None),"),),
        (DEFAULTS,),
    ),
    Mutant(
        "barrier_of_the_world",
        "Waits for all ranks of the world, not for those of the group.",
        (Edit(BARRIER, "barrier=barrier or dist.barrier,"),),
        (GROUPS,),
    ),
    Mutant(
        "root_of_the_world",
        "Broadcasts from the process whose global rank is 0.",
        (Edit("partial(dist.broadcast, whole, group=group, group_src=0)", "partial(dist.broadcast, whole, 0, group)"),),
        (GROUPS,),
    ),
    Mutant(
        "world_size_of_the_world",
        "Takes the world size of the default group.",
        (Edit("    world_size = dist.get_world_size(group)\n", "    world_size = dist.get_world_size()\n"),),
        (GROUPS,),
    ),
    Mutant(
        "slowest_of_the_world",
        "Takes the maximum over all ranks of the world.",
        (Edit(REDUCED, "    dist.all_reduce(slowest, dist.ReduceOp.MAX)\n"),),
        (GROUPS,),
    ),
    Mutant(
        "strangers_may_call",
        "Does not look whether the rank is in the group.",
        (
            Edit(
                "    if dist.get_rank(group) < 0:\n"
                '        raise ValueError("this rank is not in the group; only the group\'s members may call")\n',
                "",
            ),
        ),
        (GROUPS,),
    ),
    Mutant(
        "any_operation",
        "Takes an unknown operation for one with the factor (W − 1)/W.",
        (Edit("    if operation not in get_args(Operation):\n", "    if not operation:\n"),),
        (ARGUMENTS,),
    ),
    Mutant(
        "negative_counts",
        "Takes any number of warm-up calls and iterations.",
        (
            Edit("    if warmup < 0:\n", "    if warmup is None:\n"),
            Edit("    if iterations < 1:\n", "    if iterations is None:\n"),
        ),
        (ARGUMENTS,),
    ),
    Mutant(
        "no_elements",
        "Takes an array without elements.",
        (Edit("    if num_elements < 1:\n", "    if num_elements < 0:\n"),),
        (ARGUMENTS,),
    ),
    Mutant(
        "checks_afterwards",
        "Checks the number of elements when the collective has run.",
        (
            Edit("    if num_elements < 1:\n", "    wrong = num_elements < 1\n    if num_elements is None:\n"),
            Edit(
                MEASURED,
                MEASURED + '    if wrong:\n        raise ValueError(f"num_elements is {num_elements}, expected 1")\n',
            ),
            Edit(ROUNDED_UP, ROUNDED_UP.replace("-(-num_elements", "-(-abs(num_elements)")),
        ),
        (ARGUMENTS,),
    ),
]
