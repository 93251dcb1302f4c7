"""Mutants and variants of collectives.py."""

from dataclasses import replace

from tests.mutants import (
    collectives_bonus,
    collectives_exchange,
    collectives_rings,
    collectives_roots,
    collectives_rules,
    collectives_setup,
    collectives_traffic,
    collectives_variants,
    collectives_variants_messages,
)
from tests.mutants.mutant import Mutant, Variant

MUTANTS: list[Mutant] = [
    *collectives_setup.MUTANTS,
    *collectives_roots.MUTANTS,
    *collectives_rules.MUTANTS,
    *collectives_rings.MUTANTS,
    *collectives_exchange.MUTANTS,
    *collectives_traffic.MUTANTS,
    *collectives_bonus.MUTANTS,
]
BONUS = (
    "collectives.global_mean_and_variance",
    "collectives.variance_far_from_zero",
    "collectives.dispatch_rows",
    "collectives.rows_dispatched_unevenly",
    "collectives.combine_rows",
    "collectives.rows_combined_again",
)
VARIANTS: list[Variant] = [
    *collectives_variants.VARIANTS,
    *collectives_variants_messages.VARIANTS,
    *(replace(variant, checks=BONUS) for variant in collectives_bonus.VARIANTS),
]
