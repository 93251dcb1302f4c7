"""Mutants and variants of accounting.py: tensor parallelism, bubbles, rows, and the questions."""

from tests.mutants.mutant import Edit, Mutant, Variant

SENT = "    return Fraction(_ring_steps(operation, world_size) * num_bytes, world_size)\n"
SECONDS = "    return steps * latency + ring_bytes_sent(operation, num_bytes, world_size) / bandwidth\n"
GRADIENTS = '    return ring_bytes_sent("all_reduce", num_parameters * element_size, world_size)\n'
SCATTERED = "for each in output_bytes[:-1])\n"
INPUT = ' + ring_bytes_sent("all_reduce", input_bytes, world_size)\n'
BUBBLE = "    return Fraction(num_stages - 1, num_microbatches + num_stages - 1)\n"
NEEDED = "    return max(1, _divide_up((num_stages - 1) * (1 - largest_bubble), largest_bubble))\n"
ROWS = "    return _divide_up(bytes_per_parameter * peak_flops, 4 * bandwidth)\n"
TENSOR = "accounting.bytes_of_tensor_parallelism"
BUBBLES = "accounting.bubbles"
HIDE = "accounting.rows_to_hide_all_reduce"
ANY_NETWORK = "accounting.bytes_of_any_network"
LIMITS = "accounting.limits_are_exact"
CHOICES = "accounting.choices"

MUTANTS: list[Mutant] = [
    Mutant(
        "forward_only",
        "Leaves the reduce-scatters of backward out.",
        (Edit("    return gathered + scattered + ", "    return gathered + "),),
        (TENSOR,),
    ),
    Mutant(
        "last_gather_scattered",
        "Counts a reduce-scatter for the last gather too, whose backward is a slice.",
        (Edit(SCATTERED, "for each in output_bytes)\n"),),
        (TENSOR, ANY_NETWORK),
        mistake=55,
    ),
    Mutant(
        "no_input_gradient",
        "Leaves the all-reduce of the input's gradient out.",
        (Edit("    return gathered + scattered" + INPUT, "    return gathered + scattered\n"),),
        (TENSOR,),
        mistake=54,
    ),
    Mutant(
        "input_gradient_scattered",
        "Counts a reduce-scatter of the input's gradient.",
        (Edit(INPUT, INPUT.replace("all_reduce", "reduce_scatter")),),
        (TENSOR,),
    ),
    Mutant(
        "last_layer_not_gathered",
        "Counts gathers between layers only.",
        (Edit("for each in output_bytes)\n    scattered", "for each in output_bytes[:-1])\n    scattered"),),
        (TENSOR, ANY_NETWORK),
    ),
    Mutant(
        "one_size",
        "Takes a network without layers.",
        (Edit("    if len(sizes) < 2:\n", "    if len(sizes) < 1:\n"),),
        (TENSOR,),
    ),
    Mutant(
        "bubble_over_busy_time",
        "Divides the idle time by the busy time.",
        (Edit(BUBBLE, "    return Fraction(num_stages - 1, num_microbatches)\n"),),
        (BUBBLES, LIMITS),
    ),
    Mutant(
        "bubble_in_floating_point",
        "Returns a float.",
        (Edit(BUBBLE, "    return (num_stages - 1) / (num_microbatches + num_stages - 1)\n"),),
        (BUBBLES,),
    ),
    Mutant(
        "no_stages_no_bubble",
        "Takes any counts.",
        (Edit("    if num_stages < 1 or num_microbatches < 1:\n", "    if num_stages < 0:\n"),),
        (BUBBLES,),
    ),
    Mutant(
        "any_largest_bubble",
        "Takes a largest bubble above 1.",
        (Edit("    if not 0 < largest_bubble <= 1:\n", "    if not 0 < largest_bubble:\n"),),
        (BUBBLES,),
    ),
    Mutant(
        "microbatches_of_no_stage",
        "Takes a pipeline without stages.",
        (
            Edit(
                '    if num_stages < 1:\n        raise ValueError(f"num_stages is {num_stages}; ',
                '    if num_stages < 0:\n        raise ValueError(f"num_stages is {num_stages}; ',
            ),
        ),
        (BUBBLES,),
    ),
    Mutant(
        "strictly_below",
        "Takes one more microbatch where the bubble is just as large as it may be.",
        (Edit(NEEDED, "    return (num_stages - 1) * (1 - largest_bubble) // largest_bubble + 1\n"),),
        (BUBBLES, LIMITS),
    ),
    Mutant(
        "microbatches_of_the_other_fraction",
        "Solves (p − 1) / m.",
        (Edit(NEEDED, "    return max(1, _divide_up(num_stages - 1, largest_bubble))\n"),),
        (BUBBLES, LIMITS),
    ),
    Mutant(
        "microbatches_in_floating_point",
        "Rounds a float up.",
        (
            Edit(
                NEEDED,
                "    import math\n\n    bubble = float(largest_bubble)\n"
                "    return max(1, math.ceil((num_stages - 1) * (1 - bubble) / bubble))\n",
            ),
        ),
        (LIMITS,),
    ),
    Mutant(
        "no_microbatch",
        "Needs no microbatch for one stage.",
        (Edit(NEEDED, NEEDED.replace("max(1, ", "max(0, ")),),
        (BUBBLES,),
    ),
    Mutant(
        "rows_rounded_down",
        "Rounds the rows down.",
        (Edit(ROWS, "    return int(bytes_per_parameter * peak_flops / (4 * bandwidth))\n"),),
        (HIDE, LIMITS),
    ),
    Mutant(
        "rows_in_floating_point",
        "Rounds a float up.",
        (
            Edit(
                ROWS,
                "    import math\n\n    return math.ceil(float(bytes_per_parameter) * peak_flops / (4 * bandwidth))\n",
            ),
        ),
        (HIDE,),
    ),
    Mutant(
        "flops_of_forward_too",
        "Counts 6 operations for each parameter and row, which are those of forward and backward.",
        (Edit(ROWS, ROWS.replace("4 * bandwidth", "6 * bandwidth")),),
        (HIDE, LIMITS),
    ),
    Mutant(
        "at_least_one_row",
        "Needs a row in a world of 1 as well.",
        (Edit(ROWS, "    return max(1, _divide_up(bytes_per_parameter * peak_flops, 4 * bandwidth))\n"),),
        (HIDE,),
    ),
    Mutant(
        "padding_with_zeros",
        "Believes that rows of zeros change nothing.",
        (Edit('    "q6_zero_padding": "b",\n', '    "q6_zero_padding": "a",\n'),),
        (CHOICES,),
    ),
    Mutant(
        "gigabytes_of_1024",
        "Believes that both units are the same for a rate.",
        (Edit('    "q2_gigabytes": "b",\n', '    "q2_gigabytes": "c",\n'),),
        (CHOICES,),
        mistake=21,
    ),
    Mutant(
        "order_does_not_matter",
        "Believes that the order of barrier and synchronize is a convention.",
        (Edit('    "q3_barrier_order": "d",\n', '    "q3_barrier_order": "b",\n'),),
        (CHOICES,),
        mistake=22,
    ),
    Mutant(
        "one_question_left_out",
        "Leaves one question out.",
        (Edit('    "q4_links": "a",\n', ""),),
        (CHOICES,),
    ),
    Mutant(
        "letters_in_lists",
        "Writes a list of letters for an answer.",
        (Edit('    "q5_bubble": "d",\n', '    "q5_bubble": ["d"],  # type: ignore[dict-item]\n'),),
        (CHOICES,),
    ),
]

