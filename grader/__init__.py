"""Runs, checks and grades the assignment on parallel training."""
