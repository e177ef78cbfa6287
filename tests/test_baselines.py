"""Exact projections: against enumeration, against sets' own methods, and by the variational
inequality; and each rival by its formulas.
"""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from covering import few
from polytopes import layered
from test_learner_bounds import actions
from tidewolf import baselines, sets
from tidewolf.core.errors import NotSupported, SolverFailed
from tidewolf.core.feedback import FullInformation
from tidewolf.functions import Affine, Capacity, Chain, Linear, Quadratic
from tidewolf.hindsight.best_point import BestPoint
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.sets import FlowPolytope, Simplex
from tidewolf.sets.base import membership_tolerance
from tidewolf.sets.highs import WarmModel
from tidewolf.testing.learners import hostile_stream

seeds = st.integers(0, 2**32)
SETS = {f"{kind.__name__}-{i}": K for kind in sets.every() for i, K in enumerate(kind.examples())}
DESCRIBED = {name: K for name, K in SETS.items() if isinstance(K, sets.Polyhedral)}


def first(cases):
    """The first example of each kind, all of them in the long run."""
    return [
        pytest.param(K, id=name, marks=() if name.endswith("-0") else pytest.mark.soak)
        for name, K in cases.items()
    ]


def by_faces(points, y):
    """The nearest point of a hull: the best projection on the affine hull of a subset that has
    nonnegative weights.
    """
    best, nearest = math.inf, points[0]
    for size in range(1, len(points) + 1):
        for chosen in itertools.combinations(points, size):
            base, edges = chosen[0], np.array(chosen[1:]).reshape(-1, len(y)) - chosen[0]
            w = np.linalg.lstsq(edges.T, y - base, rcond=None)[0] if size > 1 else np.zeros(0)
            p = base + w @ edges
            if (w >= -1e-12).all() and w.sum() <= 1 + 1e-12 and np.linalg.norm(p - y) < best:
                best, nearest = float(np.linalg.norm(p - y)), p
    return nearest


def program(K, y):
    """The projection by the quadratic program, whether or not the set has its own."""
    return ExactProjection(K)._quadratic_program(y.reshape(-1)).reshape(K.shape)


@given(seed=seeds, k=st.integers(1, 6), n=st.integers(1, 3), far=st.sampled_from([0.1, 1.0, 100.0]))
@settings(max_examples=30)
def test_the_projection_on_a_hull_is_the_best_over_its_faces(seed, k, n, far):
    rng = np.random.default_rng(seed)
    points, y = rng.integers(-2, 3, (k, n)).astype(float), far * rng.standard_normal(n)
    best = by_faces(points, y)
    for size in (1.0, 1e-6, 1e5):
        ours = ExactProjection(sets.VertexHull(size * points))(size * y) / size
        np.testing.assert_allclose(ours, best, atol=2e-5)
        assert np.linalg.norm(ours - y) <= np.linalg.norm(best - y) + 1e-9


@pytest.mark.parametrize("K", first(SETS))
def test_a_sets_own_projection_is_used_if_there_is_one(K, monkeypatch):
    y = K.center + np.random.default_rng(0).standard_normal(K.shape)
    if isinstance(K, sets.Projectable):
        monkeypatch.setattr(ExactProjection, "_quadratic_program", None)
        np.testing.assert_array_equal(ExactProjection(K)(y), K.project(y))
    elif not isinstance(K, sets.Polyhedral):
        with pytest.raises(NotSupported, match=type(K).__name__):
            ExactProjection(K)
    else:
        np.testing.assert_array_equal(ExactProjection(K)(y), program(K, y))


BOX, AT_MOST = sets.Box([-1.0, 0.0], [1.0, 3.0]), Simplex(3, 2.0, at_most=True)


