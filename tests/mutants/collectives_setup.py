"""Wrong ways to make and end the default group."""

from tests.mutants.mutant import Edit, Mutant

MUTANTS = [
    Mutant(
        "nccl_wherever_there_is_a_gpu",
        "Takes NCCL as soon as the host has one GPU, for any number of ranks.",
        (
            Edit(
                "        gpu_for_each = dist.is_nccl_available() and torch.cuda.device_count() >= world_size\n",
                "        gpu_for_each = torch.cuda.is_available()\n",
            ),
        ),
        ("collectives.setup",),
    ),
    Mutant(
        "timeout_forgotten",
        "Does not hand the timeout on.",
        (Edit("        timeout=timeout,\n", ""),),
        ("collectives.setup",),
    ),
    Mutant(
        "meets_by_environment_only",
        "Ignores init_method.",
        (Edit("        init_method=init_method,\n", '        init_method="env://",\n'),),
        ("collectives.setup",),
    ),
    Mutant(
        "rank_from_the_environment",
        "Leaves rank and world size to the environment, as under torchrun.",
        (Edit("        rank=rank,\n        world_size=world_size,\n", ""),),
        ("collectives.setup",),
    ),
    Mutant(
        "second_setup_is_left_to_torch",
        "Relies on torch's own error for a second group, which is a ValueError.",
        (Edit("    if dist.is_initialized():\n        raise", "    if False:\n        raise"),),
        ("collectives.setup",),
    ),
    Mutant(
        "any_rank_will_do",
        "Does not check the rank.",
        (
            Edit(
                '    if not 0 <= rank < world_size:\n        raise ValueError(f"rank',
                '    if 0:\n        raise ValueError(f"rank',
            ),
        ),
        ("collectives.setup",),
    ),
    Mutant(
        "device_as_text",
        "Returns the name of the device.",
        (Edit("    return device\n", "    return str(device)\n"),),
        ("collectives.setup",),
    ),
    Mutant(
        "cleanup_assumes_a_group",
        "Destroys the default group without asking whether there is one.",
        (Edit("    if dist.is_initialized():\n        dist.destroy", "    if True:\n        dist.destroy"),),
        ("collectives.cleanup",),
    ),
    Mutant(
        "cleanup_waits_only",
        "Waits for the others and leaves the group as it is.",
        (Edit("        dist.destroy_process_group()", "        dist.barrier()"),),
        ("collectives.cleanup",),
    ),
]
