"""Hypothesis draws the same examples on every machine and run."""

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("ci")
