"""The best policy of a context in hindsight: never worse than the best point, truly achieved, and
the best point itself where there is one cell.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import InvalidInput, NotSupported, WrongType
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.best import policy_batch
from tidewolf.sets import Box, CappedSimplex, L2Ball, Simplex

seeds = st.integers(0, 2**32 - 1)


def mixes(context, stream, W, start=0):
    """The policy's points, one round at a time, as the formula says."""
    features = (context.features(stream.info(t), t) for t in range(start, len(stream)))
    return np.array([phi @ W[which] for which, phi in features])


def require_achieved(K, stream, context, best, start=0):
    """The policy's own points have the total that is claimed, and keep every limit."""
    assert best.feasible
    assert best.point.shape == (context.cells, *K.shape)
    points, part = mixes(context, stream, best.point, start), stream[start:]
    size = 1.0 + abs(best.upper)
    assert max(K.infeasibility(W) for W in best.point) <= 1e-8
    assert float(part.losses.values_at(points).sum()) == pytest.approx(best.upper, abs=1e-8 * size)
    assert float(part.constraints.values_at(points).max()) <= 1e-7
    assert best.lower <= best.upper


def streams(seed, T, n):
    """Losses and limits of every kind, whose limits some point of the simplex keeps."""
    rng = np.random.default_rng(seed)
    C, kinds = rng.normal(size=(T, n)), rng.integers(0, 3, T)
    room = Capacity(1.2 / n + 0.5 * rng.random((T, n)))
    budget = Affine(A := rng.normal(size=(T, n)), A @ np.full(n, 1.0 / n) + 0.05)
    incidence = csr_array(rng.random((2, n)) < 0.7)
    links = tw.functions.MaxUtilization(incidence, rng.random((T, n)), [1, 2], range(n))
    return [
        tw.Stream(Linear(C), room, context=kinds),
        tw.Stream(Affine(csr_array(C), C[:, 0]), tw.functions.Max(room, budget), context=kinds),
        tw.Stream(Linear(C), context=kinds),
        tw.Stream(links, budget, context=kinds),
        tw.Stream(tw.functions.Sum(links, Linear(C)), context=kinds),
    ]


@pytest.mark.parametrize("which", range(5))
@settings(max_examples=8, deadline=None)
@given(seed=seeds, T=st.integers(1, 9), n=st.integers(1, 4), cells=st.integers(1, 4))
def test_a_policy_is_achieved_and_no_worse_than_a_point(which, seed, T, n, cells):
    K, stream = Simplex(n), streams(seed, T, n)[which]
    fixed = tw.best_in_hindsight(K, stream)
    for context in (tw.experts.Season(4, cells), tw.experts.Categories(3)):
        best = tw.best_in_hindsight(K, stream, context=context)
        require_achieved(K, stream, context, best)
        size = 1.0 + abs(fixed.upper)
        assert best.upper <= fixed.upper + 1e-7 * size
        assert best.upper - best.lower <= 1e-7 * size
        if context.cells == 1:
            assert best.upper == pytest.approx(fixed.upper, abs=1e-8 * size)
            assert best.lower == pytest.approx(fixed.lower, abs=1e-8 * size)


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_no_policy_that_keeps_the_limits_is_below_the_lower_bound(seed):
    rng, K = np.random.default_rng(seed), CappedSimplex(3, 0.8)
    C, c = rng.normal(size=(6, 3)), 0.4 + 0.5 * rng.random((6, 3))
    stream, context = tw.Stream(Linear(C), Capacity(c)), tw.experts.Season(3, 2)
    best = tw.best_in_hindsight(K, stream, context=context)
    for _ in range(50):
        points = mixes(context, stream, np.array([K.project(rng.normal(size=3)) for _ in range(2)]))
        if (points <= c).all():
            assert (C * points).sum() >= best.lower - 1e-9


@pytest.mark.parametrize(
    ("K", "losses", "limits"),
    [
        (L2Ball(3), Linear, lambda A: Affine(A, np.full(6, 0.4))),
        (Simplex(3), lambda A: tw.functions.LogWealth(1.5 + 0.3 * np.tanh(A)), None),
        (Box(-np.ones(3), np.ones(3)), lambda A: Quadratic(np.eye(3), A), None),
        (Simplex(3), Linear, lambda A: Quadratic(np.eye(3), 0.1 * A, np.full(6, -0.4))),
    ],
    ids=["oracle alone", "wealth", "squares", "curved limits"],
)
def test_curved_functions_and_sets_known_by_their_oracle(K, losses, limits):
    A = np.random.default_rng(2).normal(size=(6, 3))
    stream = tw.Stream(losses(A), None if limits is None else limits(A))
    fixed = tw.best_in_hindsight(K, stream)
    one = tw.best_in_hindsight(K, stream, context=tw.experts.Season(3, 1))
    assert one.upper == pytest.approx(fixed.upper, rel=1e-5, abs=1e-6)
    context = tw.experts.Season(3, 3)
    best = tw.best_in_hindsight(K, stream, context=context)
    require_achieved(K, stream, context, best)
    assert best.upper - best.lower <= 1e-4 * (1.0 + abs(best.upper))
    assert best.upper < fixed.upper - 1e-3