@pytest.mark.parametrize("K", [BOX, AT_MOST, sets.CappedSimplex(5, 0.4)])
@given(seed=seeds, far=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=10)
def test_the_program_agrees_with_the_sets_own_projection(K, seed, far):
    y = K.center + far * np.random.default_rng(seed).standard_normal(K.shape)
    for image in (K, sets.Translated(K, np.arange(1.0, 1.0 + K.shape[0])), sets.Shrunk(K, 0.3)):
        np.testing.assert_allclose(program(image, y), image.project(y), atol=1e-6)


MEMBERS = DESCRIBED | {"layers": layered(4, 6), "long": layered(19, 4)}


@pytest.mark.parametrize("K", MEMBERS.values(), ids=MEMBERS.keys())
def test_no_member_is_nearer_and_the_answer_depends_on_the_question_alone(K):
    """<y - p, v - p> <= 0 at the member v for which it is largest."""
    rng, P, asked = np.random.default_rng(1), ExactProjection(K), []
    for far in (0.0, 1e-3, 0.3, 1.0, 30.0):
        y = K.center + far * rng.standard_normal(K.shape)
        p = P(y)
        assert K.infeasibility(p) <= max(1e-12, membership_tolerance(p, K.radius))
        largest = float(np.vdot(y - p, K.lmo(p - y) - p))
        assert largest <= 1e-7 * max(1.0, float(np.linalg.norm(y - p)))
        asked.append((y, p))
    for y, p in reversed(asked):
        np.testing.assert_array_equal(P(y), p)
    np.testing.assert_array_equal(ExactProjection(K)(asked[-1][0]), asked[-1][1])


def test_a_rival_that_has_played_can_be_copied_and_sent():
    learner, stream = baselines.SinhaVaze(FlowPolytope.examples()[0]), hostile_stream(DIAMOND, 5, 0)
    played = tw.run(learner, stream)
    for again in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert again == learner
        np.testing.assert_array_equal(tw.run(again, stream).losses, played.losses)


# --- the other rivals -----------------------------------------------------------------------------

DIAMOND = FlowPolytope.examples()[0]
SWEPT = [
    baselines.OnlineFrankWolfe, baselines.ProjectedPrimalDual, baselines.ProximalPenalty,
    baselines.SinhaVaze, baselines.WangWanZhang,
]  # fmt: skip


def slopes_at(K, stream, t, x):
    """grad f_t and grad g_t^+ within aff(K), and the breach."""
    losses, constraints = stream.losses[t : t + 1], stream.constraints[t : t + 1]
    breach = max(0.0, float(constraints.values(x)[0]))
    grad_f, grad_g = losses.subgradient(x, np.ones(1)), constraints.subgradient(x, np.ones(1))
    return K.tangent(grad_f), K.tangent(grad_g) if breach > 0 else 0.0 * grad_g, breach


def naive_frank_wolfe(K, stream, weights):
    """Online Frank-Wolfe with a doubling guess, written plainly, and its regret bound; weights(G_f,
    G_g, violation so far).
    """
    x, total, guess, age, played = K.center, 0.0 * K.center, 0.0, 0, []
    T, G_f, G_g, Q, B = len(stream), 0.0, 0.0, 0.0, 0.0
    for t in range(T):
        played.append(x)
        grad_f, grad_g, breach = slopes_at(K, stream, t, x)
        G_f, G_g, Q = max(G_f, np.linalg.norm(grad_f)), max(G_g, np.linalg.norm(grad_g)), Q + breach
        V, w = weights(G_f, G_g, Q) if breach > 0 else (weights(1.0, 1.0, 0.0)[0], 0.0)
        g = V * grad_f + w * grad_g
        if np.linalg.norm(g) > guess:
            guess = guess or np.linalg.norm(g)
            while guess < np.linalg.norm(g):
                guess = 2 * guess
            total, age, B = 0.0 * x, 0, B + 2 * guess * T**0.75 * K.diameter
        total, age, B = total + g, age + 1, B - w * breach
        if guess > 0:
            slope = K.diameter / (2 * guess * T**0.75) * total + 2 * (x - K.center)
            v = K.lmo(slope)
            B += np.linalg.norm(g) * min(K.diameter, math.sqrt(slope @ (x - v)))
            x = x + min(1.0, 2 / math.sqrt(age)) * (v - x)
    return np.array(played), B / V


