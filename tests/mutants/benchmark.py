"""Mutants and variants of benchmark.py."""

from tests.mutants import benchmark_buffers, benchmark_iterations, benchmark_measurements, benchmark_variants
from tests.mutants.mutant import Mutant, Variant

MUTANTS: list[Mutant] = [*benchmark_iterations.MUTANTS, *benchmark_measurements.MUTANTS, *benchmark_buffers.MUTANTS]
VARIANTS: list[Variant] = [*benchmark_variants.VARIANTS]
