"""Bandit learners: laws, how they explore, estimates, units, horizons, thresholds, the frozen
regime, twins written plainly, learning.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theorems
import tidewolf as tw
from covering import few, thinned
from theorems import DIAMOND, SETS, SIZES, hostile
from tidewolf.core import errors, feedback, randomness
from tidewolf.functions import Affine, Linear
from tidewolf.learners import bandit_primal_dual
from tidewolf.learners.bandit_primal_dual import BanditPrimalDual, centred, combined, directions
from tidewolf.sets import Box, L2Ball, Shrunk, Simplex

FLAT_BOX, ONES = Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.0]), dict.fromkeys(SIZES, 1.0)


def played(learner, stream):
    """Every point played, one a row."""
    return np.concatenate([p.x for p in tw.play(learner, stream)])


# --- exploring ------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", SETS, ids=repr)
@given(first=st.integers(0, 5000), count=st.integers(1, 300), seed=st.integers(0, 2**40))
@settings(max_examples=5)
def test_directions_depend_on_their_round_alone_bit_for_bit(K, first, count, seed):
    many = directions(K, seed, first, count)
    assert many.shape == (count, *K.shape)
    for i in {0, count // 2, count - 1}:
        assert many[i].tobytes() == directions(K, seed, first + i, 1)[0].tobytes()
    if K.dimension:
        np.testing.assert_allclose(np.linalg.norm(many.reshape(count, -1), axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(K.tangent(many[0]), many[0], atol=1e-14)
        if K.dimension > 1:
            assert many[0].tobytes() != directions(K, seed + 1, first, 1)[0].tobytes()
            assert len({u.tobytes() for u in many}) == count
    else:
        assert not many.any()


@pytest.mark.parametrize("K", [Simplex(4), DIAMOND, FLAT_BOX, L2Ball((2, 2)), L2Ball(1)], ids=repr)
def test_directions_are_uniform_on_the_sphere_of_the_affine_hull(K):
    """Mean 0 and second moments P/n, P the projection on the directions of aff(K), within six
    standard deviations.
    """
    N, n, size = 8000, K.dimension, math.prod(K.shape)
    u = directions(K, 11, 0, N).reshape(N, size)
    P = np.array([K.tangent(e.reshape(K.shape)).reshape(-1) for e in np.eye(size)])
    assert np.abs(u.mean(axis=0)).max() <= 6.0 / math.sqrt(n * N)
    products = np.einsum("ti,tj->tij", u, u)
    spread = products.std(axis=0) / math.sqrt(N)
    assert (np.abs(products.mean(axis=0) - P / n) <= 6.0 * spread + 1e-12).all()
    assert np.trace(P) == pytest.approx(n)


@pytest.mark.parametrize("K", [Simplex(4), DIAMOND, FLAT_BOX], ids=repr)
@pytest.mark.parametrize("base", [0.0, 3.0, None])
def test_the_estimate_of_a_linear_functions_gradient_is_unbiased_with_any_base(K, base):
    N, n, mu, c = 8000, K.dimension, 0.1, np.arange(1.0, 1.0 + math.prod(K.shape))
    u = directions(K, 5, 0, N)
    values = (K.center + mu * u) @ c
    away = centred(values, 0.0, 0) if base is None else values - base
    each = (n / mu) * away[:, None] * u
    np.testing.assert_allclose(combined((n / mu) * away, u), each.sum(axis=0), rtol=1e-9, atol=1e-6)
    off = np.abs(each.mean(axis=0) - K.tangent(c))
    assert (off <= 6.0 * each.std(axis=0) / math.sqrt(N) + 1e-12).all()
    if base is None:
        assert each.std() < 0.5 * ((n / mu) * (values - 3.0)[:, None] * u).std()


@thinned(
    2,
    K={f"{i}-{K!r}": K for i, K in enumerate(SETS)},
    options={
        str(options): options
        for options in ({}, {"block": 1, "calls_per_round": 3.0}, {"calls_per_round": 0.05})
    },
)
def test_every_point_played_is_a_member_and_the_ball_around_x_is_inside(K, options):
    stream = hostile(K, 150, 3)
    for learner in (BanditPrimalDual(K, 100, **options), BanditPrimalDual(K, **options)):
        run = tw.run(learner, stream)
        assert run.max_infeasibility <= 1e-12
        assert run.oracle_calls <= learner.calls_per_round * 150
        state = learner.in_epoch(run.final_state)
        x, mu = state.point.x, learner.mu_for(state.epoch.horizon)
        assert all(K.infeasibility(x + mu * u) <= 1e-12 for u in directions(K, 99, 0, 50))
        assert K.dimension == 0 or mu > 0.0


# --- sessions -------------------------------------------------------------------------------------


# --- blocks, horizons, budgets, units -------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_grow_without_measure_never_overflow(dtype):
    """From the smallest numbers there are to the largest that are taken, within a run."""
    K, rng = Simplex(3).to(np.zeros(1, dtype=dtype)), np.random.default_rng(1)
    learner, growth = BanditPrimalDual(K, 90, block=3), np.logspace(-320, 99, 90)
    state = learner.start()
    for t in range(90):
        loss, breach = growth[t] * rng.uniform(-1.0, 1.0, 2)
        state = learner.update(state, feedback.Bandit(np.array([loss]), np.array([abs(breach)])))
        x = learner.act(state)
        assert np.isfinite(x).all()
        assert K.infeasibility(x) <= 1e-5


# --- twins written plainly ------------------------------------------------------------------------


def naive_practical(K, stream, T, seed):
    """`BanditPrimalDual(K, T)` one number at a time, but for the projection itself."""
    practical = BanditPrimalDual(K, T)
    b, (_, nu, theta, _) = practical.block_for(T), practical.steps(T)
    tol = 8.0 / (b - 4.0)
    n, r, R = K.dimension, K.inner_radius, K.radius
    mu = min(math.sqrt(n * r / R) / T**0.25 * R, r / 2)
    shrunk = Shrunk(K, 1 - mu / r)
    active, y, lam, points = tw.projection.ActiveSet.start(shrunk), K.center, 0.0, []
    oracle_budget, S, seen_f, seen_g = 0.0, 0.0, [], [0.0]
    last = ([], [])
    for first in range(0, T, b):
        M_f, M_g = (max(seen_f) - min(seen_f)) / 2 if seen_f else 1.0, max(seen_g)
        d, fs, gs = np.zeros(K.shape), [], []
        for t in range(first, min(first + b, T)):
            u = K.tangent(randomness.gaussian_rows(seed, "exploration", t, 1, len(K.center))[0])
            u = u / math.sqrt(u @ u)
            points.append(active.x + mu * u)
            f = float(stream.losses.C[t] @ points[-1])
            g = max(0.0, float(stream.constraints.A[t] @ points[-1] - stream.constraints.b[t]))
            before_f, before_g = last[0] + fs, last[1] + gs
            if before_f:
                d = d + (n / mu) * (f - np.mean(before_f)) * u
                if lam > 0:
                    d = d + (n / mu) * lam * (M_f / M_g) * (g - np.mean(before_g)) * u
            fs.append(f)
            gs.append(g)
        last, seen_f, seen_g = (fs, gs), seen_f + fs, seen_g + gs
        S += d @ d
        y = y - 2 * shrunk.radius / math.sqrt(2 * S) * d
        away = np.linalg.norm(y - K.center)
        y = K.center + (y - K.center) * min(1.0, shrunk.radius / away)
        lam = max(0.0, lam + nu * (sum(gs) / (max(seen_g) or 1.0) - len(gs) * theta * lam))
        oracle_budget += len(fs)
        _, y, calls, distance2, active = active.nearest(shrunk, y, tol * R**2, oracle_budget)
        oracle_budget -= calls
        if distance2 > (mu / 4) ** 2 and oracle_budget >= 1:
            _, y, calls, _, active = active.nearest(shrunk, y, (mu / 4) ** 2, oracle_budget)
            oracle_budget -= calls
    return points


@pytest.mark.parametrize("K", [DIAMOND, FLAT_BOX, L2Ball(3)], ids=repr)
def test_the_practical_learner_is_what_its_file_says_written_plainly(K):
    T, stream = 700, hostile(K, 700, 9)
    learner = BanditPrimalDual(K, T, seed=2)
    ours = played(learner, stream)
    *_, end = tw.play(learner, stream)
    assert end.state.lam > 0.0
    assert end.state.calls > 0
    assert np.ptp(ours, axis=0).max() > 0.1
    # searches that stop amplify rounding
    np.testing.assert_allclose(ours, naive_practical(K, stream, T, 2), atol=1e-6)


def naive_theorem(K, stream, T, start, G):
    """Algorithm 5 as it is printed, errata applied, in the hurry of the test below."""
    n, r, R, b = K.dimension, K.inner_radius, K.radius, math.isqrt(T)
    mu, eta = math.sqrt(n * r) * T**-0.25, 20.0 * R / (math.sqrt(n) * G) * T**-0.75
    shape = max(n / r, n / math.sqrt(r), math.sqrt(n), n / (math.sqrt(r) * R))
    delta = 24 * math.sqrt(183) * G**2 * shape * math.sqrt(T) * math.sqrt(math.log(T)) / 1e4
    tol = 3 * 61 * R**2 / math.sqrt(T) * math.log(T) / 1000.0
    shrunk, x, y, lam, points = Shrunk(K, 1 - mu / r), start, start, 0.0, []
    for first in range(0, T, b):
        grad_x, grad_lam = np.zeros(K.shape), 0.0
        for t in range(first, min(first + b, T)):
            u = K.tangent(randomness.gaussian_rows(0, "exploration", t, 1, len(x))[0])
            u = u / math.sqrt(u @ u)
            z = x + mu * u
            points.append(z)
            breach = max(0.0, float(stream.constraints.A[t] @ z - stream.constraints.b[t]))
            grad_x = grad_x + (n / mu) * (stream.losses.C[t] @ z + lam * breach) * u
            grad_lam += breach - delta * eta * lam
        y = y - eta * grad_x
        y = K.center + (y - K.center) * min(1.0, R / np.linalg.norm(y - K.center))
        lam = max(0.0, lam + eta * grad_lam)
        x, y, _, _ = tw.projection.afp_paper(shrunk, y, x, tol=tol)
    return points


@pytest.mark.parametrize("K", [L2Ball(3), Simplex(3, total=2.0)], ids=repr)
def test_the_theorem_is_algorithm_5_written_plainly(K):
    """With an eps a thousand times finer, longer steps and less damping, so that something happens
    in a short run.
    """
    T, G = 500, 4.0
    stream, start = hostile(K, T, 9), K.center + 0.1 * K.tangent(np.array([0.0, 1.0, 0.0]))
    theorem = theorems.bandit_primal_dual(K, T, 1.0, 1.0, G, 3.0, start=start)
    eps, delta = theorem.eps / 1000, theorem.delta / 1e4
    learner = replace(theorem, eps=eps, eta=20.0 * theorem.eta, delta=delta)
    ours, theirs = played(learner, stream), naive_theorem(K, stream, T, start, G)
    centers = ours - learner.mu * directions(K, 0, 0, T)
    assert np.ptp(centers, axis=0).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


# --- the theorem ----------------------------------------------------------------------------------


def test_too_short_to_explore_is_refused_with_the_horizon_it_takes():
    with pytest.raises(errors.InvalidInput, match=r"mu of .* = 320 on\."):
        BanditPrimalDual.theorem(Simplex(5), horizon=319, **ONES)
    for n, r in ((4, math.sqrt(1 / 20)), (2, 1.0), (7, 0.3), (1, 0.7)):
        least = bandit_primal_dual.explorable_from(r, n)
        assert math.sqrt(n * r) * least**-0.25 <= r * (1 + 1e-12)
        assert least == 1 or math.sqrt(n * r) * (least - 1) ** -0.25 > r * (1 + 1e-12)
    with pytest.warns(errors.FrozenRegime):
        # mu = r: nothing but the center has room around it
        learner = BanditPrimalDual.theorem(L2Ball(2), horizon=4, **ONES)
    assert tw.run(learner, hostile(L2Ball(2), 4, 0)).max_infeasibility <= 1e-12
    with pytest.raises(errors.NotAMember, match=r"shrunk by 1 - mu/r = 0\.5"):
        BanditPrimalDual.theorem(L2Ball(1), horizon=16, **ONES, start=[0.6])


def test_thresholds_are_found_by_brute_force_too(monkeypatch):
    """On a set so small, for its inner radius, that every horizon up to the threshold can be
    tried.
    """
    monkeypatch.setattr(L2Ball, "inner_radius", 1.0)
    small = BanditPrimalDual(L2Ball(40, 1e-4), **ONES)
    T = small.theorem_horizon()
    tried = (k for k in range(9, 4 * T + 5000) if not small.theorem_holds(k))
    assert max([bandit_primal_dual.explorable_from(1.0, 40) - 1, 8, *tried]) + 1 == T
    assert BanditPrimalDual(L2Ball(1), **ONES).theorem_horizon() == pytest.approx(9.92e6, rel=1e-3)


# --- promises and learning ------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", few(1, [1, 4]))
def test_what_is_measured_on_average_stays_below_the_promise(seeds):
    """On a hostile stream whose promise is below the trivial; the comparator by hand: the best
    feasible point of a disc.
    """
    K, T = L2Ball(2), 30_000
    signs = np.where(np.arange(T) // 997 % 2, -1.0, 1.0)[:, None]
    C = 0.8 * np.array([1.0, 0.0]) + 0.6 * signs * np.array([0.0, 1.0])
    # x_1 >= 0, against the loss
    stream = tw.Stream(Linear(C), Affine(np.broadcast_to([-1.0, 0.0], (T, 2)), np.zeros(T)))
    guarantee = BanditPrimalDual(K, T, **ONES).guarantee()
    runs = [tw.run(BanditPrimalDual(K, T, **ONES, seed=seed), stream) for seed in range(seeds)]
    total = C.sum(axis=0)
    best = min(float(total @ z) for z in ([0.0, 1.0], [0.0, -1.0], [0.0, 0.0]))
    assert guarantee.regret < 2.0 * T
    assert np.mean([run.losses.sum() - best for run in runs]) <= guarantee.regret
    assert 0.0 < np.mean([run.violations.sum() for run in runs]) <= guarantee.violation


def test_it_learns_from_values_alone_and_keeps_a_limit():
    """The loss wants all of one entry, of which a limit allows little."""
    K, T = Simplex(5), 15_000
    C = np.array([1.0, 0.5, 0.0, 0.7, 0.9]) + 0.3 * np.random.default_rng(0).standard_normal((T, 5))
    limit = Affine(np.broadcast_to([0.0, 0.0, 1.0, 0.0, 0.0], (T, 5)), np.full(T, 0.3))
    heedless = played(BanditPrimalDual(K, T), tw.Stream(Linear(C), Affine(0.0 * C, np.zeros(T))))
    losses = (C * heedless).sum(axis=1)
    assert losses[-T // 4 :].mean() < losses[: T // 4].mean() - 0.01
    assert losses[-T // 4 :].mean() < 0.5 * float((C @ K.center).mean())
    run = tw.run(BanditPrimalDual(K, T), tw.Stream(Linear(C), limit))
    broken = np.maximum(limit.values_at(heedless), 0.0)
    assert run.violations[-T // 4 :].mean() < 0.6 * broken[-T // 4 :].mean()
    assert run.final_state.lam > 0.0


@pytest.mark.parametrize(
    ("losses", "constraints", "error", "named"),
    [
        (np.ones(2), np.ones(1), errors.WrongShape, "constraint_values"),
        (np.ones((1, 1)), np.ones((1, 1)), errors.WrongShape, "loss_values"),
        (np.ones(9), np.ones(9), errors.InvalidInput, "rounds .* not 9"),
        (np.ones(0), np.ones(0), errors.InvalidInput, "rounds .* not 0"),
        (np.array([1.0, np.nan]), np.ones(2), errors.NotFinite, "loss_values"),
        (np.ones(1), np.array([-1e101]), errors.NotFinite, "constraint_values"),
        (1.0, 1.0, errors.WrongType, "loss_values"),
        (np.array([3.0]), np.ones(1), errors.InvalidInput, "loss_size"),
        (np.ones(1), np.array([-5.0]), errors.InvalidInput, "constraint_size"),
    ],
)
def test_bad_feedback_is_refused_and_named(losses, constraints, error, named):
    learner = BanditPrimalDual(DIAMOND, 50, block=4, loss_size=2.0, constraint_size=4.0)
    with pytest.raises(error, match=named):
        learner.update(learner.start(), feedback.Bandit(losses, constraints))
    with pytest.raises(errors.InvalidInput, match="at most 4"):
        learner.acts(learner.start(), 9)


def test_past_the_horizon_it_explores_less_far():
    """That it restarts is in test_theorems.py."""
    learner, stream = BanditPrimalDual(L2Ball(3), horizon=200), hostile(L2Ball(3), 200, 0)
    *_, last = tw.play(learner, stream)
    before, after = last.state, learner.in_epoch(last.state)
    assert (before.t, after.t, after.lam, after.square_sum) == (200, 200, 0.0, 0.0)
    farther, nearer = (learner.mu_for(one.epoch.horizon) for one in (before, after))
    assert farther == pytest.approx(2.0**0.25 * nearer)
    np.testing.assert_allclose(after.point.x, before.point.x, atol=1e-15)
