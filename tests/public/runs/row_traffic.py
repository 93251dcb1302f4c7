"""How many bytes reach a rank when rows are exchanged: those meant for it, and not everybody's."""

from __future__ import annotations

from collections.abc import Sequence

from grader.checking import expect
from tests.public.runs.traffic import Traffic, listed, received_bytes

COUNTS_AND_INDICES = 1024  # bytes that may travel beside the rows


def expect_rows(
    traffic: Traffic,
    call: int,
    members: Sequence[int],
    counts: Sequence[Sequence[int]],
    row_bytes: int,
    *,
    what: str,
    rank: int,
) -> None:
    """counts[s][r]: the rows that s sends to r, both ranks in the group. Pieces may be padded to the longest."""
    traffic.expect_group(rank, call, members, what=what)
    if len(members) == 1:
        return  # a world of 1 need not communicate
    place = members.index(rank)
    issued = traffic.issued(rank, call)
    received = sum(map(received_bytes, issued))
    least = sum(own[place] for source, own in enumerate(counts) if source != place) * row_bytes
    most = len(members) * max(map(max, counts)) * row_bytes + COUNTS_AND_INDICES
    expect.true(
        received >= least,
        f"rank {rank}: {what} receives {received} bytes, fewer than the rows of other ranks that it returns",
        expected=f"{least} bytes at least, in operations of the group",
        actual=listed(issued) or "no operation",
        help="rows travel by torch's collectives or by messages; those of grader.given are not counted",
    )
    expect.true(
        received <= most,
        f"rank {rank}: {what} receives {received} bytes, also rows that are for other ranks",
        expected=f"its own rows only: {most} bytes at most, every piece padded to the longest",
        actual=listed(issued),
        help="exchange the counts first; then an all-to-all brings each row to its rank, and to no other",
    )
