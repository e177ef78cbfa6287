"""Learners with Lyapunov weights and their baselines: bounds on hostile streams, steps and bounds
as their formulas say, and extremes.
"""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import tidewolf as tw
from covering import thinned
from streams import hostile
from test_rounds import uncompiled
from tidewolf.baselines import SinhaVaze, WangWanZhang
from tidewolf.core import errors, feedback
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.methods.base import Bound
from tidewolf.methods.certificate import GradientSums, paid_at_most, regret_at_most
from tidewolf.methods.steps import saddle
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, Simplex, VertexHull

LYAPUNOV = (tw.LyapunovDescent, tw.LyapunovFrankWolfe, SinhaVaze, WangWanZhang)
LYAPUNOV = {kind.__name__: kind for kind in LYAPUNOV}
each_lyapunov = pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))


def actions(learner, stream):
    """The point of every block, or every point if the learner explores, one a row."""
    shape = (-1, *learner.K.shape)
    return np.concatenate([played.x.reshape(shape) for played in tw.play(learner, stream)])


@pytest.mark.parametrize("kind", [*LYAPUNOV.values(), tw.PrimalDual])
def test_a_lipschitz_constant_that_does_not_hold_is_named(kind):
    K = Box(np.zeros(2), np.ones(2))
    for name, seen in (
        ("loss", feedback.FirstOrder(np.array([3.0, 4.0]), 0.0, np.zeros(2), 5.0, 0.0, 1)),
        ("constraint", feedback.FirstOrder(np.zeros(2), 1.0, np.array([3.0, 4.0]), 0.0, 5.0, 1)),
    ):
        learner = kind(K, horizon=5, **{f"{name}_lipschitz": 4.9})
        with pytest.raises(errors.InvalidInput, match=rf"slope 5 .* {name}_lipschitz = 4\.9"):
            learner.update(learner.start(), seen)


# --- bounds ---------------------------------------------------------------------------------------


def plain_bounds(learner, stream):
    """Both bounds from the formulas of methods/certificate.py and steps/lyapunov.py, written
    plainly over all vertices, given the points that were played; the best c by a linear program.
    """
    K, theta, c = learner.K, 0.5, 2.0
    D, rng, rho = K.diameter, np.random.default_rng(0), math.inf
    at = np.unique([K.lmo(d) for d in rng.standard_normal((400, *K.shape))], axis=0) - K.center
    F, W, G_f, G_g, paid, Q, e = 0.0 * K.center, 0.0 * K.center, 0.0, 0.0, 0.0, 0.0, 0.0
    loss_at, limit_at, points, broken = 0.0, 0.0, [], []
    for t, played in enumerate(tw.play(learner, stream)):
        C, A = K.tangent(stream.losses.C[t]), K.tangent(stream.constraints.A[t])
        G_f, breach = max(G_f, float(np.linalg.norm(C))), float(played.constraints[0])
        F, loss_at = F + C, loss_at + C @ (played.x - K.center)
        points.append(played.x)
        e = theta * max(t + 1, learner.horizon or 16) ** -0.5
        if breach > 0:
            Q, G_g = Q + breach, max(G_g, float(np.linalg.norm(A)))
            w, rho = theta * G_f / G_g * math.exp(e * Q / (c * G_g * D)), min(rho, G_f / G_g)
            W, limit_at = W + w * A, limit_at + w * A @ (played.x - K.center)
            paid += w * breach
            at_mean = breach + A @ (np.mean(points, axis=0) - played.x)
            broken.append((max(breach, at_mean), breach, A, A @ (played.x - K.center)))

    def best(W, limit_at, paid):
        """The least a + c b + s with s >= -<F + c W, v - center> at every vertex v."""
        rows = np.column_stack([-at @ W, -np.ones(len(at))])
        limits = [(0.0, None), (None, None)]
        found = linprog([limit_at - paid, 1.0], A_ub=rows, b_ub=at @ F, bounds=limits)
        return loss_at + found.fun

    if not broken:
        return best(W, 0.0, 0.0), 0.0
    sizes, breaches, gradients, places = map(np.array, zip(*broken, strict=True))
    sharp = (sizes / (G_g * D)) ** 4
    own = sharp @ gradients, sharp @ places, sharp @ breaches
    unit, most = c * G_g * D / e, limit_at - (at @ W).min()
    violation = unit * math.log1p(most / (rho * theta * unit))
    by_sharp = len(broken) ** 0.8 * ((G_g * D) ** 4 * (own[1] - (at @ own[0]).min())) ** 0.2
    return min(best(W, limit_at, paid), best(*own)), min(violation, by_sharp)


@thinned(
    3,
    K={type(K).__name__: K for K in (Simplex(4), DIAMOND, HULL)},
    kind={kind: kind for kind in ("switching", "rare and huge", "steady", "losses that grow")},
)
def test_bounds_are_those_of_the_formulas_written_plainly(K, kind):
    stream = hostile(kind, K, 100, 6)
    few = {"horizon": 20, "calls_per_round": 0.1, "caution": 1.0}
    for learner in (tw.LyapunovDescent(K, 100), tw.LyapunovDescent(K, **few), SinhaVaze(K)):
        bound, (regret, violation) = tw.run(learner, stream).bound, plain_bounds(learner, stream)
        slack = 1e-6 * float(np.linalg.norm(stream.losses.C, axis=1).sum()) * K.diameter
        assert regret - slack <= bound.regret <= regret + 2e-3 * abs(regret) + slack
        assert bound.violation == pytest.approx(violation, rel=1e-6)


