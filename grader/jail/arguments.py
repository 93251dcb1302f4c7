"""bubblewrap's arguments (see bwrap(1)), from a plan: pure.

Their order counts: each is done to what the ones before it have made. Nothing of /proc is mounted, since a procfs
shows the host's paths and environment, and lets processes of one user open each other's memory and descriptors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from grader.jail.binds import BindPlan
from grader.jail.form import Form

SHARED_MEMORY_BYTES = TMP_BYTES = 16 * 2**20  # the zygote's; each world gets its own
DEVICES = ("/dev/null", "/dev/random", "/dev/urandom")  # no /dev/zero: shared, it is memory that nobody counts
# What the zygote needs to make the namespaces of each world and to give all this up in it.
KEPT = ("SYS_ADMIN", "NET_ADMIN", "SETPCAP")
_TO_LEAVE_ROOT = ("SETUID", "SETGID")


def arguments_for(plan: BindPlan, form: Form, environment: Mapping[str, str]) -> list[str]:
    """Everything before the program's own command line. `environment` is all that the program gets."""
    return [
        *_namespaces(form),
        *("--clearenv", *_each("--setenv", environment.items())),
        *_folders(plan),
        *("--perms", "0755", "--size", "65536", "--tmpfs", "/dev"),
        *_each("--dev-bind", ((device, device) for device in DEVICES)),
        *("--perms", "1777", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"),
        *("--ro-bind", "/proc/cpuinfo", "/proc/cpuinfo"),  # torch reads it at import
        *_each("--ro-bind", ((str(bind.source), str(bind.target)) for bind in plan.binds)),
        *_covers(plan.covered),
        *("--remount-ro", "/"),
        *("--chdir", "/"),
    ]


def environment_for(plan: BindPlan, zygote: Mapping[str, str]) -> dict[str, str]:
    """`zygote`'s environment and what any program needs in a place without an /etc."""
    return {
        **zygote,
        "HOME": "/tmp",
        "USER": "student",
        "PATH": str(plan.program.parent),
        "LD_LIBRARY_PATH": ":".join(str(path) for path in plan.library_path),
    }


def _namespaces(form: Form) -> list[str]:
    own = ["--unshare-user", "--uid", "1000", "--gid", "1000"] if form.user_namespace else []
    shared = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    kept = KEPT if form.user_namespace else (*KEPT, *_TO_LEAVE_ROOT)
    return [
        *own,
        *shared,
        *("--hostname", "jail", "--new-session", "--cap-drop", "ALL"),
        *_each("--cap-add", ((f"CAP_{name}",) for name in kept)),
    ]


def _folders(plan: BindPlan) -> list[str]:
    """Every folder above a bind, which bubblewrap would else make for its own user alone."""
    above = {parent for bind in plan.binds for parent in bind.target.parents}
    above |= {PurePosixPath("/proc"), PurePosixPath("/dev")}
    above.discard(PurePosixPath("/"))
    # Folders within a bind are there already, and cannot be made.
    targets = {bind.target for bind in plan.binds}
    made = sorted(folder for folder in above if targets.isdisjoint((folder, *folder.parents)))
    return [word for folder in made for word in ("--perms", "0755", "--dir", str(folder))]


def _covers(folders: Iterable[PurePosixPath]) -> list[str]:
    words: list[str] = []
    for folder in folders:
        words += ["--perms", "0755", "--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    return words


def _each(option: str, values: Iterable[tuple[str, ...]]) -> list[str]:
    return [word for value in values for word in (option, *value)]