VARIANTS: list[Variant] = [
    Variant(
        "whole_numbers_where_they_are_whole",
        "Returns an int where the bytes divide.",
        (
            Edit(SENT, SENT.replace("return", "sent =") + "    return int(sent) if sent.denominator == 1 else sent\n"),
            Edit(SECONDS, SECONDS.replace("/ bandwidth", "* Fraction(1, bandwidth)")),
        ),
    ),
    Variant(
        "closed_forms",
        "Writes each ring out, and the sum over layers as one.",
        (
            Edit(SENT, "    return num_bytes * Fraction(_ring_steps(operation, world_size), world_size)\n"),
            Edit(GRADIENTS, "    return Fraction(2 * num_parameters * element_size * (world_size - 1), world_size)\n"),
            Edit(
                "    return gathered + scattered" + INPUT,
                "    elements = 2 * sum(sizes) - sizes[-1]\n"
                "    return Fraction(rows * elements * element_size * (world_size - 1), world_size)\n",
            ),
        ),
    ),
    Variant(
        "search_for_microbatches",
        "Counts up until the bubble is small enough.",
        (
            Edit(
                NEEDED,
                "    count = 1\n    while bubble_fraction(num_stages, count) > largest_bubble:\n        count += 1\n"
                "    return count\n",
            ),
        ),
    ),
    Variant(
        "ceiling_of_a_fraction",
        "Rounds exact fractions up with math.ceil.",
        (
            Edit(
                "    return -(-dividend // divisor)\n",
                "    import math\n\n    return math.ceil(Fraction(dividend) / Fraction(divisor))\n",
            ),
        ),
    ),
]
