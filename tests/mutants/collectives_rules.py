"""Wrong in several collectives at the same time: operators, groups, layouts."""

from tests.mutants.collectives_places import ALL_REDUCE_FLATTENS, AVERAGE
from tests.mutants.mutant import Edit, Mutant

OPERATORS = (
    "collectives.reduce_operators",
    "collectives.reduce_scatter_uneven",
    "collectives.all_reduce_operators",
    "collectives.all_reduce_while",
)

MUTANTS = [
    Mutant(
        "average_over_the_world",
        "Divides by the size of the world in every group.",
        (Edit(AVERAGE, AVERAGE.replace("div_(world_size)", "div_(dist.get_world_size())")),),
        ("collectives.reduce_in_groups", "collectives.reduce_scatter_uneven", "collectives.all_reduce_while"),
    ),
    Mutant(
        "average_is_the_sum",
        "Does not divide.",
        (Edit(AVERAGE, "    return total\n"),),
        (
            "collectives.reduce",
            "collectives.reduce_scatter",
            "collectives.all_reduce_operators",
            "collectives.all_reduce_while",
        ),
    ),
    Mutant(
        "average_divides_by_2",
        "Divides by 2 in any world.",
        (Edit(AVERAGE, AVERAGE.replace("div_(world_size)", "div_(2)")),),
        ("collectives.reduce", "collectives.reduce_scatter"),
    ),
    Mutant(
        "integers_are_averaged_too",
        "Averages integers, rounding down.",
        (
            Edit("    if op == _AVG and not (dtype.is_floating_point or dtype.is_complex):\n", "    if False:\n"),
            Edit(AVERAGE, AVERAGE.replace("total.div_(world_size)", "(total / world_size).to(total.dtype)")),
        ),
        OPERATORS,
    ),
    Mutant(
        "unknown_operators_are_sums",
        "Takes an operator that it does not know for a sum.",
        (
            Edit("    if op not in _COMBINE:\n", "    if False:\n"),
            Edit("    _COMBINE[op](", "    _COMBINE.get(op, torch.add)("),
        ),
        OPERATORS,
    ),
    Mutant(
        "errors_without_numbers",
        "Says that the root is wrong, and not which root came.",
        (
            Edit(
                'f"{name} is {root}; expected a rank in the group: 0 to {world_size - 1}"',
                'f"{name} is no rank in the group"',
            ),
        ),
        ("collectives.broadcast_in_groups", "collectives.gather_uneven", "collectives.reduce_in_groups"),
    ),
    Mutant(
        "zero_dimensional_pieces_become_rows",
        "Takes a 0-dimensional tensor for one row.",
        (
            Edit(
                "    if tensor.dim() == 0:\n",
                "    if tensor.dim() == 0:\n        tensor.unsqueeze_(0)\n    if False:\n",
            ),
        ),
        ("collectives.gather_uneven", "collectives.all_gather_uneven", "collectives.reduce_scatter_uneven"),
    ),
    Mutant(
        "outsiders_are_alone",
        "A rank outside the group works for itself.",
        (Edit("    if rank < 0:\n        raise", "    if rank < 0:\n        return 0, 1\n        raise"),),
        (
            "collectives.broadcast_in_groups",
            "collectives.reduce_in_groups",
            "collectives.reduce_scatter_uneven",
            "collectives.all_reduce_any_shape",
            "collectives.all_reduce_while",
        ),
    ),
    Mutant(
        "group_forgotten",
        "Asks for its rank in the default group, whatever group is passed.",
        (Edit("    rank = dist.get_rank(group)\n", "    group = None\n    rank = dist.get_rank(group)\n"),),
        ("collectives.broadcast_in_groups", "collectives.all_to_all"),
    ),
    Mutant(
        "strided_input_as_it_lies",
        "Sends and reduces tensors without making them contiguous.",
        (Edit(".resolve_conj().resolve_neg().contiguous()\n", "\n"),),
        (
            "collectives.broadcast",
            "collectives.scatter",
            "collectives.gather",
            "collectives.reduce",
            "collectives.reduce_scatter",
            "collectives.all_to_all",
        ),
        mistake=11,
    ),
    Mutant(
        "flattens_by_a_view",
        "Flattens with view, which a strided tensor does not allow.",
        (Edit(ALL_REDUCE_FLATTENS, "    flat = tensor.detach().view(-1)\n"),),
        ("collectives.all_reduce",),
        mistake=11,
    ),
]
