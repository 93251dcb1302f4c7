"""Run one program on N ranks, and say exactly what went wrong."""

from grader.world.failure import Failure, Frame, Kind, RankFailure
from grader.world.jail import Confinement, Jail, NoJail
from grader.world.launcher import InfraError, Launcher
from grader.world.program import Here, Program, Submitted
from grader.world.trace import Doing, Event, Trace
from grader.world.values import Foreign, PerRank
from grader.world.world import Returned, World

__all__ = [
    "Confinement",
    "Doing",
    "Event",
    "Failure",
    "Foreign",
    "Frame",
    "Here",
    "InfraError",
    "Jail",
    "Kind",
    "Launcher",
    "NoJail",
    "PerRank",
    "Program",
    "RankFailure",
    "Returned",
    "Submitted",
    "Trace",
    "World",
]
