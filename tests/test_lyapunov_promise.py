"""What the learners with Lyapunov weights promise beforehand, against what they measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.functions import Affine, Linear
from tidewolf.rivals import SinhaVaze
from tidewolf.sets import CappedSimplex, Simplex

ONES = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
MADE = {
    "LyapunovFrankWolfe": lambda K, T, **given: tw.LyapunovFrankWolfe(K, horizon=T, **given),
    "SinhaVaze": lambda K, T, **given: SinhaVaze(K, horizon=T, **given),
    "LyapunovDescent": lambda K, T, **given: tw.LyapunovDescent(K, horizon=T, tolerance=1e-2, calls_per_round=804.0, **given),
    "LyapunovDescent in blocks": lambda K, T, **given: tw.LyapunovDescent(
        K, horizon=T, tolerance=1e-2, calls_per_round=402.0, block=2, **given
    ),
}


def stream(seed, T, n):
    """Linear losses and limits of slope at most 1 that the center keeps, turning hostile half-way."""
    rng = np.random.default_rng(seed)
    C, A = rng.normal(size=(2, T, n))
    C[T // 2 :] *= -1.0
    C, A = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (C, A))
    return tw.Stream(Linear(C), Affine(A, A.mean(axis=1)))


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("caution", [0.1, 10.0])
def test_what_is_measured_stays_below_what_was_promised(made, caution):
    for seed, (K, T) in enumerate(((Simplex(5), 60), (CappedSimplex(6, 0.5), 100), (Simplex(2), 1))):
        learner = MADE[made](K, T, caution=caution, **ONES)
        promise = learner.promise()
        run = tw.run(learner, stream(seed, T, K.shape[0]))
        assert promise.reason == ""
        assert run.regret[1] <= run.bound.regret + 1e-9 <= promise.regret + 2e-9
        assert float(run.violations.sum()) <= promise.violation
        assert run.certificate.holds


def test_a_promise_is_the_formula_of_its_file():
    K, T, caution = Simplex(3), 10_000, 5.0
    D, c, p, theta = math.sqrt(2.0), 2.65, 0.75, 0.5
    V = T**-p / caution
    promise = tw.LyapunovFrankWolfe(K, horizon=T, caution=caution, loss_lipschitz=2.0, constraint_lipschitz=3.0).promise()
    assert promise.regret == pytest.approx(c * 2.0 * D * (T**p + theta / V))
    assert promise.violation == pytest.approx(c * 3.0 * D * T**p / theta * math.log((1 + V * T**p + V * T / c) / (1 - theta)))


@pytest.mark.parametrize("made", ["LyapunovFrankWolfe", "SinhaVaze"])
def test_a_promise_is_smaller_a_round_in_longer_runs(made):
    rates = [[value / T for value in MADE[made](Simplex(4), T, **ONES).promise()[:2]] for T in (10**3, 10**5, 10**7)]
    assert rates[0] > rates[1] > rates[2]
    assert rates[0][1] > rates[1][1] > rates[2][1]


def test_a_promise_that_cannot_be_made_says_why():
    K = Simplex(3)
    assert "needs horizon, loss_lipschitz and constraint_lipschitz" in tw.LyapunovFrankWolfe(K, horizon=9).promise().reason
    assert "needs horizon, loss_lipschitz and constraint_lipschitz" in tw.LyapunovFrankWolfe(K, **ONES).promise().reason
    assert "1 oracle calls a round, in blocks of 1, no distance" in tw.LyapunovDescent(K, horizon=9, **ONES).promise().reason
    far = tw.LyapunovDescent(K, horizon=10**6, tolerance=1e-2, calls_per_round=804.0, **ONES).promise()
    assert far.regret is None
    assert "too large for a promise" in far.reason
