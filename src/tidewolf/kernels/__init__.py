"""Compiled loops: arrays in, arrays out. They know nothing of sets and learners."""
