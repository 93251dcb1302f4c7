"""Mutants and variants of dispatch_rows and combine_rows in collectives.py."""

from tests.mutants.mutant import Edit, Mutant, Variant

ORDER = "    order = torch.argsort(destination, stable=True)\n"
ROWS = "rows.detach()[order]"
BACK = "    result[plan.order] = returned\n"
SENT_BACK = "    returned = _exchange_rows(processed.detach(), plan.receive_counts, plan.send_counts, group)\n"
BYTES = "    dist.all_to_all_single(_row_bytes(incoming), _row_bytes(outgoing), receive, send, group=group)\n"
INCOMING = "    incoming = outgoing.new_empty((sum(receive), *rows.shape[1:]))\n"
DISPATCH = "collectives.dispatch_rows"
UNEVEN = "collectives.rows_dispatched_unevenly"
COMBINE = "collectives.combine_rows"
AGAIN = "collectives.rows_combined_again"

MUTANTS: list[Mutant] = [
    Mutant(
        "everything_to_everyone",
        "Returns what an all-gather of the rows gives.",
        (
            Edit(
                f"    return _exchange_rows({ROWS}, send_counts, receive_counts, group), plan\n",
                "    everyone = [None] * world_size\n"
                "    dist.all_gather_object(everyone, rows.detach(), group=group)\n"
                "    return torch.cat(everyone), plan\n",
            ),
        ),
        (DISPATCH,),
        mistake=13,
    ),
    Mutant(
        "picks_from_everything",
        "Gathers all rows on every rank and keeps those that are for it.",
        (
            Edit(
                f"    return _exchange_rows({ROWS}, send_counts, receive_counts, group), plan\n",
                "    everyone = [None] * world_size\n"
                "    dist.all_gather_object(everyone, (rows.detach(), destination), group=group)\n"
                "    rank = dist.get_rank(group)\n"
                "    return torch.cat([theirs[to == rank] for theirs, to in everyone]), plan\n",
            ),
        ),
        (DISPATCH,),
    ),
    Mutant(
        "everything_back_to_everyone",
        "Gathers all processed rows on every rank and keeps those that came from it.",
        (
            Edit(
                SENT_BACK,
                "    rank, world_size = _place(group)\n"
                "    everyone = [None] * world_size\n"
                "    dist.all_gather_object(everyone, (_plain(processed), plan.receive_counts), group=group)\n"
                "    returned = torch.cat(\n"
                "        [theirs[sum(counts[:rank]) : sum(counts[: rank + 1])] for theirs, counts in everyone]\n"
                "    )\n",
            ),
        ),
        (COMBINE,),
    ),
    Mutant(
        "rows_not_sorted",
        "Sends the rows in their own order, cut by the counts.",
        (Edit(ROWS, "rows.detach()"),),
        (DISPATCH,),
    ),
    Mutant(
        "unstable_order",
        "Keeps no order among the rows for one rank.",
        (
            Edit(
                ORDER,
                "    order = torch.argsort(destination.flip(0), stable=True)\n    order = len(order) - 1 - order\n",
            ),
        ),
        (DISPATCH,),
    ),
    Mutant(
        "rows_in_autograd",
        "Returns its own rows without detaching them, in a world of 1.",
        (
            Edit(
                f"    return _exchange_rows({ROWS}, send_counts, receive_counts, group), plan\n",
                "    if world_size == 1:\n        return rows[order], plan\n"
                f"    return _exchange_rows({ROWS}, send_counts, receive_counts, group), plan\n",
            ),
        ),
        (DISPATCH,),
    ),
    Mutant(
        "no_dispatch_in_a_world_of_1",
        "Returns the rows themselves where all are its own.",
        (
            Edit(ORDER, ORDER + "    own = rows\n"),
            Edit(
                f"    return _exchange_rows({ROWS}, send_counts, receive_counts, group), plan\n",
                f"    received = _exchange_rows({ROWS}, send_counts, receive_counts, group)\n"
                "    return (own.detach() if world_size == 1 else received), plan\n",
            ),
        ),
        (DISPATCH,),
    ),
    Mutant(
        "a_row_is_a_number",
        "Exchanges rows of one dimension more only.",
        (Edit(INCOMING, "    incoming = outgoing.new_empty((sum(receive), rows.shape[1]))\n"),),
        (DISPATCH,),
    ),
    Mutant(
        "dtypes_of_gloo",
        "Sends the rows as they are: gloo's all-to-all knows no int16.",
        (Edit(BYTES, "    dist.all_to_all_single(incoming, outgoing, receive, send, group=group)\n"),),
        (UNEVEN, AGAIN),
    ),
    Mutant(
        "destinations_in_the_world",
        "Checks destinations against the world, not against the group.",
        (
            Edit(
                "    if not all(0 <= rank < world_size for rank in destination.tolist()):\n",
                "    if not all(0 <= rank < dist.get_world_size() for rank in destination.tolist()):\n",
            ),
        ),
        (UNEVEN,),
    ),
    Mutant(
        "negative_destinations",
        "Lets Python count destinations from the end.",
        (
            Edit(
                "    if not all(0 <= rank < world_size for rank in destination.tolist()):\n",
                "    destination = torch.where(destination < 0, destination + world_size, destination)\n"
                "    if not all(0 <= rank < world_size for rank in destination.tolist()):\n",
            ),
        ),
        (UNEVEN,),
    ),
    Mutant(
        "checks_after_the_counts",
        "Looks for wrong destinations when the counts have been exchanged.",
        (
            Edit(
                "    if not all(0 <= rank < world_size for rank in destination.tolist()):\n",
                "    exchange_counts([0] * world_size, group=group)\n"
                "    if not all(0 <= rank < world_size for rank in destination.tolist()):\n",
            ),
        ),
        (UNEVEN,),
    ),
    Mutant(
        "too_few_destinations",
        "Leaves out rows that have no destination.",
        (Edit("    if destination.shape != rows.shape[:1]:\n", "    if len(destination) > len(rows):\n"),),
        (UNEVEN,),
    ),
    Mutant(
        "destinations_rounded",
        "Turns destinations into whole numbers.",
        (
            Edit(
                "    if destination.dtype.is_floating_point or destination.dtype.is_complex",
                "    destination = destination.long()\n"
                "    if destination.dtype.is_floating_point or destination.dtype.is_complex",
            ),
        ),
        (UNEVEN,),
    ),
    Mutant(
        "combined_in_the_order_sent",
        "Does not put the rows back where they came from.",
        (Edit(BACK, "    result.copy_(returned)\n"),),
        (COMBINE, AGAIN),
    ),
    Mutant(
        "combined_by_the_order_itself",
        "Uses the order of the rows in place of its inverse.",
        (Edit(BACK, "    result = returned[plan.order]\n"),),
        (COMBINE,),
    ),
    Mutant(
        "counts_the_wrong_way_round",
        "Sends back with the counts of the way there.",
        (
            Edit(
                SENT_BACK,
                SENT_BACK.replace("plan.receive_counts, plan.send_counts", "plan.send_counts, plan.receive_counts"),
            ),
        ),
        (COMBINE,),
    ),
    Mutant(
        "plan_used_up",
        "Empties the plan when it has been used.",
        (Edit(BACK, BACK + "    plan.order.zero_()\n"),),
        (COMBINE, AGAIN),
    ),
    Mutant(
        "dtype_of_the_rows",
        "Returns the processed rows in single precision.",
        (Edit(SENT_BACK, SENT_BACK.replace("processed.detach()", "processed.detach().float()")),),
        (COMBINE,),
    ),
    Mutant(
        "combined_rows_in_autograd",
        "Lets the result take part in autograd.",
        (Edit(BACK, BACK + "    result.requires_grad_(processed.requires_grad)\n"),),
        (COMBINE,),
    ),
    Mutant(
        "sent_with_gaps",
        "Does not make the processed rows contiguous.",
        (Edit("    outgoing = _plain(rows)\n", "    outgoing = rows\n"),),
        (COMBINE,),
        mistake=11,
    ),
    Mutant(
        "rows_too_many",
        "Ignores rows that are too many.",
        (
            Edit(
                "    if processed.shape[0] != sum(plan.receive_counts):\n",
                "    if processed.shape[0] < sum(plan.receive_counts):\n",
            ),
            Edit(SENT_BACK, SENT_BACK.replace("processed.detach()", "processed.detach()[: sum(plan.receive_counts)]")),
        ),
        (AGAIN,),
    ),
    Mutant(
        "combined_in_the_world",
        "Sends the rows back in the default group.",
        (Edit(SENT_BACK, SENT_BACK.replace("group)", "None)")),),
        (AGAIN,),
    ),
    Mutant(
        "strangers_combine",
        "Does not look whether the rank is in the group.",
        (Edit("    _place(group)\n    _check_rows(processed)\n", "    _check_rows(processed)\n"),),
        (AGAIN,),
    ),
]

VARIANTS: list[Variant] = [
    Variant(
        "lists_and_messages",
        "Exchanges the rows by messages between two ranks, and keeps indices for each rank as the plan.",
        (
            Edit(
                BYTES,
                "    pieces_in, pieces_out = torch.split(incoming, receive), torch.split(outgoing, send)\n"
                "    for source, piece in enumerate(all_to_all(pieces_out, group=group)):\n"
                "        pieces_in[source].copy_(piece)\n",
            ),
        ),
    ),
    Variant(
        "masks_in_a_loop",
        "Picks the rows for each rank with a mask and inverts by a second sort.",
        (
            Edit(
                ORDER,
                "    order = torch.cat([(destination == rank).nonzero().reshape(-1) for rank in range(world_size)])\n",
            ),
            Edit(BACK, "    result = returned[torch.argsort(plan.order)]\n"),
        ),
    ),
]
