"""Mutants and variants of tensor_parallel.py."""

from tests.mutants.mutant import Edit, Mutant, Variant

MUTANTS: list[Mutant] = []
VARIANTS: list[Variant] = []
