"""Wrong ways to exchange pieces, and to all-reduce beside a computation."""

from tests.mutants.collectives_places import WHILE_COMPUTES, WHILE_STARTS, WHILE_WAITS, before
from tests.mutants.mutant import Edit, Mutant

ALL_TO_ALL = [
    Mutant(
        "all_to_all_as_all_gather",
        "Sends the piece for itself to every rank.",
        (Edit("dist.P2POp(dist.isend, outgoing[peer],", "dist.P2POp(dist.isend, outgoing[rank],"),),
        ("collectives.all_to_all",),
        mistake=13,
    ),
    Mutant(
        "receives_as_much_as_it_sends",
        "Makes room for pieces as long as those that it sends.",
        (
            Edit(
                "exchange_counts([piece.shape[0] for piece in pieces], group=group)", "[len(piece) for piece in pieces]"
            ),
        ),
        ("collectives.all_to_all",),
        mistake=13,
    ),
    Mutant(
        "own_piece_is_sent_too",
        "Sends its own piece to itself, as if it were another's.",
        (Edit("        if peer != rank:\n            messages", "        if True:\n            messages"),),
        ("collectives.all_to_all",),
    ),
    Mutant(
        "own_piece_handed_through",
        "Returns its own piece itself, not a copy.",
        (Edit("    incoming[rank].copy_(outgoing[rank])\n", "    incoming[rank] = outgoing[rank]\n"),),
        ("collectives.all_to_all",),
    ),
    Mutant(
        "pieces_are_not_counted",
        "Takes the first W pieces.",
        (Edit("    if len(pieces) != world_size:\n", "    pieces = pieces[:world_size]\n    if False:\n"),),
        ("collectives.all_to_all",),
    ),
    Mutant(
        "pieces_of_any_kind",
        "Does not look whether the pieces agree.",
        (Edit("        if (piece.shape[1:], piece.dtype) != ", "        if False and piece != "),),
        ("collectives.all_to_all",),
    ),
]

WHILE = [
    Mutant(
        "computes_first",
        "Computes, then starts the all-reduce.",
        (
            Edit(
                WHILE_STARTS + WHILE_COMPUTES + WHILE_WAITS,
                "    result = compute()\n" + WHILE_STARTS + "    work.wait()\n",
            ),
        ),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "waits_before_it_computes",
        "Runs the all-reduce to its end, then computes.",
        (Edit(WHILE_COMPUTES, "    work.wait()\n" + WHILE_COMPUTES),),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "blocks_before_it_computes",
        "Calls the all-reduce without async_op, then computes.",
        (
            Edit(
                WHILE_STARTS + WHILE_COMPUTES + WHILE_WAITS,
                WHILE_STARTS.replace("work = ", "").replace(", async_op=True", "") + "    result = compute()\n",
            ),
        ),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "meets_before_it_starts",
        "Waits for the others at a barrier before it starts the all-reduce.",
        (before(WHILE_STARTS, "    dist.barrier(group=group)\n"),),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "never_waits",
        "Returns without waiting.",
        (Edit(WHILE_WAITS, "    finally:\n        pass\n"),),
        ("collectives.all_reduce_while",),
        mistake=15,
    ),
    Mutant(
        "divides_before_it_waits",
        "Divides by W while the all-reduce is under way.",
        (
            Edit(
                WHILE_WAITS + "    return _finish(total, op, world_size), result\n",
                "        _finish(total, op, world_size)\n" + WHILE_WAITS + "    return total, result\n",
            ),
        ),
        ("collectives.all_reduce_while",),
        mistake=15,
    ),
    Mutant(
        "an_error_leaves_the_all_reduce_behind",
        "Does not wait when compute raises.",
        (Edit(WHILE_COMPUTES + WHILE_WAITS, "    result = compute()\n    work.wait()\n"),),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "keeps_the_error_to_itself",
        "Returns None for compute's result where compute raises.",
        (Edit(WHILE_WAITS, "    except Exception:\n        result = None\n    work.wait()\n"),),
        ("collectives.all_reduce_while",),
    ),
    Mutant(
        "all_reduces_the_argument",
        "Reduces the tensor in place.",
        (Edit("    total = _copy(tensor)\n    # Not", "    total = tensor\n    # Not"),),
        ("collectives.all_reduce_while",),
        mistake=10,
    ),
]

MUTANTS = [*ALL_TO_ALL, *WHILE]
