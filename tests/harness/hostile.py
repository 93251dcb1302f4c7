"""Programs that do inside the jail what a hostile submission would try, and report what came of it."""
# ruff: noqa: ARG001, PTH110, PTH113, PTH116, PTH123, PTH208  every program takes `here`; what is tried here is the system's calls, not a library

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import stat
import sys
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist

MIB = 2**20
CHUNK = 4 * MIB


def adds_up(here):
    total = torch.full((3,), float(here.rank + 1), requires_grad=True)
    (total * 2).sum().backward()
    dist.all_reduce(total.grad)
    return total.grad


# --- what can be read and written


def looks_for(here, *, needles):
    """Reads every file below / that it can, to its last byte."""
    wanted = [needle.encode() for needle in needles]
    longest = max(len(needle) for needle in wanted)
    found, files, roots = [], 0, set()
    for folder, _, names in os.walk("/"):
        for name in names:
            path = f"{folder}/{name}"
            try:
                if not stat.S_ISREG(os.stat(path).st_mode):
                    continue
                with open(path, "rb") as file:
                    files += 1
                    roots.add(path.split("/")[2])
                    tail = b""
                    while chunk := file.read(CHUNK):
                        data = tail + chunk
                        found += [[path, needle.decode()] for needle in wanted if needle in data]
                        tail = data[-longest:]
            except OSError:
                continue
    return {"found": found, "files": files, "roots": sorted(roots)}


def describes(here):
    """What a submission can learn of where it runs."""
    return {
        "environment": dict(os.environ),
        "host": socket.gethostname(),
        "arguments": sys.orig_argv,
        "module_path": sys.path,
        "root": sorted(os.listdir("/")),
        "proc": sorted(os.listdir("/proc")),
        "devices": sorted(os.listdir("/dev")),
        "tmp": os.listdir("/tmp"),
        "shared_memory": os.listdir("/dev/shm"),
        "harness": sorted(os.listdir("/harness/grader")),
        "other_packages": [os.listdir(path) for path in sys.path if path.endswith("site-packages")],
        "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
        "groups": os.getgroups(),
    }


def writes_everywhere(here):
    """Tries to make a file in every folder, and to change every file; names those where it could."""
    written = []
    for folder, _, names in os.walk("/"):
        try:
            Path(folder, "made").write_text("here")
            written.append(folder)
        except OSError:
            pass
        for name in names:
            path = f"{folder}/{name}"
            if name == "made" or not os.path.isfile(path):
                continue
            try:
                os.close(os.open(path, os.O_WRONLY))
                written.append(path)
            except OSError:
                pass
    return [path for path in written if not path.startswith("/tmp/grader-world-")]


def leaves_files(here):
    for folder in ("/tmp", "/dev/shm"):
        Path(folder, "left").write_text("for the next world")
    return True


# --- what can be reached


def signals_everyone(here):
    """Kills all that it can name, its warden too, and says which numbers exist."""
    seen = []
    for pid in range(1, 40000):
        try:
            os.kill(pid, 0)
            seen.append(pid)
        except OSError:
            continue
    own = {os.getpid(), os.getppid()}
    harmless = ("SIGCHLD", "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGALRM", "SIGSTOP", "SIGKILL")
    for name in harmless:
        os.kill(os.getppid(), signal.Signals[name])
    try:
        os.kill(-1, signal.SIGKILL)
        others = "killed"
    except ProcessLookupError:
        others = "nobody"
    return {"others": [pid for pid in seen if pid not in own], "own": sorted(own), "all": others}


def connects(here, *, port, name):
    """Tries the judge's own sockets."""
    reached = {}
    for kind, family, address in (
        ("loopback", socket.AF_INET, ("127.0.0.1", port)),
        ("abstract", socket.AF_UNIX, "\0" + name),
        ("outside", socket.AF_INET, ("192.0.2.1", 80)),
    ):
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(2)
            try:
                client.connect(address)
                reached[kind] = "connected"
            except OSError as error:
                reached[kind] = errno.errorcode.get(error.errno or 0, str(error))
    return reached


def occupies_the_network(here, *, name):
    """Holds names and leaves closed connections, which go on occupying their ports."""
    with socket.socket(socket.AF_UNIX) as named:
        named.bind("\0" + name)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 23456))
        server.listen()
        with socket.create_connection(("127.0.0.1", 23456)) as client:
            peer, _ = server.accept()
            peer.close()
            client.recv(1)
    return True


def binds(here):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 23456))
    return True


