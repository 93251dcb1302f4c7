"""Making forks cheap: the zygote's memory in pages of 2 MiB instead of 4 KiB.

A fork copies an entry for each page and the child's end frees it again; with some 50,000 pages of imports that is most
of what a world costs. Linux 6.1 and newer join pages on request (MADV_COLLAPSE). Elsewhere nothing happens.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator, Sequence

HUGE = 2 * 2**20
_MADV_COLLAPSE = 25  # linux/mman.h


def join_pages() -> Iterator[None]:
    """Joins one huge page of this process's Python objects and heap at each step (a few milliseconds).

    Which pages those are is found out in the call itself: do it before gc.freeze(), which hides objects.
    """
    if sys.platform != "linux":
        return iter(())
    # A jail has no /proc/self/maps: where objects lie says which memory is worth it.
    return _join_each(sorted({id(thing) // HUGE for thing in gc.get_objects()}))


def _join_each(numbers: Sequence[int]) -> Iterator[None]:
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.sbrk.argtypes, libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p

    def join(number: int) -> bool:
        # It fails where memory is not mapped, or is shared: then it stays as it is.
        return bool(libc.madvise(number * HUGE, HUGE, _MADV_COLLAPSE) == 0)

    for number in numbers:
        join(number)
        yield
    # The heap grows upwards to here; below its first page, which fails, lies something else.
    number = libc.sbrk(0) // HUGE - 1
    while number in numbers or join(number):
        yield
        number -= 1
