"""Mutants and variants of data_parallel.py."""

from tests.mutants import (
    data_parallel_accumulation,
    data_parallel_functions,
    data_parallel_missing,
    data_parallel_overlap,
    data_parallel_overlap_variants,
    data_parallel_traffic,
    data_parallel_variants,
    data_parallel_wrappers,
)
from tests.mutants.mutant import Mutant, Variant

__all__ = ["MUTANTS", "VARIANTS"]

MUTANTS: list[Mutant] = [
    *data_parallel_functions.MUTANTS,
    *data_parallel_wrappers.MUTANTS,
    *data_parallel_missing.MUTANTS,
    *data_parallel_accumulation.MUTANTS,
    *data_parallel_traffic.MUTANTS,
    *data_parallel_overlap.MUTANTS,
]
VARIANTS: list[Variant] = [*data_parallel_variants.VARIANTS, *data_parallel_overlap_variants.VARIANTS]
