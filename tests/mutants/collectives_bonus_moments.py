"""Mutants and variants of global_mean_and_variance in collectives.py."""

from tests.mutants.mutant import Edit, Mutant, Variant

WIDE = "    values_N = x.detach().to(torch.float64).reshape(-1)\n"
REDUCED = "    dist.all_reduce(table_W3, group=group)\n"
M2 = "    m2 = m2_W.sum() + (count_W * (mean_W - mean).square()).sum()\n"
RESULT = "    return mean, m2 / count\n"
NOTHING = "    if count == 0:\n"
MEAN = "collectives.global_mean_and_variance"
FAR = "collectives.variance_far_from_zero"
SUMS_OF_SQUARES = """    ones_N = torch.ones_like(values_N)
    sums_3 = torch.stack([each.sum() for each in (ones_N, values_N, values_N.square())])
    dist.all_reduce(sums_3, group=group)
    count, total, squares = sums_3.unbind()
    if count == 0:
        raise ValueError("no rank holds an element; expected one at least somewhere")
    return total / count, squares / count - (total / count).square()
"""
TWO_PASSES = """    sums_2 = torch.stack([values_N.new_tensor(values_N.numel()), values_N.sum()])
    dist.all_reduce(sums_2, group=group)
    count, total = sums_2.unbind()
    if count == 0:
        raise ValueError("no rank holds an element; expected one at least somewhere")
    m2 = (values_N - total / count).square().sum()
    dist.all_reduce(m2, group=group)
    return total / count, m2 / count
"""

MUTANTS: list[Mutant] = [
    Mutant(
        "sums_of_squares",
        "Subtracts the square of the mean from the mean of the squares, which cancels far from zero.",
        (Edit(WIDE, WIDE + SUMS_OF_SQUARES),),
        (FAR,),
    ),
    Mutant(
        "two_all_reduces",
        "Finds the mean first and sums squared deviations in a second all-reduce.",
        (Edit(WIDE, WIDE + TWO_PASSES),),
        (MEAN,),
    ),
    Mutant(
        "rows_gathered",
        "Gathers the rows of the table in place of an all-reduce.",
        (
            Edit(
                REDUCED,
                "    own_3 = table_W3[rank].clone()\n"
                "    dist.all_gather_into_tensor(table_W3.view(-1), own_3, group=group)\n",
            ),
        ),
        (MEAN,),
    ),
    Mutant(
        "meets_before_it_refuses",
        "Meets the others before it refuses complex numbers.",
        (Edit("    if x.is_complex():\n", "    if x.is_complex():\n        dist.barrier(group=group)\n"),),
        (FAR,),
    ),
    Mutant(
        "sample_variance",
        "Divides by one less than the number of elements.",
        (Edit(RESULT, "    return mean, m2 / (count - 1)\n"),),
        (MEAN,),
    ),
    Mutant(
        "mean_of_means",
        "Takes the mean of the ranks' means, whatever they hold.",
        (Edit("    mean = (count_W * mean_W).sum() / count\n", "    mean = mean_W.mean()\n"),),
        (MEAN,),
    ),
    Mutant(
        "variance_within_ranks",
        "Adds up the ranks' own squared deviations alone.",
        (Edit(M2, "    m2 = m2_W.sum()\n"),),
        (MEAN, FAR),
    ),
    Mutant(
        "float32_inside",
        "Computes in the input's dtype and widens the result.",
        (
            Edit(WIDE, "    values_N = x.detach().to(torch.float32).reshape(-1)\n"),
            Edit(RESULT, "    return mean.double(), (m2 / count).double()\n"),
        ),
        (FAR,),
    ),
    Mutant(
        "dtype_of_the_input",
        "Returns the input's dtype.",
        (Edit(RESULT, "    return mean.to(x.dtype), (m2 / count).to(x.dtype)\n"),),
        (MEAN,),
    ),
    Mutant(
        "python_numbers",
        "Returns Python's floats.",
        (Edit(RESULT, "    return mean.item(), (m2 / count).item()\n"),),
        (MEAN,),
    ),
    Mutant(
        "inside_autograd",
        "Computes on the tensor itself, so that the mean takes part in autograd.",
        (
            Edit(WIDE, WIDE.replace(".detach()", "")),
            Edit(
                "        table_W3[rank, 0] = values_N.numel()\n",
                "        table_W3 = table_W3.clone()\n        table_W3[rank, 0] = values_N.numel()\n",
            ),
        ),
        (MEAN,),
    ),
    Mutant(
        "nan_of_nothing",
        "Takes the mean of no elements on a rank that holds nothing.",
        (Edit("    if values_N.numel() > 0:\n", "    if True:\n"),),
        (MEAN,),
    ),
    Mutant(
        "nothing_anywhere_is_nan",
        "Divides by a count of zero.",
        (Edit(NOTHING, "    if count < 0:\n"),),
        (FAR,),
    ),
    Mutant(
        "moments_of_the_world",
        "Reduces over the default group.",
        (
            Edit(REDUCED, "    dist.all_reduce(table_W3)\n"),
            Edit(
                "    rank, world_size = _place(group)\n    if x.is_complex",
                "    _place(group)\n    rank, world_size = _place(None)\n    if x.is_complex",
            ),
        ),
        (FAR,),
    ),
    Mutant(
        "complex_moments",
        "Drops the imaginary part.",
        (
            Edit(
                '    if x.is_complex():\n        raise ValueError(f"x is {x.dtype}; expected a real dtype")\n',
                "    x = x.real if x.is_complex() else x\n",
            ),
        ),
        (FAR,),
    ),
]

VARIANTS: list[Variant] = [
    Variant(
        "merged_pairwise",
        "Merges the ranks' counts, means and M2 one after the other.",
        (
            Edit(
                "    mean = (count_W * mean_W).sum() / count\n" + M2,
                "    seen, mean, m2 = count_W.new_zeros(()), count_W.new_zeros(()), count_W.new_zeros(())\n"
                "    for own, own_mean, own_m2 in table_W3:\n"
                "        if own == 0:\n"
                "            continue\n"
                "        delta = own_mean - mean\n"
                "        m2 = m2 + own_m2 + delta.square() * seen * own / (seen + own)\n"
                "        seen = seen + own\n"
                "        mean = mean + delta * own / seen\n",
            ),
        ),
    ),
]
