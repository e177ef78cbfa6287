"""Units: losses and constraints times anything are the same game, or are refused in a sentence;
overflow has no other words than ours.
"""

import warnings
from functools import cache

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, TidewolfError
from tidewolf.core.feedback import FirstOrder
from tidewolf.functions import Affine, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.best_point import BestPoint
from tidewolf.hindsight.task import Task
from tidewolf.methods.steps.slopes import tangent_part
from tidewolf.sets import Box, FlowPolytope, L2Ball, Scaled, Simplex, Spectraplex

ROUNDS, KINDS = 30, {**tw.learners.every(), **tw.baselines.every()}
SETS = {"simplex": Simplex(4), "flow": FlowPolytope.examples()[0]}
FAR = {"1e-160": 1e-160, "1e-300": 1e-300, "1e160": 1e160, "1e300": 1e300}
NEAR = {"1e-99": 2.0**-328, "1e99": 2.0**328}
"""Powers of two, which round nothing: decisions are the same to the last bit."""


@pytest.fixture(autouse=True)
def _no_words_but_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@cache
def arrays(name):
    """Costs, rows and bounds; some member keeps every row, the center does not."""
    K, rng = SETS[name], np.random.default_rng(0)
    C, A = rng.random((ROUNDS, K.shape[0])) - 0.3, rng.random((ROUNDS, K.shape[0]))
    inside = 0.5 * K.lmo(rng.standard_normal(K.shape)) + 0.5 * K.center
    return C, A, np.maximum(A @ inside + 0.01, A @ K.center - 0.05)


def stream(name, f, g):
    C, A, b = arrays(name)
    return tw.Stream(Linear(f * C), Affine(g * A, g * b))


def decisions(learner, played):
    n = learner.K.shape[0]
    return np.concatenate([np.reshape(move.x, (-1, n)) for move in tw.play(learner, played)])


@cache
def plain(kind, name):
    learner = KINDS[kind].examples(SETS[name], ROUNDS)[0]
    return learner, decisions(learner, stream(name, 1.0, 1.0)), best(name)


@cache
def best(name):
    known = tw.best_in_hindsight(SETS[name], stream(name, 1.0, 1.0))
    assert known.feasible is True
    return known


def truthful(run, name, f, g):
    """Nothing false is said of a run on rounds that some point keeps."""
    assert run.certificate.holds is not False, run.certificate.failures
    assert "No point can keep" not in run.bound.reason
    assert run.comparator is None or run.comparator.feasible is True
    if run.regret is not None:
        truth = f * np.array([best(name).lower, best(name).upper])
        rounding = 1e-9 * abs(truth).max()
        assert run.comparator.lower <= truth[1] + rounding
        assert run.comparator.upper >= truth[0] - rounding
        assert np.isfinite(run.regret).all()
        if run.bound.regret is not None:
            assert run.bound.regret >= run.regret[0]


POWERS = {"losses": (1.0, 0.0), "constraints": (0.0, 1.0), "both": (1.0, 1.0)}


@thinned(4, kind=[*KINDS], name=[*SETS], unit=FAR, powers=POWERS)
def test_units_far_away_change_no_decision_or_are_refused(kind, name, unit, powers):
    """Programs take any unit, and values alone any small one."""
    learner, expected, _ = plain(kind, name)
    f, g = (unit**power for power in powers)
    scaled = stream(name, f, g)
    try:
        run, points = tw.run(learner, scaled), decisions(learner, scaled)
    except TidewolfError as refusal:
        sentence = str(refusal)
        assert "units" in sentence or "at most" in sentence
        assert kind != "Resolve"
        assert kind != "BanditPrimalDual" or unit > 1.0
        return
    near = 1e-5 if kind == "CLASP" else 1e-9  # the root of what its programs end within
    np.testing.assert_allclose(points, expected, rtol=0, atol=near * SETS[name].radius)
    truthful(run, name, f, g)


@thinned(3, kind=[*KINDS], name=[*SETS], f=NEAR, g=NEAR)
def test_units_in_between_change_nothing_at_all(kind, name, f, g):
    learner, expected, _ = plain(kind, name)
    run = tw.run(learner, stream(name, f, g))
    points = decisions(learner, stream(name, f, g))
    # their step has an accuracy, not the last bit
    if kind in ("DriftPlusPenalty", "ProximalPenalty"):
        np.testing.assert_allclose(points, expected, rtol=0, atol=1e-6 * SETS[name].radius)
    else:
        np.testing.assert_array_equal(points, expected)
    assert np.abs(points - points[0]).max() > 0.01
    truthful(run, name, f, g)
    assert run.regret is not None