@pytest.mark.parametrize("K", [Simplex(4), DIAMOND, HULL], ids=lambda K: type(K).__name__)
def test_steps_are_those_of_the_formulas_written_plainly(K):
    """Where y goes before it is projected, from the points and gradients of each round."""
    stream, V, theta, c, D = hostile("switching", K, 80, 6), 0.1, 0.5, 2.0, K.diameter
    learner = tw.LyapunovDescent(K, calls_per_round=0.2, step_scale=0.7)
    keep, state, G_f, G_g, Q, S, sigma = 15.0 / 35.0, learner.start(), 0.0, 0.0, 0.0, 0.0, 0.0
    for t, played in enumerate(tw.play(uncompiled(learner), stream)):
        x, y, breach = state.point.x, state.point.y, float(played.constraints[0])
        C, A = K.tangent(stream.losses.C[t]), K.tangent(stream.constraints.A[t])
        G_f, P, g = max(G_f, float(np.linalg.norm(C))), 0.0 * C, V * C
        if breach > 0:
            Q, G_g = Q + breach, max(G_g, float(np.linalg.norm(A)))
            e = theta * max(t + 1, 16) ** -0.5
            w = theta * G_f / G_g * math.exp(e * Q / (c * G_g * D))
            P, g = w * A, g + w * A
        D_t = min(2 * K.radius, D + float(np.linalg.norm(x - y)))
        S += float(g @ g)
        sigma = max(sigma, math.sqrt(S / 2) / (0.7 * D_t))
        target = y - g / (2 * sigma)
        if breach > 0 and (past := -w * breach - P @ (target - x)) > 0:
            target = target + (1 - keep) * min(1 / (2 * sigma), past / (P @ P)) * P
        far = float(np.linalg.norm(target - K.center))
        target = target if far <= K.radius else K.center + K.radius / far * (target - K.center)
        state = played.state
        np.testing.assert_allclose(state.point.before_projection, target, atol=1e-9 * K.radius)


def test_an_oracle_that_errs_adds_its_error():
    K, rng = Simplex(3), np.random.default_rng(0)
    F, W = K.tangent(rng.standard_normal(3)), K.tangent(rng.standard_normal(3))
    sums, right = GradientSums(F, W, 1.0, 2.0), K.answer
    before = regret_at_most(K, sums, 0.5), paid_at_most(K, sums)
    K.__dict__["answer"] = lambda d, warm=None: right(d)._replace(error=0.25)
    assert paid_at_most(K, sums) == pytest.approx(before[1] + 0.25 * np.linalg.norm(W))
    assert regret_at_most(K, sums, 0.5) > before[0]


@each_lyapunov
def test_curved_losses_have_a_bound_on_the_violation_without_a_given_slope(kind):
    """Limits of 0.45 on both sides of the diamond are broken at first and can be kept; away from
    the path played losses are steep.
    """
    T, K, rng = 200, DIAMOND, np.random.default_rng(0)
    slopes = -30.0 * K.lmo(rng.normal(size=5)) + rng.random((T, 5))
    losses = tw.functions.Quadratic(30.0 * np.eye(5), slopes)
    limit = np.maximum(K.center, 0.1) + 0.02
    run = tw.run(kind(K), tw.Stream(losses, Capacity(np.tile(limit, (T, 1)))))
    assert run.comparator.feasible
    assert 0.0 < run.violations.sum() <= run.bound.violation
    assert run.bound.reason == ""
    assert run.certificate.holds is not False


@pytest.mark.parametrize("rounds", [1, 11, 12, 40])
def test_a_block_that_is_still_open_has_its_bound(rounds):
    """As though it had been cut where the run ended."""
    stream = hostile("switching", DIAMOND, rounds, 0)
    learner = tw.LyapunovDescent(DIAMOND, horizon=20, block=3, calls_per_round=0.5)
    run = tw.run(learner, stream)
    assert run.certificate.holds
    state, open_rounds = run.final_state, rounds % 3
    assert (state.open.rounds if open_rounds else 0) == open_rounds
    if open_rounds:
        weighed = learner._weights.weigh(state.dual, state.open, state.point.x)
        assert run.bound == learner._weights.bound(weighed.dual)


# --- extremes -------------------------------------------------------------------------------------


