"""Mutants and variants of the bonus functions of collectives.py."""

from tests.mutants import collectives_bonus_moments as moments
from tests.mutants import collectives_bonus_rows as rows
from tests.mutants.mutant import Mutant, Variant

MUTANTS: list[Mutant] = [*moments.MUTANTS, *rows.MUTANTS]
VARIANTS: list[Variant] = [*moments.VARIANTS, *rows.VARIANTS]
