"""The virtual cluster: what ranks do, told in steps, and drawn."""

from grader.cluster.svg import Figure, Picture

__all__ = ["Figure", "Picture"]
