"""Mutants and variants of tensor_parallel.py."""

from tests.mutants.tensor_functions import CONJUGATES, SHARDS
from tests.mutants.tensor_layers import LAYERS, NETWORKS
from tests.mutants.tensor_traffic import TRAFFIC
from tests.mutants.tensor_variants import VARIANTS

__all__ = ["MUTANTS", "VARIANTS"]

MUTANTS = [*SHARDS, *CONJUGATES, *LAYERS, *NETWORKS, *TRAFFIC]
