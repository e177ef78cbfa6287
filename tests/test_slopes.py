"""What a function adds across aff(K) is a constant on K: <a + k 1, x> <= b + k is one
constraint on a simplex for every k, and <c + k 1, x> one loss.

So decisions and bounds of every learner and baseline that estimates gradient norms are the same for
every k, up to the digits that adding k costs. Streams are random: there are no ties that rounding
could decide.
"""

import math

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf.functions import Affine, Capacity, Custom, Linear, MaxAffine
from tidewolf.methods.capabilities import BoundsParts
from tidewolf.methods.steps.slopes import tangent_part, tangent_slopes
from tidewolf.sets import Birkhoff, Box, FlowPolytope, Simplex

SETS = [Simplex(5), FlowPolytope.examples()[0], Birkhoff(3)]
EVERY, ROUNDS = {**tw.learners.every(), **tw.baselines.every()}, 30


def stream(K, rounds, k, seed=1, pieces=2):
    """Losses and opposed limits whose slopes have a part of length k across aff(K).

    Limits have another one every round. Losses have the same, or values alone would tell rounds
    apart.
    """
    rng = np.random.default_rng(seed)
    star = 0.7 * K.center + 0.3 * K.lmo(rng.standard_normal(K.shape))
    C = rng.standard_normal(K.shape) + rng.standard_normal((rounds, *K.shape))
    A = -0.7 * C[:, None] + rng.standard_normal((rounds, pieces, *K.shape))
    b = (A * star).reshape(rounds, pieces, -1).sum(axis=2) + 0.02 * rng.random((rounds, pieces))
    across = np.array([v - K.tangent(v) for v in rng.standard_normal((rounds, *K.shape))])
    across = (across.T * (k / np.linalg.norm(across.reshape(rounds, -1), axis=1))).T
    b = b + (across * K.center).reshape(rounds, -1).sum(axis=1)[:, None]
    return tw.Stream(Linear(C + across[0]), MaxAffine(A + across[:, None], b))


@thinned(2, name=sorted(EVERY), K={type(K).__name__: K for K in SETS})
def test_what_is_across_the_hull_changes_nothing(name, K):
    learner = EVERY[name](K, horizon=ROUNDS)
    run = tw.run(learner, stream(K, ROUNDS, 0.0))
    assert len(run.trajectory.means) == ROUNDS  # every decision
    assert np.ptp(run.trajectory.means, axis=0).max() > 0.01 * K.radius
    near = 1e-5 if name == "CLASP" else 1e-6  # the root of what its programs end within
    for k in (1.0, 1e3, 1e6):
        shifted = tw.run(learner, stream(K, ROUNDS, k))
        means = (each.trajectory.means for each in (shifted, run))
        np.testing.assert_allclose(*means, rtol=0.0, atol=near * K.radius)
        for number, expected in zip(shifted.bound[:2], run.bound[:2], strict=True):
            same = None if expected is None else pytest.approx(expected, rel=1e-6)
            assert number == same, k
        for part in ((7, 20), (13, 15)) if isinstance(learner, BoundsParts) else ():
            expected = learner.bound_between(run, *part)[:2]
            assert learner.bound_between(shifted, *part)[:2] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("K", SETS, ids=lambda K: type(K).__name__)
def test_limits_that_no_point_keeps_are_broken_least_whatever_is_across_the_hull(K):
    """Programs of rivals in two steps: the least worst breach, then the best point that breaches no
    more.
    """

    def broken(k):
        whole = stream(K, 12, k, seed=4)
        return tw.Stream(whole.losses, MaxAffine(whole.constraints.A, whole.constraints.b - 1.0))

    baseline = tw.baselines.Resolve(K)
    plain = tw.run(baseline, broken(0.0)).trajectory.means
    assert np.ptp(plain, axis=0).max() > 0.1 * K.radius
    for k in (1e3, 1e6):
        means = tw.run(baseline, broken(k)).trajectory.means
        np.testing.assert_allclose(means, plain, rtol=0.0, atol=1e-6 * K.radius)


# --- slopes within the hull -----------------------------------------------------------------------


@pytest.mark.parametrize("K", [*SETS, Box(-np.ones(4), np.ones(4))], ids=lambda K: type(K).__name__)
def test_slopes_of_rounds_are_those_within_the_hull(K):
    C = np.random.default_rng(0).standard_normal((4, *K.shape))
    own = Custom(lambda t, x: float((C[t] * x).sum()), lambda t, x: C[t], K.shape, rounds=4)
    for batch in (Linear(C), own):
        expected = [np.linalg.norm(K.tangent(c)) for c in C]
        np.testing.assert_allclose(tangent_slopes(K, "loss", batch, K.center), expected, rtol=1e-12)


def test_what_is_only_across_the_hull_has_no_slope():
    K, flat = Simplex(4), Affine(1e6 * np.ones((3, 4)) / 3.0, np.full(3, 1e6))
    assert tangent_slopes(K, "constraint", flat, K.center).tolist() == [0.0, 0.0, 0.0]
    one = tangent_slopes(K, "constraint", Capacity(np.ones((1, 4))), K.center)
    assert one == pytest.approx(math.sqrt(0.75))


def test_a_large_part_across_the_hull_leaves_nothing_behind():
    K, rng = Simplex(7), np.random.default_rng(5)
    gradient = rng.standard_normal(7) + 1e9
    along, slope = tangent_part(K, "loss", gradient, 1, None)
    assert abs(along.sum()) <= 1e-14 * slope
    np.testing.assert_allclose(along, gradient - gradient.mean(), atol=1e-5)
