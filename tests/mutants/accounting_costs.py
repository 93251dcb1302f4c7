"""Mutants of accounting.py: memory, rings, and the bytes of data and pipeline parallelism."""

from tests.mutants.mutant import Edit, Mutant

TRAINING = "    return num_parameters * (weight_bytes + grad_bytes + optimizer_bytes)\n"
GPUS = "    return max(1, _divide_up(num_parameters * bytes_per_parameter, hbm_bytes))\n"
SENT = "    return Fraction(_ring_steps(operation, world_size) * num_bytes, world_size)\n"
SECONDS = "    return steps * latency + ring_bytes_sent(operation, num_bytes, world_size) / bandwidth\n"
GRADIENTS = '    return ring_bytes_sent("all_reduce", num_parameters * element_size, world_size)\n'
NEIGHBOURS = "    neighbours = int(stage > 0) + int(stage < num_stages - 1)\n"
MEMORY = "accounting.training_memory"
RINGS = "accounting.rings"
DATA_AND_PIPELINE = "accounting.bytes_of_data_and_pipeline_parallelism"
ANY_MEMORY = "accounting.memory_and_rings_of_any_size"
ANY_NETWORK = "accounting.bytes_of_any_network"

MUTANTS: list[Mutant] = [
    Mutant(
        "no_gradients",
        "Forgets the gradients.",
        (Edit(TRAINING, "    return num_parameters * (weight_bytes + optimizer_bytes)\n"),),
        (MEMORY, ANY_MEMORY),
    ),
    Mutant(
        "sixteen_bytes_always",
        "Counts 16 bytes for each parameter, whatever the dtypes.",
        (Edit(TRAINING, "    return num_parameters * 16\n"),),
        (MEMORY,),
    ),
    Mutant(
        "rounded_down",
        "Leaves the last, partly filled GPU out.",
        (Edit(GPUS, "    return max(1, num_parameters * bytes_per_parameter // hbm_bytes)\n"),),
        (MEMORY, ANY_MEMORY),
    ),
    Mutant(
        "one_more_than_fits",
        "Adds a GPU also where the last one is full.",
        (Edit(GPUS, "    return num_parameters * bytes_per_parameter // hbm_bytes + 1\n"),),
        (MEMORY,),
    ),
    Mutant(
        "no_gpu",
        "Needs no GPU for no parameters.",
        (Edit(GPUS, "    return _divide_up(num_parameters * bytes_per_parameter, hbm_bytes)\n"),),
        (MEMORY,),
    ),
    Mutant(
        "ceiling_of_a_float",
        "Divides in floating point before it rounds up.",
        (
            Edit(
                GPUS,
                "    import math\n\n    return max(1, math.ceil(num_parameters * bytes_per_parameter / hbm_bytes))\n",
            ),
        ),
        (MEMORY,),
    ),
    Mutant(
        "floats",
        "Divides with /, which makes a float.",
        (Edit(SENT, "    return _ring_steps(operation, world_size) * num_bytes / world_size\n"),),
        (RINGS,),
    ),
    Mutant(
        "whole_bytes",
        "Rounds the bytes down to a whole number.",
        (Edit(SENT, "    return Fraction(_ring_steps(operation, world_size) * num_bytes // world_size)\n"),),
        (RINGS, ANY_MEMORY),
    ),
    Mutant(
        "bytes_of_all_ranks",
        "Counts what all ranks send together.",
        (Edit(SENT, "    return Fraction(_ring_steps(operation, world_size) * num_bytes)\n"),),
        (RINGS,),
    ),
    Mutant(
        "w_steps",
        "Takes W steps for a ring of W ranks.",
        (Edit("        return world_size - 1\n", "        return world_size\n"),),
        (RINGS,),
    ),
    Mutant(
        "one_pass_for_all_reduce",
        "Forgets the second half of the all-reduce.",
        (Edit("        return 2 * (world_size - 1)\n", "        return world_size - 1\n"),),
        (RINGS, DATA_AND_PIPELINE),
    ),
    Mutant(
        "a_ring_of_any_operation",
        "Counts every other operation like an all-reduce.",
        (
            Edit(
                '    if operation == "all_reduce":\n        return 2 * (world_size - 1)\n',
                "    if operation:\n        return 2 * (world_size - 1)\n",
            ),
        ),
        (RINGS,),
    ),
    Mutant(
        "one_latency",
        "Counts the latency once, not for each step.",
        (Edit(SECONDS, SECONDS.replace("steps * latency", "latency")),),
        (RINGS, ANY_MEMORY),
    ),
    Mutant(
        "no_latency",
        "Leaves the latency out.",
        (Edit(SECONDS, SECONDS.replace("steps * latency + ", "")),),
        (RINGS,),
    ),
    Mutant(
        "whole_array_in_seconds",
        "Divides the whole array by the bandwidth.",
        (Edit(SECONDS, "    return steps * latency + Fraction(num_bytes, bandwidth)\n"),),
        (RINGS,),
    ),
    Mutant(
        "gradients_reduced_only",
        "Counts a reduce-scatter of the gradients.",
        (Edit(GRADIENTS, GRADIENTS.replace("all_reduce", "reduce_scatter")),),
        (DATA_AND_PIPELINE, ANY_MEMORY),
    ),
    Mutant(
        "elements_of_gradients",
        "Counts elements, not bytes.",
        (Edit(GRADIENTS, GRADIENTS.replace(" * element_size", "")),),
        (DATA_AND_PIPELINE,),
        mistake=20,
    ),
    Mutant(
        "two_neighbours_always",
        "Counts the first and the last stage like one in the middle.",
        (Edit(NEIGHBOURS, "    neighbours = 2 if num_stages > 1 else 0\n"),),
        (DATA_AND_PIPELINE, ANY_NETWORK),
    ),
    Mutant(
        "activations_only",
        "Forgets the gradients that go back.",
        (Edit(NEIGHBOURS, "    neighbours = int(stage < num_stages - 1)\n"),),
        (DATA_AND_PIPELINE,),
    ),
    Mutant(
        "received_as_well",
        "Counts what the stage receives, too.",
        (
            Edit(
                "    return neighbours * rows * width * element_size\n",
                "    return 2 * neighbours * rows * width * element_size\n",
            ),
        ),
        (DATA_AND_PIPELINE,),
    ),
    Mutant(
        "any_stage",
        "Takes a stage that is not there.",
        (Edit("    if not 0 <= stage < num_stages:\n", "    if num_stages < 1:\n"),),
        (DATA_AND_PIPELINE,),
    ),
]
