"""Submissions in, judges at work, verdicts into the gradebook."""