def poisons_descriptors(here):
    """Makes every inherited descriptor non-blocking, and writes and shuts down what it can, but not its channel."""
    for number in range(3, 64):
        try:
            os.set_blocking(number, False)
        except OSError:
            continue
    os._exit(0)


def stays_behind(here, *, seconds):
    """Leaves daemons in sessions of their own, one of them deaf to signals and one stopped."""
    for kind in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                if kind == 1:
                    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
                        signal.signal(number, signal.SIG_IGN)
                if kind == 2:
                    os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(seconds)
            os._exit(0)
    return True


# --- what can be used up


def forks_and_threads(here):
    """Forks until it may not; then the same with threads."""
    children = []
    while len(children) < 1000:
        try:
            pid = os.fork()
        except OSError as error:
            forks = {"count": len(children), "error": errno.errorcode[error.errno]}
            break
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
    else:
        forks = {"count": len(children), "error": ""}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    ready, threads, end = threading.Semaphore(0), [], threading.Event()
    while len(threads) < 1000:
        thread = threading.Thread(target=lambda: (ready.release(), end.wait()), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            break
        threads.append(thread)
    end.set()
    return {"forks": forks, "threads": len(threads)}


def bombs(here):
    """Forks without end, each child too; every process spins."""
    while True:
        try:
            os.fork()
        except OSError:
            continue


def allocates(here):
    """What each way to get memory beyond the limit answers."""
    return {
        "tensor": _error(lambda: torch.ones(3 * 2**30, dtype=torch.uint8)),
        "bytes": _error(lambda: bytearray(3 * 2**30)),
        "shared": _error(lambda: mmap.mmap(-1, 4096)),
        "memory file": _error(lambda: os.memfd_create("x")),
        "disk": _error(lambda: _fill(Path("/tmp/big"), 200)),
        "shared memory": _error(lambda: _fill(Path("/dev/shm/big"), 200)),
        "many files": _error(lambda: [Path(f"/tmp/{number}").touch() for number in range(50_000)]),
        "descriptors": _error(lambda: [os.dup(0) for _ in range(5000)]),
        "raise a limit": _error(lambda: resource.setrlimit(resource.RLIMIT_NPROC, (4096, 4096))),
        "limit the warden": _error(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))),
        "zeros": os.path.exists("/dev/zero"),
    }


def _fill(path, mebibytes):
    """In pieces of 32 MiB, each below the limit of one file."""
    try:
        for number in range(mebibytes // 32):
            Path(f"{path}{number}").write_bytes(bytes(32 * MIB))
    finally:
        for number in range(mebibytes // 32):
            Path(f"{path}{number}").unlink(missing_ok=True)


def writes_a_large_file(here):
    return _error(lambda: Path("/tmp/large").write_bytes(bytes(100 * MIB)))


def _error(action):
    """The error's type and number of an action, "" where it succeeds."""
    try:
        action()
    except (OSError, MemoryError, RuntimeError, ValueError) as error:
        code = getattr(error, "errno", None)
        return errno.errorcode[code] if code else type(error).__name__
    return ""


# --- what the kernel still does


def calls(here, *, numbers):
    """The error of each system call, made with arguments that no kernel would take for good ones."""
    libc = ctypes.CDLL(None, use_errno=True)
    answers = {}
    for name, number in numbers.items():
        result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        answers[name] = errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else "done"
    return answers


def calls_with_arguments(here):
    """Calls that are decided by their arguments, here with those that must be refused."""
    libc = ctypes.CDLL(None, use_errno=True)

    def user_namespace():
        if libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "clone")

    return {
        "user namespace": _error(user_namespace),
        "raw": _error(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
        "kernel crypto": _error(lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)),
        "internet 6": _error(lambda: socket.socket(socket.AF_INET6)),
        "netfilter": _error(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)),
        "routes": _error(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()),
        "unix": _error(lambda: [end.close() for end in socket.socketpair()]),
        "threads": _error(lambda: threading.Thread(target=int).start()),
    }


def gives_up_privileges(here):
    """Every capability is gone, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    bounding = [number for number in range(64) if libc.prctl(23, number, 0, 0, 0) == 1]
    return {
        "held": list(data),
        "bounding": bounding,
        "no new privileges": libc.prctl(39, 0, 0, 0, 0),
        "seccomp": libc.prctl(21, 0, 0, 0, 0),
        "become root": _error(lambda: os.setresuid(0, 0, 0)),
        "device": _error(lambda: os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0))),
    }
