"""The covering array that picks learners and sets covers, and is small."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from covering import cover, pairs


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    refused=st.sets(st.integers(0, 600), max_size=40),
)
def test_every_pair_that_can_meet_does(sizes, refused):
    every = [
        pairs(**dict(zip("abcd", values, strict=False))) for values in product(*map(range, sizes))
    ]
    cases = [case for i, case in enumerate(every) if i not in refused]
    chosen = cover(cases)
    assert set().union(*(cases[i] for i in chosen)) == set().union(*cases)
    assert len(chosen) == len(set(chosen)) <= len(cases)


def test_four_factors_of_five_values_take_far_fewer_than_all_cases():
    cases = [pairs(**dict(zip("abcd", v, strict=True))) for v in product(range(5), repeat=4)]
    assert 25 <= len(cover(cases)) <= 45
