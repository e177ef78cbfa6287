"""Covering arrays: few cases in which every two things that can meet do meet once.

Trying every learner with every setting on every set takes hours; mistakes mostly need two things to
come together. `cover` picks cases greedily, always the one with the most that was not met before,
the first among equals, until everything that any case has is met.
"""

from collections.abc import Mapping
from itertools import combinations, product

import pytest


def pairs(**factors):
    """Every two factors of a case, with their values."""
    return set(combinations(sorted(factors.items(), key=lambda factor: factor[0]), 2))


def cover(cases):
    """The places of cases that have among them everything that any of the cases has."""
    left, chosen = set().union(*cases), []
    while left:
        best = max(range(len(cases)), key=lambda i: len(cases[i] & left))
        chosen.append(best)
        left -= cases[best]
    return chosen


def named(values):
    """Values by their names, which texts, classes and functions have themselves."""
    if isinstance(values, Mapping):
        return values
    return {value if isinstance(value, str) else value.__name__: value for value in values}


def thinned(every, **factors):
    """Parametrize by every combination of named values; one of `every` is quick, so that each value
    meets some of each other factor, and the rest are soak.
    """
    cases = [
        pytest.param(
            *(value for _, (_, value) in combo),
            id="-".join(name for _, (name, _) in combo),
            marks=pytest.mark.soak if sum(place for place, _ in combo) % every else (),
        )
        for combo in product(*(enumerate(named(values).items()) for values in factors.values()))
    ]
    return pytest.mark.parametrize(tuple(factors), cases)


def few(count, values):
    """Values to parametrize by: the first `count` are quick, the rest soak."""
    rest = [pytest.param(value, marks=pytest.mark.soak) for value in values[count:]]
    return [*values[:count], *rest]
