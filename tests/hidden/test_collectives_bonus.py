"""Hidden checks of the bonus functions of collectives.py: hard numbers, odd worlds, groups, and wrong arguments."""

from __future__ import annotations

from dataclasses import replace

from grader.checking import Check, check
from tests.public.runs import cases
from tests.public.runs.dispatches import Dispatch, drawn, process, run_combines, run_dispatches
from tests.public.runs.moments import Moments, run_moments

GROUPS = {3: [], 5: [[0, 3], [1, 2, 4]]}
IN_GROUPS = {0: [0, 1], 3: [0, 1], 1: [0, 1, 2], 2: [0, 1, 2], 4: [0, 1, 2]}  # ranks in the group, by rank


@check(
    "collectives",
    points=1,
    statement="global_mean_and_variance stays within 1e-6 at mean 1e8 and variance 1, also in groups; complex "
    "numbers, or no element anywhere, are a ValueError on every rank.",
    worlds=(3, 5),
    needs=("global_mean_and_variance",),
    core=False,
    bonus=True,
)
def test_variance_far_from_zero(check: Check) -> None:
    import torch

    for size in check.worlds:
        groups = GROUPS[size]
        noise = [
            torch.randn(40 + 10 * rank, dtype=torch.float64, generator=check.generator(size, rank))
            for rank in range(size)
        ]
        far = [1e8 + own for own in noise]
        shifted = [1e8 + own + rank for rank, own in enumerate(noise)]
        some = [own if rank in (1, 3) else own[:0] for rank, own in enumerate(shifted)]
        nothing = [own.reshape(1, -1)[:0] for own in noise]
        calls = [
            Moments("float64 around 1e8", far),
            Moments("float64 around 1e8, means that differ by rank", shifted),
            Moments("float64 around -1e8", [-own for own in far]),
            Moments("float64 around 1e8 on ranks 1 and 3", some),
            Moments("no element anywhere", nothing, refused=True, alone=False),
            Moments("complex64", cases.for_ranks(check, range(size), (2,), "complex64"), refused=True),
        ]
        if groups:
            calls += [
                Moments("float64 around 1e8, means that differ by rank", shifted, group="own"),
                Moments("float64 around 1e8", far, group="other", refused=True),
            ]
        run_moments(check, size, calls, groups)


@check(
    "collectives",
    points=1,
    statement="dispatch_rows takes any dtype, any number of rows and any group; a destination that is not one rank "
    "of the group for each row is a ValueError before anything is sent.",
    worlds=(3, 5),
    needs=("dispatch_rows",),
    core=False,
    bonus=True,
)
def test_rows_dispatched_unevenly(check: Check) -> None:
    import torch

    for size in check.worlds:
        groups = GROUPS[size]
        counts = [0, 7, 1, 12, 4][:size]
        ring = {rank: [(rank + 1) % size] for rank in range(size)}
        plain = drawn(check, "rows that differ by rank", [3, 1, 2, 5, 4][:size])
        calls = [
            drawn(check, "rows that differ by rank", counts, (2,), "int16"),
            drawn(check, "rows that differ by rank", counts, (1, 4), "bfloat16"),
            drawn(check, "rows that differ by rank", counts, (3,), "bool"),
            drawn(check, "rows that differ by rank", counts, (2,), "complex64"),
            drawn(check, "all to the next rank", counts, (5,), "float16", among=ring),
            replace(plain, name="destinations of int32", destinations=[one.int() for one in plain.destinations]),
            *_refused(plain, size),
        ]
        if groups:
            calls += [
                drawn(check, "rows that differ by rank", counts, (2,), "float64", among=IN_GROUPS, group="own"),
                replace(plain, group="other", naming=[]),
                replace(
                    plain,
                    name="a rank of the world that is none of the group",
                    destinations=[torch.full_like(one, 4) for one in plain.destinations],
                    group="own",
                    naming=["4"],
                ),
            ]
        run_dispatches(check, size, calls, groups)


def _refused(plain: Dispatch, size: int) -> list[Dispatch]:
    """Calls whose destination is wrong on every rank."""
    import torch

    last = [torch.cat([own[:-1], torch.tensor([size])]) for own in plain.destinations]
    first = [torch.cat([torch.tensor([-1]), own[1:]]) for own in plain.destinations]
    return [
        replace(plain, name=f"a destination is {size}", destinations=last, naming=[str(size)]),
        replace(plain, name="a destination is -1", destinations=first, naming=["-1"]),
        replace(
            plain,
            name="one destination less than rows",
            destinations=[own[1:].clone() for own in plain.destinations],
            naming=[],
        ),
        replace(
            plain,
            name="destinations that are not whole numbers",
            destinations=[own.double() for own in plain.destinations],
            naming=[],
        ),
    ]


@check(
    "collectives",
    points=1,
    statement="combine_rows inverts dispatch_rows in any group and for every dtype; another number of rows than were "
    "received is a ValueError before anything is sent.",
    worlds=(3, 5),
    needs=("dispatch_rows", "combine_rows"),
    core=False,
    bonus=True,
)
def test_rows_combined_again(check: Check) -> None:
    processes = [
        process(4, "int16"),
        process(2, "bool"),
        process(None, "complex64"),
        process(3, "bfloat16", layout="strided"),
        process(3, rows_too_many=1),
        process(3),
    ]
    for size in check.worlds:
        groups = GROUPS[size]
        options = {"among": IN_GROUPS, "group": "own"} if groups else {}
        call = drawn(check, "rows that differ by rank", [6, 0, 9, 2, 13][:size], **options)
        outside = [process(3, group="other")] if groups else []
        run_combines(check, size, call, [*processes, *outside], groups)