def test_limits_in_smaller_units_than_others_are_limits():
    """x_0 <= 0.1 in units of 1e-12 of the other's."""
    K = Box([0.0, 0.0], [1.0, 1.0])
    limits = Affine(np.array([[1e-12, 0.0], [0.0, 1.0]]), np.array([1e-13, 0.9]))
    losses = Linear(np.array([[-1.0, -1.0], [0.0, 0.0]]))
    best = tw.best_in_hindsight(K, tw.Stream(losses, limits)).point
    for x in (best, BestPoint(K, "a test")(losses, limits)):
        np.testing.assert_allclose(x, [0.1, 0.9], atol=1e-9)


# --- slopes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gradient_too_small_is_refused_unless_slopes_are_known_beside_it(dtype):
    K = Simplex(2).to(np.zeros(2, dtype=dtype))
    unit = 1e-150 if dtype is np.float64 else 1e-25
    gradient = np.array([unit, 0.0], dtype=dtype)
    for known in ((), (100 * unit,)):
        with pytest.raises(NotFinite, match=r"loss of slope .* would vanish"):
            tangent_part(K, "loss", gradient, 1, None, *known)
    for known in ({"given": 1.0}, {"given": None, "known": 1.0}):
        along, slope = tangent_part(K, "loss", gradient, 1, **known)
        assert slope == 0.0
        assert not along.any()


@pytest.mark.parametrize(("radius", "slope"), [(1e-100, 1e-60), (1e100, 1e60)])
def test_slopes_times_radii_are_moderate_too(radius, slope):
    K = Box(-radius * np.ones(2), radius * np.ones(2))
    with pytest.raises(NotFinite, match=r"slopes times radii from 1e-140 to 1e\+140"):
        tangent_part(K, "loss", np.array([slope, 0.0]), 1, None)


@pytest.mark.parametrize("block", [1, 3])
def test_a_curved_loss_at_its_minimum_goes_on(block):
    """Slopes fall below 1e-140 while the loss is well known."""
    K, learner = Box([-1.0], [1.0]), tw.LyapunovDescent(Box([-1.0], [1.0]), block=block)
    state = learner.start()
    for slope in (1.0, -0.5, 0.0, 1e-180, 1e-300, 5e-324, 0.25, 1e-200, 0.0):
        seen = FirstOrder(np.array([slope]), 0.0, np.zeros(1), abs(slope), 0.0, 1)
        state = learner.update(state, seen)
    assert state.t == 9
    assert K.infeasibility(learner.act(state)) <= 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_sets_too_small_or_large_to_square_are_refused(kind, size):
    with pytest.raises(InvalidInput, match=r"radii from 1e-140 to 1e\+140, or 0"):
        KINDS[kind](Scaled(Simplex(3), size))


@pytest.mark.parametrize("size", [0.0, -1.0, 1e-200, 1e200, np.inf, np.nan])
def test_a_given_slope_is_one_that_can_be_squared(size):
    with pytest.raises(InvalidInput, match="loss_lipschitz"):
        tw.PrimalDual(Simplex(3), loss_lipschitz=size)


# --- overflow -------------------------------------------------------------------------------------


def overflowing(rounds):
    C, zero = np.ones((rounds, 3)), Affine(np.zeros((rounds, 3)), np.ones(rounds))
    big = np.array([1e307, -1e307, 0.0])
    small, steep = np.eye(3)[np.arange(rounds) % 3], 1.7e308 * np.array([1.0, -1.0, 1.0]) * C
    below = np.ones(rounds)
    return {
        "values of losses": tw.Stream(Affine(big + 0 * C, -1.7e308 * below), zero),
        "totals of losses": tw.Stream(Affine(small, -1e307 * below), zero),
        "values of constraints": tw.Stream(Linear(C), Affine(small, -1.7e308 * below)),
        "gradients": tw.Stream(Linear(steep), zero),
        "gradients of limits": tw.Stream(Linear(C), Affine(steep, -below)),
        "curvature": tw.Stream(Quadratic(1e300 * np.eye(3), 1e300 * C), zero),
    }


