"""Many simplices at once: the same as a `Simplex` for each group, and as a `Product` of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf import sets
from tidewolf.core.errors import CheckFailed, EmptySet, InvalidInput, WrongType
from tidewolf.kernels import simplices
from tidewolf.sets import Factors, Simplex, SimplexProduct
from tidewolf.testing import check_set
from tidewolf.testing.sets import SetChecks

group_sizes = st.lists(st.integers(1, 6), min_size=1, max_size=7)
seeds = st.integers(0, 2**32)


def reference(sizes) -> sets.Product:
    return sets.Product(parts=[Simplex(n) for n in sizes])


def numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ties, zeros, far and near ones."""
    kinds = (rng.integers(-1, 2, n), rng.standard_normal(n), 1e8 * rng.standard_normal(n))
    return np.choose(rng.integers(0, 3, n), kinds).astype(float)


@given(sizes=group_sizes, seed=seeds)
@settings(max_examples=200)
def test_it_is_a_simplex_for_each_group(sizes, seed):
    K, slow, rng = SimplexProduct(sizes), reference(sizes), np.random.default_rng(seed)
    y = numbers(rng, K.shape[0])
    np.testing.assert_array_equal(K.lmo(y), slow.lmo(y))
    np.testing.assert_allclose(K.project(y), slow.project(y), atol=1e-7 * np.abs(y).max() + 1e-15)
    np.testing.assert_allclose(K.tangent(y), slow.tangent(y), atol=1e-15 * (1 + np.abs(y).max()))
    assert K.infeasibility(y) == pytest.approx(slow.infeasibility(y))
    np.testing.assert_array_equal(K.center, slow.center)
    for name in ("radius", "diameter", "inner_radius", "dimension"):
        assert getattr(K, name) == pytest.approx(getattr(slow, name)), name
    np.testing.assert_array_equal(K.factors.starts, slow.factors.starts)
    np.testing.assert_allclose(K.factors.radii, slow.factors.radii)
    np.testing.assert_allclose(K.factors.diameters, slow.factors.diameters)


@given(sizes=group_sizes, seed=seeds, spread=st.sampled_from([0.1, 1.0, 3.0]))
@settings(max_examples=100)
def test_projections_of_near_points_are_those_of_each_simplex(sizes, seed, spread):
    K = SimplexProduct(sizes)
    y = spread * np.random.default_rng(seed).standard_normal(K.shape)
    np.testing.assert_allclose(K.project(y), reference(sizes).project(y), atol=1e-14)


@given(sizes=group_sizes, seed=seeds)
@settings(max_examples=50)
def test_compiled_passes_do_what_their_source_says(sizes, seed):
    K, rng = SimplexProduct(sizes), np.random.default_rng(seed)
    y, x = numbers(rng, K.shape[0]), np.empty(K.shape)
    simplices.onto_simplices.plain(y, K.starts, x)
    np.testing.assert_allclose(x, K.project(y), atol=1e-15)
    simplices.within_groups.plain(y, K.starts, x)
    np.testing.assert_allclose(x, K.tangent(y), atol=1e-15 * (1 + np.abs(y).max()))
    assert simplices.simplices_infeasibility.plain(y, K.starts) == pytest.approx(K.infeasibility(y))
    indices, values = np.empty(len(sizes), dtype=np.int32), np.empty(len(sizes))
    assert simplices.cheapest_of_each.plain(y, K.starts, indices, values) == len(sizes)
    np.testing.assert_array_equal(indices, K.answer(y).vertex.indices)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_what_is_projected_may_be_of_any_size(size):
    K = SimplexProduct([3, 1, 2])
    x = K.project(size * np.array([1.0, -1.0, 1.0, -5.0, 2.0, 2.0]))
    np.testing.assert_allclose(x[[0, 2, 3, 4, 5]], [0.5, 0.5, 1.0, 0.5, 0.5], atol=0.17)
    assert K.infeasibility(x) <= 1e-15


@pytest.mark.parametrize(
    ("sizes", "error", "words"),
    [
        ([], EmptySet, "at least one"),
        ([3, 0], InvalidInput, "at least 1"),
        (3, WrongType, r"such as \[3, 3, 2\]"),
        ("33", WrongType, "a list"),
        ([2.5], InvalidInput, "whole number"),
        ([2**31 - 1, 1], InvalidInput, "at most 2147483647"),
    ],
)
def test_sizes_are_refused_in_a_sentence(sizes, error, words):
    with pytest.raises(error) as caught:
        SimplexProduct(sizes)
    assert caught.value.setting == "sizes"


