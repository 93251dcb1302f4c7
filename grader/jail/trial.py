"""Trying a jail: a small program makes a confined world inside it, as the zygote would, and says whether it could."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from grader.jail.form import Form
from grader.jail.process import JailedProcess

TRIAL_SECONDS = 20.0

# Runs inside. Exit code 0: a world could be confined. Each error reaches stderr as a traceback.
TRIAL = """
import os, sys
from importlib.util import find_spec
from grader.world import confine
from grader.world.jail import Confinement
for name in ("torch", "numpy", "safetensors", "grader.given"):
    open(find_spec(name).origin, "rb").close()
confine.enter_pid_namespace()
first = os.fork()
if first == 0:
    confine.apply(Confinement(pid_namespace=True, seccomp={seccomp!r}))
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        os._exit(0 if os.getpid() == 1 else 1)
    os._exit(1)
_, status = os.waitpid(first, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""

NO_NAMESPACES = (
    "this system lets {who} make no namespaces. Allow unprivileged user namespaces (sysctl "
    "kernel.unprivileged_userns_clone=1 or, on Ubuntu, kernel.apparmor_restrict_unprivileged_userns=0), start the "
    "container with --privileged, or run as root on the machine itself"
)
UNREACHABLE = "{who} cannot read {path}"


@dataclass(frozen=True)
class Trial:
    """What became of one form of the jail. reason: one sentence without its full stop; "" if the form works."""

    form: Form
    reason: str

    @property
    def works(self) -> bool:
        """Whether a world could be confined in it."""
        return not self.reason

    @staticmethod
    def of(form: Form, process: JailedProcess) -> Trial:
        """Waits for a jail that runs TRIAL."""
        try:
            _, errors = process.communicate(timeout=TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return Trial(form, f"a jail made by {form.name} did not answer within {TRIAL_SECONDS:.0f} seconds")
        process.wait()
        if process.returncode == 0 and process.command_ran:
            return Trial(form, "")
        said = errors.decode(errors="replace").strip()
        return Trial(form, reason_of(form, said, command_ran=process.command_ran))


def reason_of(form: Form, said: str, *, command_ran: bool) -> str:
    """Why a trial failed, from what was written to stderr; pure."""
    last = said.splitlines()[-1] if said else "it wrote nothing"
    unreachable = re.search(r"Can't find source path (.*?): Permission denied", said)
    if unreachable:
        return UNREACHABLE.format(who=form.name, path=unreachable[1])
    if command_ran:
        return f"bubblewrap runs as {form.name}, but a world inside cannot be confined: {last}"
    if re.search(r"namespace|uid map|gid map|Operation not permitted|No permissions", said):
        return f"{NO_NAMESPACES.format(who=form.name)} ({last})"
    return f"bubblewrap does not run as {form.name}: {last}"
