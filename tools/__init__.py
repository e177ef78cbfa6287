"""Small scripts for developers: `python -m tools.census` and `python -m tools.digests`."""
