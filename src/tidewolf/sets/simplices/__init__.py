"""Simplices, cut and capped."""
