"""Mutants and variants of accounting.py."""

from tests.mutants import accounting_costs, accounting_limits
from tests.mutants.mutant import Mutant, Variant

MUTANTS: list[Mutant] = [*accounting_costs.MUTANTS, *accounting_limits.MUTANTS]
VARIANTS: list[Variant] = [*accounting_limits.VARIANTS]
