"""Flows over graphs."""
