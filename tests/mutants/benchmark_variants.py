"""Variants of benchmark.py."""

from tests.mutants.mutant import Edit, Variant

REDUCED = "    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=group)\n"
MEDIAN = "    median = statistics.median(slowest.tolist())\n"
ALL_REDUCE = "            return partial(dist.all_reduce, whole, group=group)\n"
WHOLE = "    whole = torch.zeros(length, dtype=dtype, device=device)\n"
BARRIER = "barrier=barrier or (lambda: dist.barrier(group=group)),"
SYNCHRONIZE = "synchronize=synchronize or (lambda: given.synchronize(device)),"
LIST_FORMS = """            pieces = list(whole.chunk(dist.get_world_size(group)))
            return partial(dist.{function}, {arguments}, group=group)
"""
CALL_OF_THE_OTHER = f"""    seconds = time_collective(
        _collective(operation, length, dtype, torch.device(device), group),
        warmup=warmup,
        iterations=iterations,
        {SYNCHRONIZE}
        {BARRIER}
        clock=clock,
    )
"""
TABLE_OF_TIMES = "    slowest = torch.tensor(seconds, dtype=torch.float64, device=device)\n"
OWN_LOOP = """    run = _collective(operation, length, dtype, torch.device(device), group)
    synchronize = synchronize or (lambda: given.synchronize(device))
    barrier = barrier or (lambda: dist.barrier(group=group))
    for _ in range(warmup):
        run()
    slowest = torch.zeros(iterations, dtype=torch.float64)
    for i in range(iterations):
        synchronize()
        barrier()
        start = clock()
        run()
        synchronize()
        slowest[i] = clock() - start
        dist.all_reduce(slowest[i], dist.ReduceOp.MAX, group=group)
"""

VARIANTS: list[Variant] = [
    Variant(
        "list_forms",
        "Uses the forms of torch's collectives that take lists of tensors, on views of one buffer.",
        (
            Edit(
                "            return partial(given.all_gather_single, whole, piece, group=group)\n",
                LIST_FORMS.format(function="all_gather", arguments="pieces, piece"),
            ),
            Edit(
                "            return partial(given.reduce_scatter_single, piece, whole, group=group)\n",
                LIST_FORMS.format(function="reduce_scatter", arguments="piece, pieces"),
            ),
        ),
    ),
    Variant(
        "asynchronous_and_waited_for",
        "Starts each collective asynchronously and waits for its handle in run().",
        (
            Edit(ALL_REDUCE, "            return lambda: dist.all_reduce(whole, group=group, async_op=True).wait()\n"),
            Edit(
                "            return partial(given.all_gather_single, whole, piece, group=group)\n",
                "            return lambda: dist.all_gather_into_tensor(\n"
                "                whole, piece, group=group, async_op=True\n            ).wait()\n",
            ),
        ),
    ),
    Variant(
        "averages_of_ones",
        "Takes the average of ones where the dtype has one, which stays as it is.",
        (
            Edit(WHOLE, WHOLE.replace("zeros", "ones")),
            Edit(
                ALL_REDUCE,
                "            op = dist.ReduceOp.AVG if dtype.is_floating_point else dist.ReduceOp.MAX\n"
                "            return partial(dist.all_reduce, whole, op, group=group)\n",
            ),
            Edit(
                "            return partial(dist.reduce, whole, group=group, group_dst=0)\n",
                "            return partial(dist.reduce, whole, op=dist.ReduceOp.MAX, group=group, group_dst=0)\n",
            ),
        ),
    ),
    Variant(
        "times_as_objects",
        "Gathers all times as Python objects and takes the maximum there.",
        (
            Edit(
                TABLE_OF_TIMES + REDUCED,
                "    everyone = [None] * world_size\n"
                "    dist.all_gather_object(everyone, seconds, group=group)\n"
                "    slowest = [max(together) for together in zip(*everyone)]\n",
            ),
            Edit(MEDIAN, "    median = statistics.median(slowest)\n"),
        ),
    ),
    Variant(
        "times_in_float32",
        "Reduces the times in single precision.",
        (Edit("torch.tensor(seconds, dtype=torch.float64, device=device)", "torch.tensor(seconds, device=device)"),),
    ),
    Variant(
        "a_loop_of_its_own",
        "Times in benchmark_collective itself and reduces each time as it comes, outside the timed region.",
        (Edit(CALL_OF_THE_OTHER + TABLE_OF_TIMES + REDUCED, OWN_LOOP),),
    ),
    Variant(
        "nothing_in_a_world_of_1",
        "Runs nothing where there is nobody to talk to.",
        (
            Edit(
                "    match operation:\n",
                "    if dist.get_world_size(group) == 1:\n        return int\n    match operation:\n",
            ),
        ),
    ),
    Variant(
        "another_factor_table",
        "Keeps the factors in a table.",
        (
            Edit(
                '    if operation in ("broadcast", "reduce"):\n        return bandwidth\n'
                '    passes = 2 if operation == "all_reduce" else 1\n'
                "    return bandwidth * passes * (world_size - 1) / world_size\n",
                "    share = 1 - 1 / world_size\n"
                '    factors = {"all_reduce": 2 * share, "broadcast": 1.0, "reduce": 1.0}\n'
                "    return factors.get(operation, share) * bandwidth\n",
            ),
        ),
    ),
]