def naive_sinha_vaze(K, stream, horizon, caution):
    """The method as it is written down, with plain exponentials and no restart."""
    x, Q, G_f, G_g, S, played = K.center, 0.0, 0.0, 0.0, 0.0, []
    V, s = horizon**-0.5 / caution, 0.5 * horizon**-0.5
    for C, A, b in zip(stream.losses.C, stream.constraints.A, stream.constraints.b, strict=True):
        played.append(x)
        grad_f, grad_g, breach = K.tangent(C), K.tangent(A), max(0.0, float(A @ x - b))
        G_f, g, Q = max(G_f, float(np.linalg.norm(grad_f))), V * grad_f, Q + breach
        if breach > 0:
            G_g = max(G_g, float(np.linalg.norm(grad_g)))
            g = g + G_f / G_g * s * math.exp(s * Q / (2.0 * G_g * K.diameter)) * grad_g
        S += float(g @ g)
        x = K.project(x - K.diameter / math.sqrt(2.0 * S) * g)
    return np.array(played)


PLACES = [(Simplex(4), 0.1), (Simplex(4), 30.0), (Box([-1.0, 0.0, 0.0], [1.0, 2.0, 0.5]), 1.0)]


@pytest.mark.parametrize(("K", "caution"), PLACES, ids=repr)
def test_the_rival_agrees_with_its_formulas_written_plainly(K, caution):
    stream = hostile("switching", K, 200, 7)
    ours = actions(SinhaVaze(K, horizon=200, caution=caution), stream)
    np.testing.assert_allclose(ours, naive_sinha_vaze(K, stream, 200, caution), atol=1e-9)


def breached(K, rounds, depth):
    """Limits that no point keeps, breached by at least `depth` every round, whose gradients still
    say where it is least.
    """
    rng = np.random.default_rng(8)
    A = rng.random((rounds, *K.shape))
    losses = Linear(rng.standard_normal((rounds, *K.shape)))
    return tw.Stream(losses, Affine(A, A @ K.center - depth))


@pytest.mark.parametrize("kind", [tw.LyapunovDescent, SinhaVaze])
def test_seasons_that_exclude_each_other_are_proved_hopeless_by_what_was_paid(kind):
    """By turns x_0 <= 0.2 and x_0 >= 0.8, each kept by many points: most stays far above 0, and is
    less than what was paid.
    """
    T, K = 2000, Simplex(3)
    sign = np.where(np.arange(T) // 50 % 2, -1.0, 1.0)
    A = sign[:, None] * np.eye(3)[0]
    limits = Affine(A, np.where(sign > 0, 0.2, -0.8))
    stream = tw.Stream(Linear(np.tile([0.0, 0.1, 0.2], (T, 1))), limits)
    run = tw.run(kind(K, caution=100.0), stream)
    assert run.comparator.feasible is False
    dual = run.final_state.dual
    assert 0.0 < paid_at_most(K, dual.sums) < 0.9 * dual.paid
    assert run.learner.bound(run) == Bound(run.learner.bound(run).regret, None, saddle.HOPELESS)


@each_lyapunov
def test_one_absurd_breach_does_not_silence_the_losses(kind):
    """A breach beyond slope times diameter proves that no point kept that limit, and counts as no
    more, however large it is.
    """
    T, K = 100, Simplex(3)
    stream = hostile("switching", K, T, 0)
    shifts = 1e3 * np.eye(T)[5], 1e12 * np.eye(T)[5]
    A, b = stream.constraints.A, stream.constraints.b
    large, absurd = (tw.Stream(stream.losses, Affine(A, b - shift)) for shift in shifts)
    plays = [actions(kind(K, horizon=T), each) for each in (absurd, large)]
    np.testing.assert_array_equal(*plays)
    spoilt = tw.run(kind(K, horizon=T), absurd)
    assert spoilt.learner.bound(spoilt).reason == saddle.HOPELESS


@thinned(4, kind=LYAPUNOV, depth={f"{depth:g}": depth for depth in (1e3, 1e6, 1e15, 1e100)})
def test_hopeless_limits_never_overflow(kind, depth):
    K = CappedSimplex(5, 0.5)
    learner = kind(K, horizon=300)
    run = tw.run(learner, breached(K, 400, depth))
    assert run.max_infeasibility <= 1e-12
    assert np.isfinite(run.losses).all()
    bound = learner.bound(run)
    assert all(part is None or math.isfinite(part) for part in bound[:2])
    assert bound.reason or None not in bound[:2]
    tw.testing.check_learner(kind(K, horizon=500), breached(K, 5, depth))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [tw.LyapunovDescent, SinhaVaze])
def test_a_breach_that_no_decision_can_change_leaves_the_learner_alive(kind, dtype):
    """The only way passes a link over its capacity: rounding of its flat gradient must not swallow
    everything else.
    """
    K = FlowPolytope.examples()[4].to(np.zeros(1, dtype=dtype))
    names, capacity = ["s-m", "m-a", "m-b", "a-n", "b-n", "n-t"], np.full((400, 6), 2.0)
    capacity[:, names.index("n-t")] = 0.5
    costs = np.tile([0.0, 1.0, 0.0, 1.0, 0.0, 0.0], (400, 1))
    costs[200:] = costs[200:, [0, 2, 1, 4, 3, 5]]
    learner = kind(K, horizon=400, caution=0.1)
    x = actions(learner, tw.Stream(Linear(costs.astype(dtype)), Capacity(capacity.astype(dtype))))
    assert x[199, names.index("m-b")] > 0.9
    assert x[399, names.index("m-a")] > 0.9
