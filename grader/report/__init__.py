"""Views of a gradebook: pure functions from its rows to text, and the files they are written to."""
