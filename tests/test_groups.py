"""Compiled descent on products does what its formulas say, whatever the factors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_groups as naive
from tidewolf.kernels import groups
from tidewolf.methods.steps import adagrad
from tidewolf.methods.steps.adagrad import DescentSums, FactorSums
from tidewolf.sets.base import Factors

seeds = st.integers(0, 2**32)
counts = st.sampled_from([1, 2, 7, groups.BLOCK - 1, groups.BLOCK, 2 * groups.BLOCK + 3])
CLOSE = {"rtol": 1e-13, "atol": 1e-300}


def some_factors(rng, q: int, entries: bool) -> tuple[Factors, int]:
    """Single points among them; `entries`: of one entry each."""
    sizes = np.ones(q, dtype=np.int64) if entries else rng.integers(1, 6, q)
    radii = 10.0 ** rng.uniform(-3, 3, q) * (rng.random(q) < 0.9)
    starts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
    return Factors(starts, radii, radii * rng.uniform(1.0, 2.0, q)), int(sizes.sum())


def gradient(rng, n: int) -> np.ndarray:
    """Zeros, ties and all sizes."""
    kinds = np.zeros(n), rng.integers(-1, 2, n), rng.standard_normal(n), 1e6 * rng.random(n)
    return np.choose(rng.integers(0, 4, n), kinds).astype(float)


def some_sums(rng, q: int) -> naive.Sums:
    """Of factors that moved, and of factors that did not."""
    moved = rng.random(q) < 0.7
    return naive.Sums(*(np.where(moved, rng.random(q) * 10.0, 0.0) for _ in range(3)))


@given(
    seed=seeds,
    q=counts,
    entries=st.booleans(),
    share=st.sampled_from([1.0, 0.3]),
    pending=st.sampled_from([0, 2.5]),
    scale=st.sampled_from([0.1, 1.0]),
)
@settings(max_examples=60)
def test_a_step_is_the_formulas_in_numpy(seed, q, entries, share, pending, scale):
    rng = np.random.default_rng(seed)
    factors, n = some_factors(rng, q, entries)
    y, x, P = rng.standard_normal(n), rng.standard_normal(n), gradient(rng, n)
    g, sums = gradient(rng, n), some_sums(rng, q)
    D = adagrad.reaches(factors, x, y)
    far = np.sqrt(naive.squares(x - y, factors))
    np.testing.assert_allclose(D, np.minimum(2.0 * factors.radii, factors.diameters + far), **CLOSE)
    assert adagrad.reaches(factors, y, y).tolist() == factors.diameters.tolist()
    own = DescentSums(1.0, 0.0, FactorSums(*sums))
    found = adagrad.descend_in_factors(y, g, own, D, factors, scale, share, pending)
    told = naive.step(y, g, sums, D, factors, scale, share, pending)
    np.testing.assert_allclose(found.y, told.y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.etas, told.etas, **CLOSE)
    for after, expected in zip(found.sums.factors, told.sums, strict=True):
        np.testing.assert_allclose(after, expected, **CLOSE)
    assert found.sums.square_sum == pytest.approx(told.sums.S.sum())
    past = adagrad.past_limit(found.y, x, P, factors, found.etas)
    along, pulled, held = naive.past(found.y, x, P, factors, found.etas)
    size = 1e-12 * float(np.abs(P) @ np.abs(found.y - x))
    assert past.along == pytest.approx(along, abs=size)
    assert past.pulled == pytest.approx(pulled)
    assert past.held is held
    softened = found.y + 0.3 * naive.spread(found.etas, y, factors) * P
    adagrad.give_back(found.y, P, 0.3, factors, found.etas)
    np.testing.assert_allclose(found.y, softened, rtol=1e-12, atol=1e-12)


@given(seed=seeds, q=counts, entries=st.booleans())
@settings(max_examples=30)
def test_balls_are_those_of_each_factor(seed, q, entries):
    rng = np.random.default_rng(seed)
    factors, n = some_factors(rng, q, entries)
    y, center = 3.0 * rng.standard_normal(n), rng.standard_normal(n)
    inside = adagrad.into_balls(y, center, factors)
    np.testing.assert_allclose(inside, naive.into_balls(y, center, factors), rtol=1e-12)
    wide = factors._replace(radii=np.full(q, 1e3))
    assert adagrad.into_balls(y, center, wide) is y


def test_points_may_be_of_any_shape_and_layout():
    """A box of matrices, a gradient that is a transpose."""
    rng = np.random.default_rng(0)
    factors = Factors(np.arange(6), np.ones(6), np.full(6, 2.0))
    y, g = rng.standard_normal((2, 3)), rng.standard_normal((3, 2)).T
    own = DescentSums.start(factors)
    found = adagrad.descend_in_factors(y, g, own, factors.diameters, factors)
    assert found.y.shape == (2, 3)
    flat = adagrad.descend_in_factors(y.ravel(), g.ravel(), own, factors.diameters, factors)
    np.testing.assert_array_equal(found.y.ravel(), flat.y)


@given(numbers=st.lists(st.floats(-1e9, 1e9), max_size=40))
def test_sums_in_parts_are_sums(numbers):
    array = np.array(numbers, dtype=float)
    size = 1e-14 * float(np.abs(array).sum())
    assert groups.lane_sum(array) == pytest.approx(math.fsum(numbers), abs=size)
    assert groups.lane_sum.plain(array) == groups.lane_sum(array)


def test_compiled_loops_do_what_their_source_says():
    """The same bits from the interpreter: nothing is reordered."""
    rng = np.random.default_rng(3)
    for q, entries in ((2 * groups.BLOCK + 3, True), (9, False)):
        factors, n = some_factors(rng, q, entries)
        y, g, D, starts = (
            rng.standard_normal(n),
            gradient(rng, n),
            factors.diameters,
            factors.starts,
        )
        sums, results = tuple(some_sums(rng, q)), []
        for array in (y, g, D, starts, *sums):
            array.setflags(write=False)
        for run in (groups.factor_steps, groups.factor_steps.plain):
            after, etas, target = np.empty((3, q)), np.empty(q), np.empty(n)
            told = run(g, 0.5, y, starts, D, 1.0, 0.3, sums, after, etas, target)
            results.append((told, *after, etas, target))
        for compiled, plain in zip(*results, strict=True):
            np.testing.assert_array_equal(compiled, plain)
