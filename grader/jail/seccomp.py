"""The filter of system calls that each world puts on itself, as bytes: a program in classic BPF.

gloo needs sockets of AF_UNIX, AF_INET and, to list interfaces, AF_NETLINK; torch and Python need threads, fork
and ordinary files. What they do not need and what reaches beyond a process is refused: with EPERM, or with
ENOSYS where a library then falls back to an older call.
"""

from __future__ import annotations

import errno
import struct

from grader.jail.syscalls import ARCHITECTURES, EXAMINED, FIRST_UNKNOWN, REFUSED, Architecture

# Instructions, from linux/bpf_common.h and linux/filter.h. They work on one register, A.
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06  # A = word of seccomp_data; A &= k; end with k
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45  # A == k; A >= k; A & k
# struct seccomp_data, from linux/seccomp.h
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_KILL_PROCESS, _ALLOW, _REFUSE_WITH = 0x80000000, 0x7FFF0000, 0x00050000

# CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET}
_NEW_NAMESPACE = 0x80 | 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_AF_UNIX, _AF_INET, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 16, 0
_MAP_ANONYMOUS, _MAP_SHARED, _MAP_SHARED_VALIDATE = 0x20, 1, 3
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

Instruction = tuple[int, int, int, int]  # operation, jump if true, jump if false (both relative), k


def filter_for(machine: str) -> bytes:
    """The filter for `machine` (as `platform.machine()` names it), to be loaded by `confine.load_filter`.

    Raises ValueError for a machine whose numbers of system calls are not known here.
    """
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        known = " and ".join(ARCHITECTURES)
        raise ValueError(f"the filter of system calls is written for {known}, not for {machine}")
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program_for(architecture))


def program_for(architecture: Architecture) -> list[Instruction]:
    """The filter as instructions. Every block below ends in a return, so their order does not matter."""
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, _KILL_PROCESS),  # 32-bit calls have other numbers
        (_LOAD, 0, 0, _NUMBER),
        (_IF_AT_LEAST, 0, 1, FIRST_UNKNOWN),  # the numbers of x32, from 2**30, too
        _refuse(errno.ENOSYS),
    ]
    for numbers in REFUSED.values():
        number = numbers[architecture.column]
        if number is not None:
            program += _when(number, [_refuse()])
    for name, block in _examined().items():
        program += _when(EXAMINED[name][architecture.column], block)
    program.append(_allow())
    return program


def _examined() -> dict[str, list[Instruction]]:
    """What is done with each call that is decided by its arguments."""
    family = [
        _load_argument(0),
        (_IF_EQUAL, 4, 0, _AF_UNIX),
        (_IF_EQUAL, 3, 0, _AF_INET),
        (_IF_EQUAL, 0, 3, _AF_NETLINK),
        _load_argument(2),
        (_IF_EQUAL, 0, 1, _NETLINK_ROUTE),
        _allow(),
        _refuse(),
    ]
    return {
        # glibc falls back to clone, whose flags are not behind a pointer
        "clone3": [_refuse(errno.ENOSYS)],
        "clone": [_load_argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACE), _refuse(), _allow()],
        "socket": family,
        "socketpair": family,
        # shared anonymous memory is counted by no limit
        "mmap": [
            _load_argument(3),
            (_AND, 0, 0, _MAP_ANONYMOUS | 0x0F),
            (_IF_EQUAL, 1, 0, _MAP_ANONYMOUS | _MAP_SHARED),
            (_IF_EQUAL, 0, 1, _MAP_ANONYMOUS | _MAP_SHARED_VALIDATE),
            _refuse(),
            _allow(),
        ],
        # a rank may change its own limits, not those of its warden or its peers
        "prlimit64": [_load_argument(0), (_IF_EQUAL, 1, 0, 0), _refuse(), _allow()],
        "ioctl": [
            _load_argument(1),
            (_IF_EQUAL, 1, 0, _TIOCSTI),
            (_IF_EQUAL, 0, 1, _TIOCLINUX),
            _refuse(),
            _allow(),
        ],
    }


def _when(number: int, block: list[Instruction]) -> list[Instruction]:
    return [(_IF_EQUAL, 0, len(block), number), *block]


def _load_argument(index: int) -> Instruction:
    # All arguments that are looked at are 32 bits wide in the kernel; both machines store the low half first.
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refuse(code: int = errno.EPERM) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE_WITH | code)


def _allow() -> Instruction:
    return (_RETURN, 0, 0, _ALLOW)
