"""Sets given by their points or by their half-spaces."""