@pytest.mark.parametrize("seed", few(1, [0, 1, 2]))
@pytest.mark.parametrize("K", [DIAMOND, sets.L2Ball(3)], ids=repr)
def test_frank_wolfe_rivals_agree_with_their_formulas_written_plainly(K, seed):
    T = 150
    stream = hostile_stream(K, T, seed)
    for caution in (0.01, 10.0):

        def weights(G_f, G_g, Q, caution=caution):
            s = 0.5 * T**-0.75
            return T**-0.75 / caution, G_f / G_g * s * math.exp(s * Q / (64 * G_g * K.diameter))

        def prices(G_f, G_g, Q, caution=caution):
            return 1.0, caution / 2 * G_f / G_g

        for learner, weigh in (
            (baselines.WangWanZhang(K, horizon=T, caution=caution), weights),
            (baselines.OnlineFrankWolfe(K, horizon=T, caution=caution), prices),
            (baselines.OnlineFrankWolfe.blind(K, horizon=T), lambda G_f, G_g, Q: (1.0, 0.0)),
        ):
            plain, bound = naive_frank_wolfe(K, stream, weigh)
            np.testing.assert_allclose(actions(learner, stream), plain, atol=1e-9)
            if isinstance(learner, baselines.OnlineFrankWolfe):
                found = learner.bound(tw.run(learner, stream))
                assert found.regret == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("kind", [baselines.OnlineFrankWolfe, baselines.WangWanZhang])
def test_frank_wolfe_rivals_make_one_call_a_round(kind):
    run = tw.run(kind(DIAMOND, horizon=50), hostile_stream(DIAMOND, 60, 1))
    first = int(np.flatnonzero(run.calls)[0])
    assert run.calls.tolist() == [0] * first + [1] * (60 - first)
    still = tw.Stream(Linear(np.zeros((5, 5))), Capacity(np.full((5, 5), 9.0)))
    assert tw.run(kind(DIAMOND, horizon=50), still).oracle_calls == 0


def naive_primal_dual(K, stream, caution):
    x, lam, G_f, G_g, T, R, played = K.center, 0.0, 0.0, 0.0, len(stream), K.radius, []
    eta, nu = 1 / math.sqrt(2 * T), caution / 10 / (2 * math.sqrt(T))
    theta = min(np.roots([1 / (4 * math.sqrt(T)), -0.5, eta])) / (caution / 10)
    for t in range(T):
        played.append(x)
        grad_f, grad_g, breach = slopes_at(K, stream, t, x)
        G_f, G_g = max(G_f, np.linalg.norm(grad_f)), max(G_g, np.linalg.norm(grad_g))
        x = ExactProjection(K)(x - eta * R * (grad_f / (G_f or 1) + lam * grad_g / (G_g or 1)))
        lam = max(0.0, lam + nu * (min(breach / (R * (G_g or 1)), K.diameter / R) - theta * lam))
    return np.array(played)


@pytest.mark.parametrize(("K", "caution"), [(DIAMOND, 1.0), (DIAMOND, 300.0), (Simplex(4), 10.0)])
def test_the_primal_dual_rival_agrees_with_its_formulas_written_plainly(K, caution):
    stream = hostile_stream(K, 80, 2)
    ours = actions(baselines.ProjectedPrimalDual(K, horizon=80, caution=caution), stream)
    np.testing.assert_allclose(ours, naive_primal_dual(K, stream, caution), atol=1e-6)


