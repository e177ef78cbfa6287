"""What the learners with Lyapunov weights promise beforehand, against what they measure; steps that
go past a limit; limits that are followed while losses are flat, when G_f / G_g is unknown.
"""

import math
from functools import partial

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.baselines import OnlineFrankWolfe, SinhaVaze, WangWanZhang
from tidewolf.functions import Affine, Linear

ONES = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
NEAR = {"tolerance": 1e-2, "calls_per_round": 804.0}
MADE = {
    "LyapunovFrankWolfe": tw.LyapunovFrankWolfe,
    "SinhaVaze": SinhaVaze,
    "LyapunovDescent": partial(tw.LyapunovDescent, **NEAR),
    "in blocks": partial(tw.LyapunovDescent, tolerance=1e-2, calls_per_round=402.0, block=2),
    "shorter steps": partial(tw.LyapunovDescent, step_scale=0.3, **NEAR),
    "Ensemble": partial(tw.Ensemble, tolerance=1e-3, calls_per_round=8004.0, experts=["a"]),
}
EXACT = (tw.sets.SimplexProduct([3, 1, 2]), tw.sets.Box([0.0, 0.0, 1.0], [10.0, 0.1, 1.0]))
PLACES = [
    *((tw.sets.Simplex(5), 60), (tw.sets.CappedSimplex(6, 0.5), 100), (tw.sets.Simplex(2), 1)),
    *((K, 100) for K in (*EXACT, tw.sets.Product(tw.sets.Simplex(3), tw.sets.Simplex(2)))),
]


def stream(K, T, seed):
    """Linear losses and limits of slope at most 1 that the center keeps, turning hostile
    half-way, with advice that is absent at times.
    """
    rng = np.random.default_rng(seed)
    C, A, D = rng.normal(size=(3, T, *K.shape))
    C[T // 2 :] *= -1.0
    C, A = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (C, A))
    advice = np.array([K.lmo(d) for d in D]) * rng.choice([1.0, 1.0, np.nan], (T, 1))
    return tw.Stream(Linear(C), Affine(A, A @ K.center), advice={"a": advice})


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("caution", [0.1, 10.0])
def test_what_is_measured_stays_below_what_was_promised(made, caution):
    for seed, (K, T) in enumerate(PLACES):
        learner = MADE[made](K, horizon=T, caution=caution, **ONES)
        guarantee = learner.guarantee()
        if T == 1 and made == "Ensemble":
            assert guarantee.regret is None
            continue
        run = tw.run(learner, stream(K, T, seed))
        assert guarantee.reason == ""
        assert run.regret[1] <= run.bound.regret + 1e-9 <= guarantee.regret + 2e-9
        assert float(run.violations.sum()) <= run.bound.violation <= guarantee.violation
        assert run.certificate.holds


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, tw.Ensemble])
@pytest.mark.parametrize("K", EXACT, ids=repr)
def test_where_projections_are_exact_one_call_a_round_is_enough_to_promise(kind, K):
    assert kind(K, horizon=100, **ONES).guarantee().reason == ""


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


def test_a_promise_that_cannot_be_made_says_why():
    K = tw.sets.Simplex(3)
    for learner, named in (
        (tw.LyapunovFrankWolfe(K, horizon=9), "loss_lipschitz and constraint_lipschitz"),
        (tw.LyapunovFrankWolfe(K, **ONES), "needs horizon"),
        (tw.Ensemble(K, horizon=9, loss_lipschitz=1.0, **NEAR), "needs horizon"),
        (tw.Ensemble(K, horizon=9, constraint_lipschitz=1.0, **NEAR), "needs horizon"),
        (tw.Ensemble(K, **NEAR, **ONES), "needs horizon"),
        (tw.LyapunovDescent(K, horizon=9, **ONES), "1 oracle calls per round"),
        (tw.Ensemble(K, horizon=9, **ONES), "1 oracle calls per round"),
        (tw.LyapunovDescent(K, horizon=10**6, **NEAR, **ONES), "nothing to guarantee: bounds"),
        (tw.Ensemble(K, horizon=4, step_scales=(0.01,), **NEAR, **ONES), "nothing to guarantee"),
    ):
        assert learner.guarantee().regret is None
        assert named in learner.guarantee().reason


# --- giving back what a step goes past a limit ----------------------------------------------------


def test_the_flagship_goes_less_far_past_a_limit_the_less_cautious_it_is():
    """One broken limit, no losses: the next point moves away from it by what is needed, and by more
    the larger the caution.
    """
    K, constraint = tw.sets.Box([0.0], [1.0]), tw.functions.Affine([[1.0]], [0.45])
    plays = []
    for caution in (0.1, 10.0, 1000.0):
        session = tw.Session(tw.LyapunovDescent(K, horizon=100, caution=caution))
        assert session.play()[0] == pytest.approx(0.5)
        session.observe(loss=tw.functions.Linear.one([0.0]), constraint=constraint)
        plays.append(float(session.play()[0]))
    assert plays[0] > plays[1] > plays[2] >= 0.0
    too_far = 0.45 - (0.5 - math.sqrt(0.5))  # the first step is D/sqrt 2 long
    assert plays[0] == pytest.approx(0.45 - 5.1 / 25.1 * too_far)


def test_more_calls_a_round_aim_nearer():
    K = tw.sets.Simplex(4)

    def aimed(**settings):
        learner = tw.LyapunovDescent(K, horizon=10, **settings)
        return learner.last_projection(learner.start()).tolerance2 / K.radius**2

    assert aimed() == aimed(calls_per_round=0.1) == pytest.approx(1e-3)
    assert aimed(calls_per_round=1e5) == pytest.approx(1e-9)
    assert aimed(calls_per_round=1e5, tolerance=0.1) == pytest.approx(0.1)


# --- losses that are flat -------------------------------------------------------------------------

KINDS = [tw.LyapunovDescent, tw.LyapunovFrankWolfe, SinhaVaze, WangWanZhang, OnlineFrankWolfe]
ROUNDS = 300


@pytest.mark.parametrize("K", [tw.sets.Simplex(4), tw.sets.FlowPolytope.examples()[0]], ids=repr)
@pytest.mark.parametrize("flat", ["zero", "across the hull"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_limits_are_followed_where_losses_are_flat(kind, flat, K):
    v = np.random.default_rng(2).standard_normal(K.shape)
    across = 0.0 * v if flat == "zero" else v - K.tangent(v)
    a = K.tangent(np.arange(float(v.size)))
    a /= np.linalg.norm(a)
    best = float(a @ K.lmo(a))
    b = best + 0.2 * (float(a @ K.center) - best)
    limits = Affine(np.tile(a, (ROUNDS, 1)), np.full(ROUNDS, b))
    seen = tw.Stream(Linear(np.tile(across, (ROUNDS, 1))), limits)
    run = tw.run(kind(K, horizon=ROUNDS), seen)
    assert run.violations[0] == pytest.approx(float(a @ K.center) - b)
    assert run.violations[ROUNDS // 2 :].mean() < 0.25 * run.violations[0]
