"""As whom bubblewrap runs, and which namespaces it makes: what differs between root and an ordinary user."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

# Beyond the users of people, of systemd's services and of containers, below 2**31; then systemd's dynamic users.
_SPARE = (range(0x70000000, 0x70000000 + 2**20), range(61184, 65520))


@dataclass(frozen=True)
class Form:
    """How a jail is made.

    name:           for messages.
    leave_root:     before bubblewrap starts, its process becomes an unprivileged user. Without that, root in a
                    user namespace is still root to the kernel's own files.
    user_namespace: the jail has one; else bubblewrap runs as root and the zygote leaves root after it.
    """

    name: str
    leave_root: bool
    user_namespace: bool


USER = Form("an ordinary user", leave_root=False, user_namespace=True)
DROPPED = Form("root that has become an ordinary user", leave_root=True, user_namespace=True)
# For what only root can reach, a Python below root's home, and where ordinary users may not make a namespace.
OUTER = Form("root", leave_root=False, user_namespace=False)


def forms_for(uid: int) -> tuple[Form, ...]:
    """The forms that may work for a judge that runs as `uid`, the strongest first."""
    return (DROPPED, OUTER) if uid == 0 else (USER,)


def spare_uid(uid_map: str, choose: Callable[[int], int] = secrets.randbelow) -> int:
    """A user id that nobody else has, of those that exist here (`uid_map`: the text of /proc/self/uid_map).

    Each jail gets another one, since the kernel counts processes by user. Raises ValueError where too few exist.
    """
    mapped = [[int(word) for word in line.split()] for line in uid_map.splitlines()]
    for spare in _SPARE:
        for first, _, count in mapped:
            if first <= spare.start and spare.stop <= first + count:
                return spare.start + choose(len(spare))
    raise ValueError("this container has too few user ids for a jail; it needs those up to 65535")
