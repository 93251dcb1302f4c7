"""What checks share on the judge's side: the calls that a world makes, what must come back, and the comparison."""
