"""Sets told by their points or by their half-spaces."""
