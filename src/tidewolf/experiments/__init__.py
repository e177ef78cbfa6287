"""Experiments: many runs, kept in a folder that survives a kill."""
