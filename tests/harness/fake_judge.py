"""A judge that plays a part: the submission's collectives.py says, as JSON, what it does instead of judging.

Run as a program by `batch_parts.FakeCommand`. It imports the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
from pathlib import Path


def main(task: dict[str, object]) -> None:
    """Plays: `status` of each check by name ("pass" unless said), and at check `at` (its name) the `act`.

    Where the environment names a file FAKE_GATE, the act is left out as soon as that file is there.
    """
    staged = Path(str(task["staged"]))
    role = json.loads((staged / "collectives.py").read_bytes()) if (staged / "collectives.py").exists() else {}
    out = int(str(task["verdicts"]))
    checks = task["checks"]
    assert isinstance(checks, list)
    if task["log"]:
        with Path(str(task["log"])).open("a") as log:
            log.write(json.dumps({"name": task["name"], "checks": checks, "pid": os.getpid()}) + "\n")

    def say(record: dict[str, object]) -> None:
        line = json.dumps(record).encode() + b"\n"
        while line:
            line = line[os.write(out, line) :]

    gate = os.environ.get("FAKE_GATE")
    plays = "act" in role and not (gate and Path(gate).exists())
    for check in checks:
        say({"event": "start", "check": check})
        if plays and role.get("at") == check:
            act(str(role["act"]), out, int(str(task["lifeline"])))
        status = role.get("status", {}).get(check, "pass")
        say(
            {
                "event": "verdict",
                "check": check,
                "status": status,
                "points": 5 if status == "pass" else 0,
                "possible": 5,
                "seconds": 0.25,
                "seed": 2**63 + 7,
                "explanation": None
                if status == "pass"
                else {"rationale": f"{check} says {status}", "expected": "1", "actual": "2", "where": "", "help": ""},
                "unwritten": "",
                "output": "",
                "replay": "",
            }
        )
    if plays and role["act"] == "mute":
        return
    say({"event": "end"})
    if plays and role["act"] == "linger":
        signal.pause()


def act(kind: str, out: int, lifeline: int) -> None:
    """What goes wrong."""
    match kind:
        case "die":
            print("the judge's last words")
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            raise SystemExit(7)
        case "hang":
            faulthandler.enable()  # as pytest does
            os.read(lifeline, 1)
        case "stubborn":
            signal.signal(signal.SIGABRT, signal.SIG_IGN)
            while True:
                signal.pause()
        case "flood":
            for _ in range(2000):
                os.write(1, b"x" * 1023 + b"\n")
        case "garble":
            os.write(out, b"{'event': oh no}\n")
        case "torn":
            os.write(out, b'{"event": "verdict", "check": "coll')
            raise SystemExit(1)
        case "endless_line":
            while True:
                os.write(out, b"x" * 65536)
        case "lie":
            os.write(out, json.dumps({"event": "verdict", "check": "no.such", "status": "pass"}).encode() + b"\n")
        case "leak":  # a child that outlives the judge and holds all its pipes
            if os.fork() == 0:
                os.read(lifeline, 1)
                os._exit(0)
            raise SystemExit(1)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