def naive_proximal_penalty(K, stream, caution):
    """One half-space a round: the step's multiplier by halving."""
    x, G_f, G_g, R, played = K.center, 0.0, 0.0, K.radius, []
    k = caution / 10 * math.sqrt(len(stream))
    for C, A, b in zip(stream.losses.C, stream.constraints.A, stream.constraints.b, strict=True):
        played.append(x)
        d, a = K.tangent(C), K.tangent(A)
        G_f, G_g = max(G_f, np.linalg.norm(d)), max(G_g, np.linalg.norm(a))

        def step(mu, x=x, d=d / (G_f or 1), a=a):
            away = x - (d + mu * a) * 2 * R / k - K.center
            return K.center + min(1.0, R / np.linalg.norm(away)) * away

        low, high = 0.0, k / G_g
        for _ in range(100):
            mu = (low + high) / 2
            low, high = (mu, high) if A @ step(mu) > b else (low, mu)
        x = ExactProjection(K)(step(low))
    return np.array(played)


FLAT = sets.Box([-1.0, 0.0, 0.0], [1.0, 2.0, 0.5])


@pytest.mark.parametrize(("K", "caution"), [(FLAT, 1.0), (FLAT, 100.0), (Simplex(4), 10.0)])
def test_the_proximal_rival_agrees_with_its_formulas_written_plainly(K, caution):
    stream = hostile_stream(K, 60, 2)
    learner = baselines.ProximalPenalty(K, horizon=60, caution=caution)
    ours, plain = actions(learner, stream), naive_proximal_penalty(K, stream, caution)
    np.testing.assert_allclose(ours, plain, atol=1e-4 * K.radius)
    slopes = [np.linalg.norm(slopes_at(K, stream, t, x)[1]) for t, x in enumerate(ours)]
    spread = np.sum(np.square(slopes)) / (caution / 10 * math.sqrt(60) / (2 * K.radius))
    assert tw.run(learner, stream).final_state.tally.spread == pytest.approx(spread)


def test_published_settings():
    assert baselines.SinhaVaze.published(Simplex(3), horizon=100).caution == pytest.approx(0.1)
    assert baselines.WangWanZhang.published(DIAMOND, horizon=16).caution == pytest.approx(16**-0.75)
    steps = baselines.ProjectedPrimalDual.published(DIAMOND, horizon=10_000)._steps(10_000)
    assert (steps.nu, steps.eta) == pytest.approx((0.01, 0.01 / math.sqrt(2)))
    assert steps.theta == pytest.approx(0.01 / math.sqrt(2), rel=0.01)
    plain = baselines.ProximalPenalty(DIAMOND, horizon=9, caution=10.0)
    assert baselines.ProximalPenalty.published(DIAMOND, horizon=9) == plain
    assert baselines.OnlineFrankWolfe.blind(DIAMOND).caution == 0.0


@pytest.mark.parametrize("kind", SWEPT)
def test_caution_moves_violation_down_and_losses_up(kind):
    problem = tw.problems.routing(rounds=200)
    cautions = (10.0, 1000.0) if kind is baselines.ProximalPenalty else (0.1, 10.0)
    runs = (tw.run(kind(problem.K, horizon=200, caution=c), problem.stream) for c in cautions)
    bold, careful = runs
    assert careful.violations.sum() < bold.violations.sum()
    assert careful.losses.sum() >= bold.losses.sum()


def test_resolving_promises_nothing_and_refuses_what_makes_no_linear_program():
    kind = tw.baselines.Resolve
    one, curved = Linear(np.ones((1, 3))), Quadratic(np.eye(3), np.ones((1, 3)))
    with pytest.raises(NotSupported, match=rf"{kind.__name__} .* L2Ball"):
        kind(sets.L2Ball(3))
    learner = kind(Simplex(3), horizon=100)
    for functions in ((curved, one), (one, Chain((curved,)))):
        with pytest.raises(NotSupported, match=rf"{kind.__name__} .* Quadratic"):
            learner.update(learner.start(), FullInformation(*functions))
    run = tw.run(kind(DIAMOND, horizon=10), hostile_stream(DIAMOND, 20, 0))
    regret, violation, reason = run.learner.bound(run)
    assert regret is violation is None
    assert reason
    assert run.oracle_calls == 0


