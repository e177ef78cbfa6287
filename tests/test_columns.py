"""Groups side by side: the same as group by group."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.kernels import simplices as C
from tidewolf.kernels.simplices import onto_simplices

seeds = st.integers(0, 2**32)
sizes = st.one_of(
    st.lists(st.integers(1, 6), min_size=1, max_size=9),
    st.tuples(st.integers(1, 2 * C.WIDTH + 5), st.integers(1, 5)).map(lambda t: [t[1]] * t[0]),
)


def entries(rng, n):
    """Ties, zeros, far and near ones."""
    kinds = (rng.integers(-1, 2, n), rng.standard_normal(n), 1e8 * rng.standard_normal(n))
    return np.choose(rng.integers(0, 3, n), kinds).astype(float)


@given(sizes=sizes, seed=seeds)
@settings(max_examples=60)
def test_projections_are_those_of_each_group(sizes, seed):
    rng, bounds = np.random.default_rng(seed), np.cumsum([0, *sizes]).astype(np.int64)
    y, slow, x = entries(rng, bounds[-1]), np.empty(bounds[-1]), np.empty(bounds[-1])
    C.onto_small_simplices(y, bounds, max(sizes), x)
    onto_simplices(y, 0.0, bounds, slow)
    np.testing.assert_allclose(x, slow, atol=1e-15)
    np.testing.assert_allclose(np.add.reduceat(x, bounds[:-1]), 1.0, atol=1e-15)


def test_a_part_of_the_groups_is_loaded_and_stored():
    a, starts = np.arange(9.0), np.array([0, 2, 4, 7, 9])
    held, out = np.zeros((3, C.WIDTH)), np.zeros(9)
    C.load_columns(a, starts, 1, 3, 3, -1.0, held)
    assert held[:, :2].tolist() == [[2.0, 4.0], [3.0, 5.0], [-1.0, 6.0]]
    C.store_columns(held, starts, 1, 3, 3, out)
    assert out.tolist() == [0.0, 0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0]


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_compiled_loops_do_what_their_source_says(size):
    y, starts = size * np.array([1.0, -1.0, 1.0, -5.0, 2.0, 2.0]), np.array([0, 3, 4, 6])
    found = []
    for run in (C.onto_small_simplices, C.onto_small_simplices.plain):
        x = np.empty(6)
        with np.errstate(invalid="ignore"):
            run(y, starts, 3, x)
        found.append(x.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("n", [1, C.MANY - 1, C.MANY, 3 * C.MANY + 5])
@pytest.mark.parametrize("kind", ["numbers", "ties", "all the same", "ascending", "few far away"])
def test_an_entry_in_order_is_found_by_a_sample(n, kind):
    rng = np.random.default_rng(n)
    d = {
        "numbers": rng.normal(size=n),
        "ties": np.round(rng.normal(size=n)),
        "all the same": np.ones(n),
        "ascending": np.sort(rng.normal(size=n)),
        "few far away": np.where(np.arange(n) % 5_000 == 7, -1e9, 0.0),
    }[kind]
    given = d.copy()
    for k in {0, 1 % n, n // 10, n // 2, n - 1}:
        assert C.kth_of(d, k) == np.partition(d, k)[k]
    np.testing.assert_array_equal(d, given)
