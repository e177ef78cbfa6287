"""The covering array that picks learners and sets covers, and is small; what else is left for the
soak leaves something of everything.
"""

from __future__ import annotations

import math
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from covering import cover, few, pairs, thinned


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
    assert len(chosen) <= 2 * sorted(sizes)[-1] * sorted(sizes)[-2] or refused


@given(every=st.integers(1, 6), sizes=st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_every_value_is_quick_somewhere(every, sizes):
    """As long as some factor has as many values as one of `every` leaves out, and one."""
    factors = {name: {str(i): i for i in range(n)} for name, n in zip("abc", sizes, strict=False)}
    cases = thinned(every, **factors).args[1]
    assert len(cases) == len({case.values for case in cases}) == math.prod(sizes)
    quick = [case.values for case in cases if not case.marks]
    assert (0,) * len(sizes) in quick
    for place, n in enumerate(sizes):
        rest = [size for other, size in enumerate(sizes) if other != place]
        if sum(rest) - len(rest) >= every - 1:
            assert {values[place] for values in quick} == set(range(n))
    first, *others = few(1, "abc")
    assert first == "a"
    assert [value.marks[0].name for value in others] == ["soak", "soak"]
