"""Mutants and variants of collectives.py."""

from tests.mutants import (
    collectives_bonus,
    collectives_exchange,
    collectives_rings,
    collectives_roots,
    collectives_rules,
    collectives_setup,
    collectives_variants,
)
from tests.mutants.mutant import Mutant, Variant

MUTANTS: list[Mutant] = [
    *collectives_setup.MUTANTS,
    *collectives_roots.MUTANTS,
    *collectives_rules.MUTANTS,
    *collectives_rings.MUTANTS,
    *collectives_exchange.MUTANTS,
    *collectives_bonus.MUTANTS,
]
VARIANTS: list[Variant] = [*collectives_variants.VARIANTS, *collectives_bonus.VARIANTS]
