"""The best point in hindsight under curved losses and limits, and the portfolio that needs it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from covering import few
from tidewolf.functions import Affine, Capacity, Linear, LogWealth, MaxAffine, Quadratic
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex

BOX, FLOW = Box([-1.0, 0.0], [2.0, 3.0]), FlowPolytope.examples()[0]
SETS = [Simplex(4), Simplex(1), CappedSimplex(5, 0.4), BOX, L2Ball((3,), 2.0), FLOW]
seeds = st.integers(0, 2**32 - 1)


def nearest(K, y, k=1):
    """Losses whose total is k/2 |x - y|^2."""
    return Quadratic(np.eye(len(y)), np.tile(-y, (k, 1)), np.full(k, float(y @ y) / 2))


def loose(K, k=1):
    return Affine(np.ones((k, *K.shape)), np.full(k, 1e3))


def members(K, rng, count):
    vertices = np.array([K.lmo(rng.standard_normal(K.shape)) for _ in range(6)])
    return np.einsum("ij,j...->i...", rng.dirichlet(np.ones(6), count), vertices)


@pytest.mark.soak_examples(25)
@pytest.mark.parametrize("K", [K for K in SETS if isinstance(K, tw.sets.Projectable)], ids=repr)
@settings(max_examples=8)
@given(seed=seeds, scale=st.sampled_from([0.1, 1.0, 30.0]))
def test_the_nearest_point_is_the_projection(K, seed, scale):
    y = scale * np.random.default_rng(seed).standard_normal(K.shape)
    best = tw.best_in_hindsight(K, tw.Stream(nearest(K, y, 3), loose(K, 3)))
    least = 1.5 * float(((K.project(y) - y) ** 2).sum())
    assert best.feasible
    assert best.lower <= least * (1 + 1e-9) + 1e-12
    assert best.upper >= least * (1 - 1e-9) - 1e-12
    assert best.upper - best.lower <= 2e-6 * (1.0 + least)


@pytest.mark.soak_examples(10)
@pytest.mark.parametrize("K", SETS, ids=repr)
@settings(max_examples=5)
@given(seed=seeds)
def test_the_bracket_holds_every_feasible_member_and_is_narrow(K, seed):
    rng, n, k, inner = np.random.default_rng(seed), K.shape[0], 12, K.center
    root, cuts = rng.standard_normal((k, n, n)), rng.standard_normal((k, 2, n))
    P, margins = root @ root.swapaxes(1, 2) / n, rng.uniform(0.01, 0.3, k)
    at_inner = np.einsum("i,tij,j->t", inner, P, inner) / 2
    limits_of_each_kind = [
        Quadratic(P, np.zeros((k, n)), -(at_inner + margins)),
        MaxAffine(cuts, cuts @ inner + margins[:, None]),
        Capacity(inner + rng.uniform(0.01, 0.3, (k, n))),
    ]
    losses_of_each_kind = nearest(K, rng.standard_normal(n), k), Linear(rng.standard_normal((k, n)))
    for losses, limits in product(losses_of_each_kind, limits_of_each_kind):
        best = tw.best_in_hindsight(K, tw.Stream(losses, limits))
        assert best.feasible
        assert limits.values(best.point).max() <= 1e-8
        assert best.upper == pytest.approx(losses.values(best.point).sum(), abs=1e-9)
        steep = float(np.abs(losses.gradients(inner).sum(axis=0)).sum())
        size = steep * (K.radius + 1e-3) + abs(best.upper)
        assert best.upper - best.lower <= 1e-5 * size
        for x in inner + 0.3 * (members(K, rng, 60) - inner):
            if limits.values(x).max() <= 0.0:
                assert losses.values(x).sum() >= best.lower - 1e-9 * size


def test_limits_that_exclude_each_other_are_proved_to():
    K = Simplex(2)
    # near (1, 0); near (0, 1); anywhere
    limits = Quadratic(np.eye(2), [[-1.0, 0.0], [0.0, -1.0], [0.0, 0.0]], [0.4, 0.4, -5.0])
    stream = tw.Stream(Linear(np.ones((3, 2))), limits)
    best = tw.best_in_hindsight(K, stream, 0, 3)
    assert (best.feasible, best.point, best.lower) == (False, None, np.inf)
    proof = best.infeasibility
    assert set(proof.rounds) == {0, 1}
    for x in members(K, np.random.default_rng(0), 50):
        assert proof.weights @ limits.values(x)[proof.rows] >= proof.bound > 0
    assert tw.run(tw.LyapunovDescent(K, horizon=3), stream).regret is None
    assert tw.best_in_hindsight(K, stream, 1, 3).feasible
    assert tw.best_in_hindsight(K, tw.Stream(limits, limits)[1:2], 0, 1).feasible


@pytest.mark.parametrize("K", [Simplex(3), CappedSimplex(4, 0.5), FLOW], ids=repr)
def test_limits_without_room_inside_are_met(K):
    y = np.arange(1.0, K.shape[0] + 1)
    flat = K.center - K.tangent(K.center)  # constant on the set's hull
    tight = Affine(np.tile(flat, (2, 1)), np.full(2, float(flat @ K.center)))
    best = tw.best_in_hindsight(K, tw.Stream(nearest(K, y, 2), tight))
    free = tw.best_in_hindsight(K, tw.Stream(nearest(K, y, 2), loose(K, 2)))
    assert best.feasible
    assert best.upper == pytest.approx(free.upper, rel=1e-6)
    assert best.upper - best.lower <= 1e-5 * best.upper


def test_functions_are_asked_in_their_domain_only():
    # any asset alone is lost in some round
    losses = LogWealth([[3.0, 0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 2.5, 0.0]])
    towards_a_vertex = Affine(np.tile([-1.0, 0.0, 0.0], (3, 1)), np.full(3, -0.2))
    for limits in (Quadratic(np.eye(3), np.zeros((3, 3)), np.full(3, -0.4)), towards_a_vertex):
        best = tw.best_in_hindsight(Simplex(3), tw.Stream(losses, limits))
        assert best.feasible
        assert best.upper - best.lower <= 1e-6


# portfolio


@pytest.mark.parametrize("seed", few(1, range(3)))
def test_the_portfolio_has_a_certified_comparator_and_its_cap_binds(seed):
    problem = tw.problems.portfolio(seed=seed)
    K, losses = problem.K, problem.stream.losses
    best = tw.best_in_hindsight(K, problem.stream)
    free = tw.best_in_hindsight(K, tw.Stream(losses, loose(K, len(problem))))
    assert best.feasible
    assert best.upper - best.lower <= 1e-6 * abs(best.upper)
    assert free.upper < best.lower - 0.1
    assert np.mean(problem.stream.constraints.values(free.point) > 0) > 0.6
    assert problem.stream.constraints.values(np.eye(10)[0]).max() <= -0.5
    assert 0.01 < best.point[0] < 0.99