PAPER = ["PrimalDual", "BanditPrimalDual", "DriftPlusPenalty"]


@thinned(1, kind=["LyapunovDescent", "Resolve", "ProximalPenalty", *PAPER], what=[*overflowing(1)])
def test_overflow_speaks_once_and_in_our_words(kind, what):
    with pytest.raises(TidewolfError, match=r"^[A-Z].*\.$"):
        tw.run(KINDS[kind](Scaled(Simplex(3), 100.0)), overflowing(40)[what])


# --- comparators ----------------------------------------------------------------------------------


def hindsight(K, kind, f, g, offset=0.0):
    rng, n = np.random.default_rng(3), int(np.prod(K.shape))
    C, A = rng.standard_normal((20, *K.shape)), rng.standard_normal((20, *K.shape))
    if len(K.shape) == 2:
        C, A = C + np.swapaxes(C, 1, 2), A + np.swapaxes(A, 1, 2)
    b = A.reshape(20, -1) @ np.reshape(K.center, -1) + 0.05
    across = np.eye(K.shape[0]) if len(K.shape) == 2 else np.ones(K.shape)
    losses = {
        "affine": lambda: Affine(f * C, np.full(20, -f * offset)),
        "across": lambda: Linear(f * (C + offset * across)),
        "curved": lambda: Quadratic(f * np.eye(n), f * C, np.full(20, f * offset)),
    }[kind]()
    if kind == "curved":
        return tw.Stream(losses, MaxAffine(g * A[:, None], g * b[:, None]))
    return tw.Stream(losses, Affine(g * A, g * b))


@thinned(
    3,
    case={
        "simplex-affine": (Simplex(4), "affine"),
        "ball-affine": (L2Ball(3, 1.0), "affine"),
        "ball-curved": (L2Ball(3, 1.0), "curved"),
    },
    f={f"{u:g}": u for u in (1e-300, 1e-160, 1e-100, 1.0, 1e100, 1e160, 1e300)},
    g={f"{v:g}": v for v in (1e-300, 1e-100, 1.0, 1e160)},
)
def test_a_bracket_holds_the_truth_in_its_units_or_there_is_none(case, f, g):
    K, kind = case
    moderate = 1e-140 < min(f, g) <= max(f, g) < 1e140
    plain, scaled = hindsight(K, kind, 1.0, 1.0), hindsight(K, kind, f, g)
    if not moderate:
        with pytest.raises(NotSupported, match=r"give the (losses|constraints) in other units"):
            tw.best_in_hindsight(K, scaled)
        return
    truth, found = tw.best_in_hindsight(K, plain), tw.best_in_hindsight(K, scaled)
    assert found.feasible is True
    assert found.lower <= f * (truth.upper + 1e-9)
    assert found.upper >= f * (truth.lower - 1e-9)
    assert found.upper - found.lower <= 1e-5 * f


@pytest.mark.parametrize("offset", [1e9, -1e9])
@pytest.mark.parametrize(
    ("K", "kind"),
    [
        (Simplex(4), "across"),
        (FlowPolytope.examples()[0], "affine"),
        (FlowPolytope.examples()[0], "curved"),
        (L2Ball(3, 1.0), "curved"),
        (Spectraplex(3), "affine"),
    ],
)
def test_a_common_offset_costs_rounding_alone(K, kind, offset):
    learner = tw.LyapunovDescent(K)
    plain, moved = (tw.run(learner, hindsight(K, kind, 1.0, 1.0, by)) for by in (0.0, offset))
    width = moved.regret[1] - moved.regret[0]
    assert 0.0 <= width <= 1e-5 + 100 * 20 * 1e9 * np.finfo(float).eps * np.size(K.center)
    assert moved.regret[0] - 1e-3 <= plain.regret[1]
    assert moved.regret[1] + 1e-3 >= plain.regret[0]
    assert moved.certificate.holds is True


def test_costs_across_the_hull_say_nothing():
    task = Task.of(Simplex(3), Linear(np.full((2, 3), 1e9)), Affine(np.ones((2, 3)), np.ones(2)))
    assert not task.for_solvers().c.any()