def test_features_are_those_of_the_whole_stream_and_other_cells_have_the_center():
    stream = tw.Stream(Linear([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    best = tw.best_in_hindsight(Simplex(2), stream, start=1, context=tw.experts.Season(2, 2))
    np.testing.assert_allclose(best.point, [[1.0, 0.0], [0.0, 1.0]])  # not the other way round
    require_achieved(Simplex(2), stream, tw.experts.Season(2, 2), best, start=1)
    stream = tw.Stream(Linear([[1.0, 2.0], [1.0, 2.0]]), context=[2, 2])
    best = tw.best_in_hindsight(Simplex(2), stream, context=tw.experts.Categories(4))
    np.testing.assert_allclose(best.point, [[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])


def test_limits_that_only_a_policy_keeps():
    """By day the first entry is closed, by night the second: no point, but a policy."""
    stream = tw.Stream(Linear(np.ones((6, 2))), Capacity([[0.0, 1.0], [1.0, 0.0]] * 3))
    assert tw.best_in_hindsight(Simplex(2), stream).feasible is False
    best = tw.best_in_hindsight(Simplex(2), stream, context=tw.experts.Season(2, 2))
    require_achieved(Simplex(2), stream, tw.experts.Season(2, 2), best)


def test_a_proof_that_no_policy_keeps_the_limits_names_the_rounds():
    c = np.ones((8, 2))
    c[5] = 0.25  # in this round nothing fits
    stream = tw.Stream(Linear(np.ones((8, 2))), Capacity(c))
    best = tw.best_in_hindsight(Simplex(2), stream, start=2, context=tw.experts.Season(4, 2))
    assert best.feasible is False
    assert set(best.infeasibility.rounds.tolist()) == {5}
    assert best.infeasibility.bound == pytest.approx(0.25)


def odd(given, cells=2):
    return SimpleNamespace(features=lambda known, t: given, cells=cells)


@pytest.mark.parametrize(
    ("context", "error"),
    [
        (tw.experts.Season("1d"), InvalidInput),
        (tw.experts.Categories(2), InvalidInput),
        (3, WrongType),
        (odd((np.array([2]), np.ones(1))), InvalidInput),
        (odd((np.array([0]), np.array([0.5]))), InvalidInput),
        (odd(None, 0), InvalidInput),
    ],
)
def test_what_no_policy_can_go_by_is_refused(context, error):
    wild = tw.functions.Custom(lambda t, x: 0.0, lambda t, x: 0.0 * x, 2, rounds=2)
    with refused(NotSupported):
        tw.best_in_hindsight(Simplex(2), tw.Stream(wild), context=tw.experts.Season(2, 2))
    with refused(error):
        tw.best_in_hindsight(Simplex(2), tw.Stream(Linear(np.ones((2, 2)))), context=context)


@pytest.mark.parametrize(
    "f",
    [
        Affine(csr_array([[1.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0.0, 0.0]]), np.arange(4.0)),
        Capacity(np.arange(8.0).reshape(4, 2) % 3),
        MaxAffine(np.arange(16.0).reshape(4, 2, 2) % 5 - 2, np.ones((4, 2))),
        Quadratic(np.eye(2), np.arange(8.0).reshape(4, 2)),
    ],
    ids=lambda f: type(f).__name__,
)
def test_functions_of_a_mix_keep_the_laws_of_functions(f):
    phi = csr_array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    lifted = policy_batch(f, phi, np.zeros(2))
    tw.testing.check_function(lifted)
    W = np.random.default_rng(1).normal(size=(3, 2))
    points = phi @ W
    np.testing.assert_allclose(lifted.values(W.reshape(-1)), f.values_at(points))
    each = np.array([f[t : t + 1].gradients(points[t])[0] for t in range(4)])
    by_hand = phi.toarray()[:, :, None] * each[:, None, :]
    np.testing.assert_allclose(lifted.gradients(W.reshape(-1)), by_hand.reshape(4, -1))
