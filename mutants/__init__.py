"""Mistakes that the tests must see. Run `python -m mutants`, or `make mutants`."""
