"""Mutants and variants of pipeline_parallel.py."""

from tests.mutants.mutant import Mutant
from tests.mutants.pipeline_backwards import BACKWARDS, LEFT_BEHIND
from tests.mutants.pipeline_forwards import FORWARDS
from tests.mutants.pipeline_messages import MESSAGES
from tests.mutants.pipeline_overlaps import OVERLAPS
from tests.mutants.pipeline_plans import SCHEDULES, SPLITS
from tests.mutants.pipeline_refusals import REFUSALS
from tests.mutants.pipeline_traffic import TRAFFIC
from tests.mutants.pipeline_variants import VARIANTS

MUTANTS: list[Mutant] = [
    *SPLITS,
    *SCHEDULES,
    *FORWARDS,
    *MESSAGES,
    *TRAFFIC,
    *OVERLAPS,
    *BACKWARDS,
    *LEFT_BEHIND,
    *REFUSALS,
]

__all__ = ["MUTANTS", "VARIANTS"]
