"""The zygote: a process with torch imported and one thread, from which the warden of each world is forked.

Our own fork server, since multiprocessing's runs the judge's `__main__` again in every rank and sends them its
environment. On its control socket it hears one {"confinement"} and then a {"world"} with descriptors for each world.
"""

from __future__ import annotations

import base64
import gc
import os
import select
import signal
import socket
import sys
from typing import Any

from grader.world import wire
from grader.world.jail import Confinement
from grader.world.pages import join_pages
from grader.world.warden import Lines, run_world

MAX_DESCRIPTORS = 250


def main(control_descriptor: int) -> None:
    """Serves until the judge closes the control socket."""
    import torch
    import torch._dynamo
    import torch.distributed
    from safetensors.torch import load, save

    load(save({"warm": torch.zeros(1)}))
    torch.set_num_threads(1)
    gc.collect()
    idle_work = join_pages()
    gc.freeze()  # a collection in a rank would otherwise copy every page of the imports
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # wardens are reaped by the kernel
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the judge's to handle
    control = socket.socket(fileno=control_descriptor)
    confinement = _confinement(_hear(control))
    wire.send(control, {"event": "ready", "torch": torch.__version__})
    worlds = 0
    while True:
        # While nobody asks, worlds are made cheaper; a run of a single world does not pay for it.
        while worlds > 1 and not _asked(control) and next(idle_work, False) is None:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, 65536, MAX_DESCRIPTORS)
        if not data:
            return
        wire.send(control, {"event": "taken"})
        worlds += 1
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            run_world(Lines.of(descriptors), confinement)
        for descriptor in descriptors:
            os.close(descriptor)


def _asked(control: socket.socket) -> bool:
    return bool(select.select([control], [], [], 0)[0])


def _hear(control: socket.socket) -> dict[str, Any]:
    message = wire.receive(control)
    if message is None:
        sys.exit("the judge has gone")
    return message.head


def _confinement(head: dict[str, Any]) -> Confinement:
    return Confinement(
        pid_namespace=head["pid_namespace"], limits=head["limits"], seccomp=base64.b64decode(head["seccomp"])
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
