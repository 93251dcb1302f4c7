"""Benchmarks: `make bench`. Ratios of two things measured in the same run; no test depends on a time."""
