"""Sets made of other sets."""
