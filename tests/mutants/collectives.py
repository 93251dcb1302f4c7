"""Mutants and variants of collectives.py."""

from tests.mutants.mutant import Edit, Mutant, Variant

MUTANTS: list[Mutant] = []
VARIANTS: list[Variant] = []
