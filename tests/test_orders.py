"""What single kinds of sets do beyond the checks: kernels and solvers against slower ways."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import csr_array

from polytopes import trees, vertices_of
from test_baselines import by_faces
from tidewolf import sets
from tidewolf.core import errors, vertices
from tidewolf.kernels import simplices
from tidewolf.sets import generic

seeds = st.integers(0, 2**32)


# --- simplices and knapsacks ----------------------------------------------------------------------


@given(n=st.integers(1, 12), share=st.floats(0.0, 1.0), seed=seeds, ties=st.booleans())
@settings(max_examples=60)
def test_compiled_oracles_and_their_sources_give_the_vertex_of_answer(n, share, seed, ties):
    rng = np.random.default_rng(seed)
    d = rng.integers(-1, 2, n).astype(float) if ties else rng.standard_normal(n)
    for K in (
        sets.Simplex(n, 2.0),
        sets.Simplex(n, 2.0, at_most=True),
        sets.Simplex(n, 2.0, at_most=ties, least=0.5 / n),
        sets.CappedSimplex(n, 1.0, max(0.1, share * n)),
    ):
        expected = K.answer(d).vertex.key()
        assert K.minimiser(d).key() == expected
        indices, values = np.empty(K.max_nonzeros, dtype=np.int32), np.empty(K.max_nonzeros)
        count = K.oracle.plain(d, K.kernel_data, indices, values)
        assert vertices.Sparse((n,), indices[:count], values[:count]).key() == expected


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=7), seed=seeds)
def test_compiled_passes_over_groups_do_what_their_source_says(sizes, seed):
    """At ties, zeros, near and far points; the reference is a product of simplices."""
    K, rng = sets.SimplexProduct(sizes), np.random.default_rng(seed)
    kinds = [rng.integers(-1, 2, K.shape), rng.standard_normal(K.shape), 1e8 * rng.random(K.shape)]
    y, x = np.choose(rng.integers(0, 3, K.shape), kinds).astype(float), np.empty(K.shape)
    room = 1e-15 * (1 + np.abs(y).max())
    simplices.onto_simplices.plain(y, 0.0, K.starts, x)
    np.testing.assert_allclose(x, K.project(y), atol=1e-15)
    parts = zip(sizes, np.split(y, K.starts[1:-1]), strict=True)
    alone = [sets.Simplex(n).project(part) for n, part in parts]
    np.testing.assert_allclose(x, np.concatenate(alone), atol=1e-7 * np.abs(y).max() + 1e-15)
    simplices.within_simplices.plain(y[None], 1, *K.geometry, x[None])
    np.testing.assert_allclose(x, K.tangent(y), atol=room)
    outside = simplices.outside_simplices.plain(y, *K.geometry)
    assert outside == pytest.approx(K.infeasibility(y))
    indices, values = np.empty(len(sizes), dtype=np.int32), np.empty(len(sizes))
    assert simplices.cheapest_of_each.plain(y, K.kernel_data, indices, values) == len(sizes)
    np.testing.assert_array_equal(indices, K.answer(y).vertex.indices)


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=7), seed=seeds)
def test_groups_with_a_least_share_are_simplices_with_one(sizes, seed):
    """Vertex, nearest point, infeasibility and sizes, group by group, and by the source."""
    least, rng = 0.7 / max(sizes), np.random.default_rng(seed)
    K = sets.SimplexProduct(sizes, least=least)
    parts = [sets.Simplex(n, least=least) for n in sizes]
    y, x, room = rng.standard_normal(K.shape), np.empty(K.shape), K.max_nonzeros

    def alone(what):
        return [what(p, part) for p, part in zip(parts, np.split(y, K.starts[1:-1]), strict=True)]

    np.testing.assert_allclose(K.lmo(y), np.concatenate(alone(lambda S, d: S.lmo(d))), atol=1e-15)
    nearest = np.concatenate(alone(lambda S, d: S.project(d)))
    np.testing.assert_allclose(K.project(y), nearest, atol=1e-14)
    simplices.nearest_in_simplices.plain(y, *K.geometry, x)
    np.testing.assert_allclose(x, K.project(y), atol=1e-14)
    assert K.infeasibility(y) == pytest.approx(max(alone(lambda S, d: S.infeasibility(d))))
    assert K.radius**2 == pytest.approx(sum(S.radius**2 for S in parts))
    assert K.diameter**2 == pytest.approx(sum(S.diameter**2 for S in parts))
    indices, values = np.empty(room, dtype=np.int32), np.empty(room)
    assert simplices.cheapest_of_each.plain(y, K.kernel_data, indices, values) == room
    np.testing.assert_array_equal(values, K.lmo(y))
    assert min(K.lmo(y).min(), K.project(y).min()) >= least - 1e-15


@given(seed=seeds, n=st.integers(300, 900), at_most=st.booleans(), ties=st.booleans())
def test_a_large_knapsack_is_filled_in_the_order_of_worth(seed, n, at_most, ties):
    rng = np.random.default_rng(seed)
    weights, upper = rng.choice([1.0, 2.0, 3.0], n), rng.choice([1.0, 2.0], n)
    total = float(rng.choice([0.01, 0.3, 0.5, 0.99]) * (weights @ upper))
    d = rng.integers(-2, 3, n).astype(float) if ties else rng.standard_normal(n)
    x, left = np.zeros(n), total
    for i in np.argsort(d / weights, kind="stable"):
        if d[i] < 0 or not at_most:
            x[i] = min(upper[i], left / weights[i])
            left -= weights[i] * x[i]
    np.testing.assert_allclose(sets.Knapsack(weights, total, upper, at_most).lmo(d), x, atol=1e-9)


# --- transportation -------------------------------------------------------------


@given(seed=seeds, n=st.integers(1, 12), far=st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=150)
def test_the_projection_on_a_permutahedron_agrees_with_isotonic_regression(seed, n, far):
    rng = np.random.default_rng(seed)
    K, y = sets.Permutahedron(rng.integers(0, 4, n)), far * rng.standard_normal(n).round(1)
    order = np.argsort(-y, kind="stable")
    v = isotonic_regression(y[order] - np.sort(K.weights)[::-1], increasing=False).x
    np.testing.assert_allclose(K.project(y)[order], y[order] - v, atol=1e-12 * max(1.0, far))


@pytest.mark.soak_examples(15)
@given(seed=seeds, m=st.integers(1, 12), n=st.integers(1, 12))
@settings(max_examples=10)
def test_transport_is_as_cheap_as_a_linear_program_from_any_start(seed, m, n):
    rng, warm = np.random.default_rng(seed), None
    plan = rng.integers(0, 3, (m, n)).astype(float) if seed % 2 else rng.random((m, n))
    plan[0, 0] += 1.0
    K, c = sets.Transportation(plan.sum(axis=1), plan.sum(axis=0)), rng.standard_normal((m, n))
    A_eq, b_eq = K.description().A_eq, K.description().b_eq
    for _ in range(3):
        c = c + 0.3 * rng.standard_normal((m, n))
        answers = K.answer(c, warm), K.answer(c)
        best = linprog(c.reshape(-1), A_eq=A_eq, b_eq=b_eq).fun
        for answer in answers:
            assert answer.vertex.inner(c) == pytest.approx(best, abs=1e-8)
            assert K.infeasibility(answer.vertex.dense(c)) <= 1e-12 * plan.sum()
            assert len(answer.vertex.indices) <= m + n - 1
        warm = answers[0].warm


WARM = [np.zeros(4, dtype=np.int8), np.zeros(15, dtype=np.int8), np.ones(15), np.arange(15)]


@pytest.mark.parametrize("warm", WARM)
def test_a_basis_that_is_none_is_not_used(warm):
    K, c = sets.Transportation([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), np.arange(9.0).reshape(3, 3) % 4
    assert K.answer(c, warm).vertex.inner(c) == pytest.approx(K.answer(c).vertex.inner(c))


# --- spanning trees and matchings -----------------------------------------------------------------


@pytest.mark.soak_examples(60)
@given(seed=seeds, far=st.sampled_from([0.0, 0.01, 0.3, 3.0]))
@settings(max_examples=20)
def test_the_excess_of_trees_is_the_worst_over_all_sets_of_nodes(seed, far):
    rng = np.random.default_rng(seed)
    K = trees(rng)
    corners = vertices_of(K)
    x = rng.dirichlet(np.ones(len(corners))) @ corners + far * rng.standard_normal(K.shape)
    loops, n = K.edges[:, 0] == K.edges[:, 1], len(K.nodes)
    taken = np.where(loops, 0.0, np.maximum(x, 0.0))
    some = (S for size in range(1, n + 1) for S in itertools.combinations(range(n), size))
    inside = [taken[np.isin(K.edges, S).all(axis=1)].sum() - len(S) + 1 for S in some]
    worst = max(-x.min(), abs(x.sum() - n + 1), np.max(x[loops], initial=0.0), *inside)
    assert K.infeasibility(x) == pytest.approx(worst, abs=1e-12)
    np.testing.assert_allclose(K.center, corners.mean(axis=0), atol=1e-12)


def test_a_large_hull_of_perfect_matchings_settles_for_a_lower_bound(monkeypatch):
    edges = [(i, j) for i in range(3) for j in range(3)]
    exact = sets.Matching(edges, perfect=True).inner_radius
    monkeypatch.setattr("tidewolf.sets.graphs.DENSE_NODES", 0)
    assert 0.0 < sets.Matching(edges, perfect=True).inner_radius < exact


# --- polytopes and hulls --------------------------------------------------------------------------


@pytest.mark.soak_examples(15)
@given(seed=seeds, size=st.sampled_from([1e-8, 1.0, 1e8]), far=st.sampled_from([0.0, 1e6]))
@settings(max_examples=6)
def test_neither_the_size_nor_the_place_of_a_polytope_matters(seed, size, far):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    A, shift = rng.standard_normal((3, n)), far * rng.standard_normal(n)
    plain = sets.Polytope(A, np.ones(3), bounds=(-1.0, 2.0))
    bounds = np.stack([-1.0 + shift, 2.0 + shift], axis=1)
    K, room = sets.Polytope(A, size * (1.0 + A @ shift), bounds=size * bounds), 1e-9 * max(1.0, far)
    for d in rng.standard_normal((3, n)):
        assert d @ K.lmo(d) / size - d @ shift == pytest.approx(d @ plain.lmo(d), abs=room)
    radii = (plain.radius, plain.inner_radius)
    assert (K.radius / size, K.inner_radius / size) == pytest.approx(radii, abs=room)


def test_a_warm_basis_saves_all_exchanges_and_a_wrong_one_does_no_harm():
    rng = np.random.default_rng(0)
    K = sets.Polytope(csr_array(rng.random((20, 40))), np.full(20, 8.0), bounds=(0.0, 1.0))
    d = rng.standard_normal(40)
    first, solver, exchanges = K.answer(d), K._model._solver, []
    for warm in (None, first.warm):
        K.answer(d, warm)
        exchanges.append(solver.getInfo().simplex_iteration_count)
    assert exchanges[0] > exchanges[1] == 0
    assert not first.warm.flags.writeable
    few, many = np.zeros(3), np.zeros(60, dtype=np.int8)
    for wrong in (few, many, many + 1, np.full(60, 9)):
        other = K.answer(d, wrong).vertex.dense(d)
        np.testing.assert_allclose(other, first.vertex.dense(d), atol=1e-12)


class Liar:
    """A solver that answers a point outside, or one that is far from best."""

    def __init__(self, program, change):
        self.program, self.change = program, change

    def __getattr__(self, name):
        return getattr(self.program, name)

    def __call__(self, *question, **named):
        return self.change(self.program(*question, **named))


def test_what_the_solver_says_is_not_believed():
    d = np.array([-1.0, -0.5, 0.25])
    K = sets.Polytope([[1.0, 1.0, 1.0]], [1.5], bounds=(0.0, 1.0))
    best, program = d @ K.lmo(d), K._model
    K.__dict__["_model"] = Liar(program, lambda found: found._replace(v=found.v + 1e-8))
    answer = K.answer(d)
    assert K.infeasibility(answer.vertex.dense(d)) <= 1e-14
    assert 0.0 < answer.vertex.inner(d) - best <= answer.error <= 1e-6
    # a multiplier of the wrong sign would make (0.2, 0.2, 0.2) look best
    upwards = {"v": np.full(3, 0.2), "of_fixed": np.array([0.5]) / program.F.toarray()[0, 0]}
    for costs, lie in (
        (d, lambda found: found._replace(v=np.zeros(3))),
        (d, lambda found: found._replace(of_fixed=-found.of_fixed)),
        (np.ones(3), lambda found: found._replace(**upwards)),
        (d, lambda found: None),
    ):
        K.__dict__["_model"] = Liar(program, lie)
        with pytest.raises(errors.SolverFailed):
            K.answer(costs)


@given(seeds, st.integers(1, 6), st.integers(1, 3), st.sampled_from([0.1, 1.0, 1e3, 1e6]))
def test_the_excess_of_a_hull_is_the_distance_to_it(seed, k, n, far):
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (k, n)).astype(float)
    K, x = sets.VertexHull(points), far * rng.standard_normal(n)
    away = np.linalg.norm(by_faces(points, x) - x)
    assert K.infeasibility(x) == pytest.approx(away, abs=1e-9, rel=1e-9)
    assert K.infeasibility(rng.dirichlet(np.ones(k)) @ points) <= 1e-12


@given(seed=seeds, k=st.integers(2, 9), n=st.integers(1, 4))
def test_without_facets_the_inner_radius_of_a_hull_is_a_lower_bound(seed, k, n):
    points = np.random.default_rng(seed).integers(-2, 3, (k, n)).astype(float)
    K = sets.VertexHull(points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generic, "_FLAT", 0)
        bound = sets.VertexHull(points).inner_radius
    assert (bound > 0.0) == (K.dimension > 0)
    assert bound <= K.inner_radius * (1 + 1e-9)
    if len(np.unique(points, axis=0)) == k == K.dimension + 1:
        assert bound == pytest.approx(K.inner_radius, rel=1e-9)