# --- factors --------------------------------------------------------------------------------------


def test_factors_of_sets_made_of_others():
    inner = sets.Product(Simplex(2), sets.Box([0.0, 1.0], [2.0, 1.0]))
    K = sets.Product(inner, sets.L2Ball((1, 2)), SimplexProduct([3, 1]))
    parts = K.factors
    assert parts.starts.tolist() == [0, 2, 3, 4, 6, 9]
    assert parts.starts.dtype == np.int64
    assert parts.exact is False
    np.testing.assert_allclose(parts.radii, [0.5**0.5, 1.0, 0.0, 1.0, (2 / 3) ** 0.5, 0.0])
    np.testing.assert_allclose(parts.diameters, [2**0.5, 2.0, 0.0, 2.0, 2**0.5, 0.0])
    for moved in (sets.Scaled(K, 3.0), sets.Shrunk(K, 0.5), sets.Translated(K, np.ones(10))):
        found = moved.factors
        np.testing.assert_array_equal(found.starts, parts.starts)
        np.testing.assert_allclose(found.radii, moved.scale * parts.radii)
        assert found is moved.factors
        check_set(moved)
    assert sets.Scaled(SimplexProduct([2, 2]), 2.0).factors.exact
    assert sets.Product(sets.Box([0.0], [1.0]), SimplexProduct([2])).factors.exact
    assert Simplex(3).factors is sets.Shrunk(Simplex(3), 0.5).factors is None


def test_factors_of_many_commodities():
    K = sets.MultiFlow.examples()[0]
    assert K.factors.starts.tolist() == K.starts[:-1].tolist()
    assert np.linalg.norm(K.factors.radii) == pytest.approx(K.radius)
    assert np.linalg.norm(K.factors.diameters) == pytest.approx(K.diameter)
    assert not K.factors.exact


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Factors(np.array([1, 2]), np.full(2, 0.5), np.full(2, 1.0)), "start at"),
        (Factors(np.array([0, 0]), np.full(2, 0.5), np.full(2, 1.0)), "start at"),
        (Factors(np.array([0], dtype=np.int32), np.ones(1), np.ones(1)), "start at"),
        (Factors(np.array([0]), np.ones(1), np.full(1, 2**0.5)), "the radii or diameters"),
        (Factors(np.array([0]), np.full(1, 0.5**0.5), np.ones(1)), "the radii or diameters"),
        (
            Factors(np.array([0, 1]), np.array([0.5**0.5, 0.0]), np.array([2**0.5, 0.0])),
            "above its size",
        ),
        (Factors(np.array([0]), np.array([0.5**0.5, 0.0]), np.array([2**0.5])), "have the radii"),
        (
            Factors(np.array([0, 1]), np.full(2, 0.5), np.full(2, 1.0)),
            "factors of two members",
        ),
    ],
)
def test_wrong_factors_break_the_law(monkeypatch, told, words):
    monkeypatch.setattr(Simplex, "factors", told, raising=False)
    with pytest.raises(CheckFailed):
        check_set(Simplex(2))


def test_a_tangent_across_factors_breaks_the_law(monkeypatch):
    K = SimplexProduct([2, 3])
    SetChecks(K, 0).factors_make_the_set()
    monkeypatch.setattr(SimplexProduct, "tangent", lambda self, d: d - d.mean())
    with pytest.raises(CheckFailed, match="tangent of some factors"):
        SetChecks(K, 0).factors_make_the_set()


def test_an_exact_projection_is_there(monkeypatch):
    K = sets.L2Ball(1, radius=1.0)
    told = Factors(np.array([0]), np.array([1.0]), np.array([2.0]), exact=True)
    ball = sets.LpBall(1, p=3.0)
    monkeypatch.setattr(sets.LpBall, "factors", told, raising=False)
    monkeypatch.setattr(sets.L2Ball, "factors", told, raising=False)
    check_set(K)
    with pytest.raises(CheckFailed):
        check_set(ball)
