"""Mutants of benchmark.py: its bandwidths, and the times of one rank."""

from tests.mutants.mutant import Edit, Mutant

SYNCHRONIZE_AND_BARRIER = "        synchronize()\n        barrier()\n"
TIMED = "        run()\n        synchronize()\n        seconds.append(clock() - start)\n"
WARM_UP = "    for _ in range(warmup):\n        run()\n"
ALGORITHM = "benchmark.algorithm_bandwidth"
BUS = "benchmark.bus_bandwidth"
ORDER = "benchmark.order_of_an_iteration"
OWN = "benchmark.own_seconds"
BUFFERS = "benchmark.buffers_stay_finite"
DEFAULTS = "benchmark.own_synchronize_and_barrier"
ARGUMENTS = "benchmark.wrong_arguments"

MUTANTS: list[Mutant] = [
    Mutant(
        "bandwidth_in_gibibytes",
        "Divides by 1024³, as the lecture's code does.",
        (Edit("    return num_bytes / seconds\n", "    return num_bytes / seconds / 1024**3\n"),),
        (ALGORITHM,),
        mistake=21,
    ),
    Mutant(
        "zero_seconds_pass",
        "Checks for negative seconds only.",
        (Edit("    if not seconds > 0:\n", "    if seconds < 0:\n"),),
        (ALGORITHM, ARGUMENTS),
    ),
    Mutant(
        "no_check_of_seconds",
        "Checks the seconds nowhere.",
        (Edit("    if not seconds > 0:\n", "    if seconds == 0:\n"),),
        (ALGORITHM, ARGUMENTS),
    ),
    Mutant(
        "all_reduce_counted_once",
        "Gives all operations the factor of an all-gather.",
        (Edit('    passes = 2 if operation == "all_reduce" else 1\n', "    passes = 1\n"),),
        (BUS,),
    ),
    Mutant(
        "all_to_all_counted_twice",
        "Gives all-to-all the factor of an all-reduce.",
        (
            Edit(
                '    passes = 2 if operation == "all_reduce" else 1\n',
                '    passes = 2 if operation in ("all_reduce", "all_to_all") else 1\n',
            ),
        ),
        (BUS,),
    ),
    Mutant(
        "factor_for_broadcast",
        "Gives broadcast and reduce the factor (W − 1)/W.",
        (Edit('    if operation in ("broadcast", "reduce"):\n        return bandwidth\n', ""),),
        (BUS,),
    ),
    Mutant(
        "a_world_of_1_broadcasts",
        "Returns the algorithm bandwidth of a broadcast in a world of 1, where nothing moves.",
        (Edit("    if world_size == 1:\n        return 0.0\n", ""),),
        (BUS,),
    ),
    Mutant(
        "bytes_of_the_output",
        "Divides by W once more, as if S of a reduce-scatter were its output.",
        (
            Edit(
                "    passes = 2 if",
                '    if operation == "reduce_scatter":\n        bandwidth /= world_size\n    passes = 2 if',
            ),
        ),
        (BUS,),
        mistake=19,
    ),
    Mutant(
        "no_warm_up",
        "Times the first call.",
        (Edit(WARM_UP, ""),),
        (ORDER, BUFFERS),
        mistake=17,
    ),
    Mutant(
        "warm_up_is_timed",
        "Runs warm-up iterations like the others and drops their times.",
        (
            Edit(WARM_UP, ""),
            Edit("    for _ in range(iterations):\n", "    for _ in range(warmup + iterations):\n"),
            Edit("    return seconds\n", "    return seconds[warmup:]\n"),
        ),
        (ORDER,),
    ),
    Mutant(
        "barrier_then_synchronize",
        "Waits for the other ranks first and for the own device afterwards.",
        (Edit(SYNCHRONIZE_AND_BARRIER, "        barrier()\n        synchronize()\n"),),
        (ORDER, DEFAULTS),
        mistake=22,
    ),
    Mutant(
        "no_synchronize_at_the_end",
        "Stops the clock when the call returns.",
        (Edit(TIMED, TIMED.replace("        synchronize()\n", "")),),
        (ORDER, BUFFERS),
        mistake=16,
    ),
    Mutant(
        "no_synchronize_before",
        "Synchronizes at the end only.",
        (Edit(SYNCHRONIZE_AND_BARRIER, "        barrier()\n"),),
        (ORDER,),
        mistake=16,
    ),
    Mutant(
        "barrier_is_timed",
        "Has a second barrier before the clock is stopped, as the lecture has.",
        (Edit(TIMED, TIMED.replace("        synchronize()\n", "        synchronize()\n        barrier()\n")),),
        (ORDER, BUFFERS),
        mistake=18,
    ),
    Mutant(
        "one_barrier_for_all",
        "Meets once, before the first iteration.",
        (
            Edit("    seconds = []\n", "    seconds = []\n    synchronize()\n    barrier()\n"),
            Edit(SYNCHRONIZE_AND_BARRIER, ""),
        ),
        (ORDER,),
    ),
    Mutant(
        "one_time_for_all_iterations",
        "Returns the mean of the iterations, as one number.",
        (Edit("    return seconds\n", "    return sum(seconds) / iterations\n"),),
        (OWN,),
    ),
    Mutant(
        "seconds_since_the_start",
        "Starts the clock once, so that each time holds those before it.",
        (
            Edit("    seconds = []\n", "    seconds = []\n    begin = None\n"),
            Edit(
                "        seconds.append(clock() - start)\n",
                "        begin = start if begin is None else begin\n        seconds.append(clock() - begin)\n",
            ),
        ),
        (OWN,),
    ),
    Mutant(
        "another_clock",
        "Takes time.perf_counter, whatever clock is passed.",
        (
            Edit("        start = clock()\n", "        clock()\n        start = time.perf_counter()\n"),
            Edit(
                "        seconds.append(clock() - start)\n",
                "        clock()\n        seconds.append(time.perf_counter() - start)\n",
            ),
        ),
        (OWN,),
    ),
]