def test_clasp_projects_on_the_set_and_the_last_constraint():
    """By the reference of a projection on the polytope that both are."""
    K, rng = Simplex(4), np.random.default_rng(5)
    learner = tw.baselines.CLASP(K)
    state, G = learner.start(), 0.0
    for t in range(1, 6):
        c, room = rng.standard_normal(4), rng.uniform(0.3, 0.6, 4)
        g = K.tangent(c)
        G = max(G, float(np.linalg.norm(g)))
        y = learner.act(state) - K.diameter / G / np.sqrt(t) * g
        both = sets.Polytope(A_eq=np.ones((1, 4)), b_eq=[1.0], bounds=[(0.0, r) for r in room])
        state = learner.update(state, FullInformation(Linear.one(c), Capacity.one(room)))
        np.testing.assert_allclose(learner.act(state), ExactProjection(both)(y), atol=1e-6)
    # no point has both entries below 0.2; that it is said twice of the first changes nothing
    learner = tw.baselines.CLASP(Simplex(2))
    limits = tw.functions.MaxAffine([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], [[0.2, 0.2, 0.2]])
    state = learner.update(learner.start(), FullInformation(Linear.one([1.0, 0.0]), limits))
    np.testing.assert_allclose(learner.act(state), [0.5, 0.5], atol=1e-6)


# --- linear programs ------------------------------------------------------------------------------


def test_an_answer_that_is_a_member_up_to_tolerances_is_projected(monkeypatch):
    solve = WarmModel.__call__
    off = lambda found: found._replace(v=found.v + 1e-8)  # noqa: E731
    monkeypatch.setattr(WarmModel, "__call__", lambda model, *given: off(solve(model, *given)))
    for K in (DIAMOND, Simplex(3)):
        limits = Capacity(np.full((1, *K.shape), 0.7))
        x = BestPoint(K, "A test")(Linear(np.arange(1.0, 1.0 + K.shape[0])[None]), limits)
        assert K.infeasibility(x) <= membership_tolerance(x, K.radius)


def test_rounds_of_several_kinds_make_one_program():
    K, c = Simplex(3), np.array([-1.0, -2.0, -3.0])
    limits = Chain((Capacity.one([1.0, 1.0, 0.5]), Affine.one([0.0, 1.0, 1.0], 0.7)))
    x = BestPoint(K, "A test")(Chain((Linear.one(c), Affine.one(c, 2.0))), limits)
    np.testing.assert_allclose(x, [0.3, 0.2, 0.5], atol=1e-9)


def test_a_program_that_is_not_solved_is_named(monkeypatch):
    best = BestPoint(Simplex(3), "A test")
    monkeypatch.setattr(WarmModel, "__call__", lambda model, *question: None)
    with pytest.raises(SolverFailed, match=r"HiGHS .* Simplex"):
        best(Linear(np.ones((1, 3))), Capacity(np.ones((1, 3))))
    P = ExactProjection(FlowPolytope.examples()[0])
    P._solver.settings.max_iter = 1
    with pytest.raises(SolverFailed, match=r"PIQP .* FlowPolytope"):
        P(np.ones(5))


def test_a_projection_that_stalls_counts_where_the_oracle_proves_it_near():
    """The lift of spanning trees is degenerate: the solver stops short of its accuracy now and
    then, with a good answer.
    """
    K = sets.SpanningTrees.examples()[4]
    project, rng = ExactProjection(K), np.random.default_rng(0)
    for _ in range(40):
        y = K.center + K.radius * rng.normal(size=K.shape) * 10 ** rng.uniform(-4.0, 1.0)
        x = project(y)
        assert K.infeasibility(x) <= 1e-12
        assert (x - y) @ (x - K.lmo(x - y)) <= 1e-11 * (K.radius**2 + (x - y) @ (x - y))
