"""The filter of system calls, run by a small machine of our own: every decision, on both architectures."""

from __future__ import annotations

import errno
import platform
import struct

import pytest

from grader.jail.seccomp import filter_for
from grader.jail.syscalls import ARCHITECTURES, EXAMINED, FIRST_UNKNOWN, REFUSED

MACHINES = sorted(ARCHITECTURES)
ALLOW, KILL = "allow", "kill"
I386 = 0x40000003


def decide(machine: str, number: int, *arguments: int, audit: int | None = None) -> str:
    """What the filter for `machine` answers to a system call: "allow", "kill" or the name of an error."""
    code = filter_for(machine)
    program = list(struct.iter_unpack("=HBBI", code))
    arch = ARCHITECTURES[machine].audit if audit is None else audit
    filled = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(value & (2**64 - 1) for value in filled))
    at = register = 0
    while True:
        operation, if_true, if_false, k = program[at]
        at += 1
        match operation:
            case 0x20:
                (register,) = struct.unpack_from("<I", data, k)
            case 0x54:
                register &= k
            case 0x15:
                at += if_true if register == k else if_false
            case 0x35:
                at += if_true if register >= k else if_false
            case 0x45:
                at += if_true if register & k else if_false
            case 0x06:
                action, value = k & 0xFFFF0000, k & 0xFFFF
                return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(action) or errno.errorcode[value]
            case _:
                raise AssertionError(f"instruction {operation:#x}")


def number_of(machine: str, name: str) -> int:
    number = {**REFUSED, **EXAMINED}[name][ARCHITECTURES[machine].column]
    assert number is not None
    return number


@pytest.mark.parametrize("machine", MACHINES)
def test_every_refused_call_is_refused(machine: str) -> None:
    column = ARCHITECTURES[machine].column
    for name, numbers in REFUSED.items():
        if numbers[column] is not None:
            assert decide(machine, numbers[column]) == "EPERM", name


@pytest.mark.parametrize("machine", MACHINES)
def test_every_other_known_call_is_allowed(machine: str) -> None:
    column = ARCHITECTURES[machine].column
    named = {numbers[column] for numbers in (*REFUSED.values(), *EXAMINED.values())}
    for number in range(FIRST_UNKNOWN):
        if number not in named:
            assert decide(machine, number, -1, -1, -1) == ALLOW, number


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_is_in_two_rows(machine: str) -> None:
    column = ARCHITECTURES[machine].column
    numbers = [row[column] for row in (*REFUSED.values(), *EXAMINED.values()) if row[column] is not None]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("number", [FIRST_UNKNOWN, 1000, 0x40000000, 0x40000000 + 59, 0xFFFFFFFF])
def test_unknown_calls_do_not_exist(machine: str, number: int) -> None:
    assert decide(machine, number) == "ENOSYS"


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architectures_calls_end_the_process(machine: str) -> None:
    assert decide(machine, 1, audit=I386) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone3", (), "ENOSYS"),
        ("clone", (0x003D0F00,), ALLOW),  # a thread
        ("clone", (0x01200011,), ALLOW),  # a fork
        ("clone", (0x10000011,), "EPERM"),  # a user namespace
        ("clone", (0x20000011,), "EPERM"),
        ("clone", (0x40000011,), "EPERM"),
        ("clone", (0x00020011,), "EPERM"),
        ("socket", (1, 1, 0), ALLOW),
        ("socket", (2, 1, 6), ALLOW),
        ("socket", (16, 3, 0), ALLOW),  # routes and interfaces
        ("socket", (16, 3, 12), "EPERM"),  # netfilter
        ("socket", (10, 1, 0), "EPERM"),
        ("socket", (17, 3, 0), "EPERM"),
        ("socket", (40, 1, 0), "EPERM"),
        ("socketpair", (1, 1, 0), ALLOW),
        ("socketpair", (30, 1, 0), "EPERM"),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 3, 0x01), ALLOW),  # a file, shared
        ("mmap", (0, 4096, 3, 0x21), "EPERM"),
        ("mmap", (0, 4096, 3, 0x23), "EPERM"),
        ("mmap", (0, 4096, 3, 0x8021), "EPERM"),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (1, 7), "EPERM"),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), "EPERM"),
        ("ioctl", (0, 0x541C), "EPERM"),
        # the upper half of a 64-bit argument is nothing to the kernel
        ("ioctl", (0, 2**32 + 0x5412), "EPERM"),
        ("socket", (2**32 + 17, 3, 0), "EPERM"),
    ],
)
def test_arguments_decide(machine: str, name: str, arguments: tuple[int, ...], expected: str) -> None:
    assert decide(machine, number_of(machine, name), *arguments) == expected


def test_an_architecture_without_a_table_is_refused_clearly() -> None:
    with pytest.raises(ValueError, match="x86_64 and aarch64, not for riscv64"):
        filter_for("riscv64")


def test_this_machine_has_a_filter_of_whole_instructions() -> None:
    if platform.machine() not in ARCHITECTURES:
        pytest.skip(f"there is no filter for {platform.machine()}")
    assert len(filter_for(platform.machine())) % 8 == 0
