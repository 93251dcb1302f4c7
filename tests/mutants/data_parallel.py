"""Mutants and variants of data_parallel.py."""

from tests.mutants import (
    data_parallel_accumulation,
    data_parallel_functions,
    data_parallel_missing,
    data_parallel_wrappers,
)
from tests.mutants.data_parallel_variants import VARIANTS
from tests.mutants.mutant import Mutant

__all__ = ["MUTANTS", "VARIANTS"]

MUTANTS: list[Mutant] = [
    *data_parallel_functions.MUTANTS,
    *data_parallel_wrappers.MUTANTS,
    *data_parallel_missing.MUTANTS,
    *data_parallel_accumulation.MUTANTS,
]
