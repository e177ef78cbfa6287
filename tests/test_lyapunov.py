"""What the learners with Lyapunov weights promise beforehand, against what they measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.baselines import SinhaVaze
from tidewolf.functions import Affine, Linear
from tidewolf.sets import CappedSimplex, Simplex

ONES = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
MADE = {
    "LyapunovFrankWolfe": lambda K, T, **given: tw.LyapunovFrankWolfe(K, horizon=T, **given),
    "SinhaVaze": lambda K, T, **given: SinhaVaze(K, horizon=T, **given),
    "LyapunovDescent": lambda K, T, **given: tw.LyapunovDescent(
        K, horizon=T, tolerance=1e-2, calls_per_round=804.0, **given
    ),
    "LyapunovDescent in blocks": lambda K, T, **given: tw.LyapunovDescent(
        K, horizon=T, tolerance=1e-2, calls_per_round=402.0, block=2, **given
    ),
}


def stream(seed, T, n):
    """Linear losses and limits of slope at most 1 that the center keeps, turning hostile
    half-way.
    """
    rng = np.random.default_rng(seed)
    C, A = rng.normal(size=(2, T, n))
    C[T // 2 :] *= -1.0
    C, A = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (C, A))
    return tw.Stream(Linear(C), Affine(A, A.mean(axis=1)))


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("caution", [0.1, 10.0])
def test_what_is_measured_stays_below_what_was_promised(made, caution):
    for seed, (K, T) in enumerate(
        ((Simplex(5), 60), (CappedSimplex(6, 0.5), 100), (Simplex(2), 1))
    ):
        learner = MADE[made](K, T, caution=caution, **ONES)
        guarantee = learner.guarantee()
        run = tw.run(learner, stream(seed, T, K.shape[0]))
        assert guarantee.reason == ""
        assert run.regret[1] <= run.bound.regret + 1e-9 <= guarantee.regret + 2e-9
        assert float(run.violations.sum()) <= guarantee.violation
        assert run.certificate.holds


def test_the_measured_bound_stays_below_the_promise_over_many_rounds():
    """The step never grows: were the present distance alone to rule it, every oscillation of
    |x - y| would be paid for again.
    """
    K, T = Simplex(40), 20_000
    rng = np.random.default_rng(0)
    C = rng.standard_normal((T, 40))
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    learner = tw.LyapunovDescent(
        K, horizon=T, caution=1.0, tolerance=2 / T, calls_per_round=4.0 * T + 4.0, **ONES
    )
    run = tw.run(learner, tw.Stream(Linear(C), Affine(0.0 * C, np.ones(T))))
    assert run.bound.regret <= learner.guarantee().regret
    assert run.certificate.holds
    assert {"regret bound below promise", "violation bound below promise"} <= {
        check.name for check in run.certificate.checks
    }


def test_the_constants_of_frank_wolfe_are_those_of_the_proof():
    """The proof's inequality xi^2 <= ..., solved for every number of rounds; sigma is cut at 1
    where there is no horizon.
    """

    def root(factor, first, last, extra):  # the largest xi with xi^2 <= factor (first + xi + last)
        return factor / 2 + math.sqrt(factor**2 / 4 + factor * (first + last + extra))

    a, b = 1.055, 2.24
    known = a / 2 + root(2 / (a * b), a * b**2 / 2, a / 2, 0.0)
    assert 2.64 < known <= 2.65
    a, b, gained, kept, worst = 1.31, 1.94, 0.0, 0.0, 0.0
    for T in range(1, 100_001):
        sigma, grown = min(1.0, b / math.sqrt(T)), T**0.75
        gained, kept = gained + sigma**2 * grown, kept + 1.0 / (sigma * grown)
        xi = root(2 / a * kept / grown, a / 2 * gained / grown, a / 2, 0.0)
        worst = max(worst, a / 2 + min(xi, T**0.25))
    assert 3.27 < worst <= 3.28
    # where b/sqrt T exceeds 1
    assert all(1.055 / 2 + min(math.inf, T**0.25) <= 2.65 for T in range(1, 6))


@pytest.mark.parametrize("made", ["LyapunovFrankWolfe", "SinhaVaze"])
def test_a_promise_is_smaller_a_round_in_longer_runs(made):
    rates = [
        [value / T for value in MADE[made](Simplex(4), T, **ONES).guarantee()[:2]]
        for T in (10**3, 10**5, 10**7)
    ]
    assert rates[0] > rates[1] > rates[2]
    assert rates[0][1] > rates[1][1] > rates[2][1]


def test_a_promise_that_cannot_be_made_says_why():
    K, far = Simplex(3), {"tolerance": 1e-2, "calls_per_round": 804.0}
    for learner, named in (
        (tw.LyapunovFrankWolfe(K, horizon=9), "loss_lipschitz and constraint_lipschitz"),
        (tw.LyapunovFrankWolfe(K, **ONES), "needs horizon"),
        (tw.LyapunovDescent(K, horizon=9, **ONES), "1 oracle calls a round"),
        (tw.LyapunovDescent(K, horizon=10**6, **far, **ONES), "nothing to promise: bounds"),
    ):
        assert learner.guarantee().regret is None
        assert named in learner.guarantee().reason
