"""What a process of a world does to itself: end with its parent, and, in a jail, give up all it could do.

Linux only, by system calls through ctypes. Elsewhere the calls that a plain world makes do nothing
(`die_with_parent`, `become_subreaper`, `apply` of an empty `Confinement`), and those of a
jail raise OSError: a jail that is none must not start. Each raises OSError where the kernel refuses it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterable, Mapping

from grader.world.jail import Confinement

PRIVATE_TMP_BYTES = 64 * 2**20
PRIVATE_TMP_FILES = 4096  # an unbounded number of empty files would cost kernel memory
PRIVATE_FOLDERS = ("/tmp", "/dev/shm")

# From linux/prctl.h, linux/seccomp.h, linux/sched.h, linux/mount.h and linux/capability.h.
_PR_SET_PDEATHSIG, _PR_SET_KEEPCAPS, _PR_SET_SECCOMP = 1, 8, 22
_PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL, _SECCOMP_MODE_FILTER, _SIGKILL = 4, 2, 9
_CLONE_NEWNS, _CLONE_NEWPID, _CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = {"SETPCAP": 8, "NET_ADMIN": 12, "SYS_ADMIN": 21}
# From linux/sockios.h and linux/if.h.
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP, _IFREQ = 0x8913, 0x8914, 1, "16sh22x"


def die_with_parent() -> None:
    """This process is killed when the thread that forked it ends. Forked children do not inherit it.

    A parent that is already gone is not noticed: call it at once after the fork.
    """
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def end_with(lifeline: socket.socket) -> None:
    """This process is ended, by SIGIO, when the other end of `lifeline` is closed; at once if it is already.

    Unlike `die_with_parent` it leaves no moment in which the other's death goes unnoticed, and does not depend on
    which thread forked. Nothing may be sent over `lifeline` from the other end. Children are not ended by it.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(0)


def become_subreaper() -> None:
    """A descendant whose parent has ended becomes this process's child, daemons too. Not inherited."""
    if sys.platform == "linux":
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def enter_pid_namespace() -> None:
    """This process's NEXT child is process 1 of a new pid namespace; this process itself stays outside.

    Needs CAP_SYS_ADMIN. When that child ends, the kernel ends every process of the namespace before the child
    can be reaped; a second fork after that is refused. Processes inside neither see nor signal any outside.
    """
    _check(_libc().unshare(_CLONE_NEWPID), "a pid namespace of its own")


def private_tmp(size_bytes: int = PRIVATE_TMP_BYTES) -> None:
    """From here on this process and its children have an empty /tmp and /dev/shm of their own.

    They are gone with the last of these processes; `size_bytes` bounds each. Needs CAP_SYS_ADMIN.
    """
    libc = _libc()
    _check(libc.unshare(_CLONE_NEWNS), "a mount namespace of its own")
    # What is mounted from here on must not appear in the zygote's namespace.
    _check(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "private mounts")
    options = f"size={size_bytes},nr_inodes={PRIVATE_TMP_FILES},mode=1777".encode()
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    for folder in PRIVATE_FOLDERS:
        _check(libc.mount(b"tmpfs", folder.encode(), b"tmpfs", flags, options), f"a private {folder}")


def private_network() -> None:
    """From here on this process and its children have a network of their own: a loopback interface, nothing else.

    No connection, port or abstract socket is shared with another world. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
    """
    _check(_libc().unshare(_CLONE_NEWNET), "a network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack(_IFREQ, b"lo", 0))
        (_, flags) = struct.unpack(_IFREQ, request)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack(_IFREQ, b"lo", flags | _IFF_UP))


def drop_privileges() -> None:
    """Gives up every capability for good, also for what is executed later. Needs CAP_SETPCAP."""
    capability = 0
    while _libc().prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    if ctypes.get_errno() != errno.EINVAL:  # EINVAL: past the last capability of this kernel
        _check(-1, f"without capability {capability}")
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    _set_capabilities(())
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become_user(uid: int, gid: int, keep: Iterable[str] = ()) -> None:
    """Turns root into an ordinary user with only the capabilities in `keep` ("SYS_ADMIN", …)."""
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _set_capabilities(keep)


def apply_limits(limits: Mapping[str, int]) -> None:
    """Sets resource limits by name ("NPROC", "DATA", …), soft and hard, for this process and its children.

    A limit that is already lower stays. Raises ValueError for a name that this system does not have.
    """
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            raise ValueError(f"no resource limit is called {name!r} here")
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))


def load_filter(seccomp: bytes) -> None:
    """Puts every later system call of this process and its children through `seccomp`, for good.

    seccomp: an array of struct sock_filter, 8 bytes each. Executing a program gains no privileges any more.
    """
    count, rest = divmod(len(seccomp), 8)
    if rest or not count:
        raise ValueError(f"a filter is a whole number of 8-byte instructions, not {len(seccomp)} bytes")
    code = ctypes.create_string_buffer(seccomp, len(seccomp))
    program = _FilterProgram(count, ctypes.addressof(code))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program))


def apply(confinement: Confinement) -> None:
    """Confines this process and whatever it forks later, as `confinement` says; an empty one changes nothing.

    With a pid namespace this process is its process 1 (see `enter_pid_namespace`) and has CAP_SYS_ADMIN,
    CAP_NET_ADMIN and CAP_SETPCAP, of which none is left. Raises OSError rather than leave a part undone.
    """
    if confinement.pid_namespace:
        private_tmp()
        private_network()
    apply_limits(confinement.limits)
    if confinement.pid_namespace:
        drop_privileges()
    if confinement.seccomp:
        load_filter(confinement.seccomp)  # last: it refuses what the steps above need


class _FilterProgram(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _set_capabilities(names: Iterable[str]) -> None:
    names = tuple(names)
    wanted = sum(1 << _CAPABILITIES[name] for name in names)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    low, high = wanted & 0xFFFFFFFF, wanted >> 32
    # two of struct __user_cap_data_struct: effective, permitted, inheritable
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _check(_libc().capset(header, data), f"exactly these capabilities: {', '.join(names) or 'none'}")


def _prctl(option: int, *arguments: int) -> None:
    filled = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    _check(_libc().prctl(option, *filled), f"prctl option {option}")


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "a jail needs Linux")
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, wanted: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{os.strerror(code)}: the kernel refused {wanted}")
