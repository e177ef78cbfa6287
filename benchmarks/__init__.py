"""Benchmarks: oracle calls first, then ratios of times within one run. `make bench` runs them
all.
"""
