"""What the paper's three learners share: laws with the theorems' constants, blocks, horizons."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theorems
import tidewolf as tw
from covering import thinned
from refused import refused
from theorems import DIAMOND, HULL, POINT, SETS, hostile
from tidewolf import BanditPrimalDual, DriftPlusPenalty, PrimalDual
from tidewolf.core import errors
from tidewolf.core.errors import FrozenRegime, InvalidInput, ShortHorizon, TidewolfError
from tidewolf.experiments import load
from tidewolf.functions import Affine, Linear
from tidewolf.methods import paper
from tidewolf.methods.paper import ProjectedPoint
from tidewolf.methods.steps.saddle import HOPELESS, damping, unit_free_steps
from tidewolf.service.models import Description
from tidewolf.sets import CappedSimplex, L2Ball, Simplex
from tidewolf.testing import check_learner
from tidewolf.testing.learners import hostile_stream

KINDS = [PrimalDual, DriftPlusPenalty, BanditPrimalDual]
each_kind = pytest.mark.parametrize("kind", KINDS)


@thinned(3, number={f"{i}-{K!r}": i for i, K in enumerate(SETS)}, kind=KINDS)
def test_the_laws_hold_for_the_theorems_learners_on_every_set(kind, number):
    found = theorems.examples(kind, SETS[number], 20)
    learner = found[number % len(found)]
    check_learner(learner, hostile_stream(learner.K, 13, number))


@each_kind
def test_the_last_block_is_ragged_and_costs_no_call(kind):
    learner = kind(DIAMOND, horizon=100, block=30, calls_per_round=2.0)
    played = list(tw.play(learner, theorems.hostile(DIAMOND, 100, 0)))
    assert [p.state.t for p in played] == [30, 60, 90, 100]
    assert played[-1].state.calls == played[-2].state.calls > 0
    assert played[-1].state.oracle_budget == 200.0 - played[-1].state.calls


@each_kind
def test_past_the_horizon_it_restarts_with_twice_as_much_and_says_so(kind):
    learner = kind(DIAMOND, horizon=20)
    run = tw.run(learner, theorems.hostile(DIAMOND, 70, 0))
    assert run.final_state.epoch[:2] == (60, 80)
    (note,) = run.notes
    assert all(number in note for number in ("20", "60", "80"))
    assert tw.run(learner, theorems.hostile(DIAMOND, 20, 0)).notes == ()
    unknown = tw.run(kind(DIAMOND), theorems.hostile(DIAMOND, 300, 0))
    assert (unknown.final_state.epoch[:2], unknown.notes) == ((256, 512), ())


@each_kind
@given(seed=st.integers(0, 2**32), calls=st.sampled_from([0.3, 1.0, 3.7]))
@settings(max_examples=3)
def test_the_budget_always_reaches_the_tolerance_and_what_is_left_refines(kind, seed, calls):
    K, T = (Simplex(4), DIAMOND, CappedSimplex(6, 0.5))[seed % 3], 900
    learner = kind(K, T, calls)
    run = tw.run(learner, theorems.hostile(K, T, seed))
    tol = 8.0 / (calls * learner.block_for(T) - 4.0)
    assert run.distances.max() <= np.sqrt(tol) * K.radius * (1.0 + 1e-9)
    assert run.oracle_calls <= calls * T
    if calls >= 1.0:
        assert run.distances[-1] ** 2 <= max(learner.finest2(T), 1e-3 * K.radius**2) * (1 + 1e-9)


# --- the theorems' constants ----------------------------------------------------------------------

MAKE = (theorems.primal_dual, theorems.drift_plus_penalty, theorems.bandit_primal_dual)
MAKE = dict(zip(KINDS, MAKE, strict=True))


def sizes_of(kind, size):
    return dict.fromkeys(theorems.SIZES if kind is BanditPrimalDual else theorems.SLOPES, size)


@pytest.mark.parametrize("K", [L2Ball(3), DIAMOND], ids=repr)
@each_kind
def test_an_eps_too_large_moves_nothing_calls_no_oracle_and_a_warning_names_it(kind, K):
    with pytest.warns(FrozenRegime, match=r"^eps = .* horizon of 8529325 on\."):
        learner = kind.theorem(K, horizon=2000, **sizes_of(kind, 2.0))
    run = tw.run(learner, theorems.hostile(K, 2000, 0))
    assert run.oracle_calls == 0
    assert run.final_state.point.x.tobytes() == K.center.tobytes()
    if kind is not DriftPlusPenalty:
        assert len(run.notes) == 2
        assert str(learner.theorem_horizon()) in run.notes[1]
        assert learner.guarantee() == (None, None, " ".join(run.notes))


@pytest.mark.parametrize("kind", [PrimalDual, DriftPlusPenalty])
def test_beyond_that_it_moves_and_only_the_condition_is_missing(kind):
    K, T, start = L2Ball(3), 400_000, np.array([1.0, 0.0, 0.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = kind.theorem(K, horizon=T, start=start, **sizes_of(kind, 1.0))
    assert [w.category for w in caught] == ([ShortHorizon] if kind is PrimalDual else [])
    C, A = np.broadcast_to([1.0, 0.0, 0.0], (T, 3)), np.broadcast_to([0.0, 1.0, 0.0], (T, 3))
    run = tw.run(learner, tw.Stream(Linear(C), Affine(A, np.zeros(T))))
    assert 0 < run.oracle_calls <= T
    assert run.final_state.point.x[0] < 0.99
    assert run.max_infeasibility <= 1e-12
    assert run.losses.sum() + T <= run.bound.regret
    if kind is DriftPlusPenalty:
        assert run.bound.regret <= learner.guarantee().regret
        assert run.bound.violation <= learner.guarantee().violation


@pytest.mark.parametrize("kind", [PrimalDual, BanditPrimalDual])
def test_where_the_condition_holds_there_is_a_guarantee_and_no_warning(kind):
    """Its formula is in test_methods.py."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = kind.theorem(Simplex(3), horizon=10**9, **sizes_of(kind, 1.0))
    assert learner.notes(learner.start()) == ()
    assert None not in learner.guarantee()[:2]
    # less damping breaks the condition of the same theorem
    assert replace(learner, delta=learner.delta / 1e4).guarantee()[:2] == (None, None)


@each_kind
def test_a_guarantee_that_cannot_be_made_says_why(kind):
    unknown, short = kind(DIAMOND, 10**6), kind(DIAMOND, 50, 0.1, **sizes_of(kind, 1.0))
    for learner, named in ((unknown, "loss_lipschitz"), (short, "locks of ")):
        assert learner.guarantee()[:2] == (None, None)
        assert named in learner.guarantee().reason
    assert MAKE[BanditPrimalDual](POINT, 10, 1.0, 1.0, 1.0, 1.0).guarantee() == (0.0, 0.0, "")


# --- the settings as printed ----------------------------------------------------------------------

PRINTED = "block eta delta eps", "block alpha delta eps", "block eta delta mu eps"
PRINTED = dict(zip(KINDS, map(str.split, PRINTED), strict=True))


def points(learner, stream):
    return b"".join(p.x.tobytes() for p in tw.play(learner, stream))


@each_kind
def test_the_theorems_values_given_one_by_one_are_the_theorem_bit_for_bit(kind):
    """And another eps moves the point that the theorem's leaves where it is."""
    sizes = (2.0,) * (4 if kind is BanditPrimalDual else 2)
    theorem, stream = MAKE[kind](DIAMOND, 400, *sizes), theorems.hostile(DIAMOND, 400, 0)
    values = {name: getattr(theorem, name) for name in PRINTED[kind]}
    given = dict(zip(theorems.SIZES, sizes, strict=False))
    again = kind(DIAMOND, horizon=400, **given, **values)
    assert again == theorem == replace(theorem, eps=theorem.eps)
    assert points(again, stream) == points(theorem, stream)
    finer = tw.run(replace(theorem, eps=theorem.eps / 1e5), stream)
    assert finer.oracle_calls > 0
    assert finer.distances.max() ** 2 <= 3.0 * theorem.eps / 1e5 * (1.0 + 1e-9)
    assert finer.max_infeasibility <= 1e-12


def test_of_two_steps_the_one_that_is_not_given_is_the_theorems():
    K = L2Ball(3)
    alone = PrimalDual(K, horizon=400, eta=0.01, constraint_lipschitz=2.0)
    theorem = theorems.primal_dual(K, 400, 1.0, 2.0)
    assert alone.steps(400).theta == pytest.approx(0.01 * theorem.delta)
    assert PrimalDual(K, horizon=400, delta=7.0).steps(400).eta == theorem.eta


def test_eps_has_the_paper_s_calls_or_those_of_a_budget():
    stream = theorems.hostile(HULL, 300, 1)
    free, bounded = (PrimalDual(HULL, 300, calls, eps=1e-4) for calls in (None, 0.1))
    assert (free.calls_per_round, PrimalDual(HULL, 300).calls_per_round) == (None, 1.0)
    run, short = tw.run(free, stream), tw.run(bounded, stream)
    assert run.distances.max() ** 2 <= 3e-4
    assert run.oracle_calls > 30 >= short.oracle_calls


@pytest.mark.parametrize(
    ("kind", "given", "named"),
    [
        (PrimalDual, {"eta": 0.0}, "eta"),
        (PrimalDual, {"eps": -1.0}, "eps"),
        (PrimalDual, {"delta": "much"}, "delta"),
        (PrimalDual, {"eta": 0.1}, "constraint_lipschitz"),
        (DriftPlusPenalty, {"alpha": float("nan")}, "alpha"),
        (BanditPrimalDual, {"mu": 5.0}, "mu"),
        (BanditPrimalDual, {"delta": 1.0}, "loss_lipschitz"),
    ],
)
def test_a_setting_that_is_refused_is_named(kind, given, named):
    with refused(TidewolfError, named):
        kind(DIAMOND, **given)


def test_files_and_requests_have_the_same_settings(tmp_path):
    settings = {"eta": 0.01, "delta": 2.0, "eps": 0.5, "block": 4, "calls_per_round": 3.0}
    body = {"set": {"kind": "Simplex", "n": 4}, "rounds": 100}
    body["learners"] = [{"name": "PrimalDual", **settings}]
    made = Description.read(body).build().learner
    assert made == PrimalDual(Simplex(4), horizon=100, **settings)
    del body["learners"][0]["calls_per_round"]
    with pytest.raises(InvalidInput, match="calls_per_round"):
        Description.read(body)
    lines = "\n".join(f"{name} = {value}" for name, value in settings.items())
    path = tmp_path / "mine.toml"
    learner = f'[[learners]]\nname = "PrimalDual"\n{lines}\n'
    path.write_text(f'[stream]\nproblem = "adversarial"\n{learner}')
    (choice,) = load(path).learners
    assert choice.given == settings


# --- the primal-dual learners: laws, the theorem's frozen regime, thresholds, units, --------------


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1.0, 1e6, 1e100, 1e300])
def test_limits_that_no_point_keeps_never_overflow_and_have_no_bound(depth):
    K, rng = CappedSimplex(5, 0.5), np.random.default_rng(8)
    A = rng.random((400, 5))
    stream = tw.Stream(Linear(rng.standard_normal((400, 5))), Affine(A, A @ K.center - depth))
    for learner in (PrimalDual(K, horizon=300), theorems.primal_dual(K, 300, 10.0, 3.0)):
        run = tw.run(learner, stream)
        assert run.max_infeasibility <= 1e-12
        assert np.isfinite(run.losses).all()
        assert depth == 1.0 or learner.bound(run)[1:] == (None, HOPELESS)


# --- condition (C) --------------------------------------------------------------------------------


@given(st.integers(1, 10**9), st.sampled_from([0.1, 1.0, 7.0]))
def test_the_damping_is_the_smallest_root(T, B):
    learner = PrimalDual(L2Ball(2), T, B)
    b, distance = learner.block_for(T), math.sqrt(learner.known_distance2(T) or 0.0)
    eta, nu, theta, root = unit_free_steps(T, b, distance)

    def slack(theta):
        return theta / 2.0 - eta * b - nu * b * theta**2 / 2.0 - distance

    if root:
        assert slack(theta) == pytest.approx(0.0, abs=1e-9)
        assert all(slack(theta * share) < 0.0 for share in (0.0, 0.1, 0.5, 0.9, 0.999))
    else:
        assert theta == 0.5
        assert damping(b, eta, nu, distance) is None
        assert all(slack(2.0**k) < 0.0 for k in range(-30, 30))


def test_what_is_promised_has_the_stated_constants():
    for B in (0.5, 1.0, 4.0):
        for T in (int(calls / B) for calls in (1e4, 1e5, 1e6, 1e8)):
            learner = PrimalDual(L2Ball(2, 3.0), T, B, loss_lipschitz=2.0, constraint_lipschitz=5.0)
            regret, violation, reason = learner.guarantee()
            assert regret <= 5.9 * 6.0 * T**0.75 / B**0.25
            assert 6.0 * 15.0 * T**0.875 / B**0.125 <= violation <= 6.9 * 15.0 * T**0.875 / B**0.125
            assert reason == ""


# --- theory is executable -------------------------------------------------------------------------


def grown(stream, growth):
    """The same with every round so many times as steep."""
    C, A, b = stream.losses.C.T, stream.constraints.A.T, stream.constraints.b
    return tw.Stream(Linear((growth * C).T), Affine((growth * A).T, growth * b))


OPTIONS = [{}, {"block": 1}, {"block": 3, "calls_per_round": 0.3}, {"loss_lipschitz": 9.0}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("K", [DIAMOND, HULL], ids=lambda K: type(K).__name__)
def test_bounds_are_those_of_the_files_written_plainly(K, options):
    """Three stretches, slopes that grow: what each block costs, what a G_f that grows costs, what a
    stretch leaves behind.
    """
    stream = grown(hostile(K, 130, 7), np.logspace(-1, 0.5, 130))
    learner = PrimalDual(K, 20, **options)
    run, R, D = tw.run(learner, stream), K.radius, K.diameter
    given = options.get("loss_lipschitz", 0.0)
    G_f, G_g, paid_for, regret, committed = given, 0.0, 0.0, 0.0, 0.0
    before, t, began, T, energy = learner.start(), 0, 0, 20, 0.0

    def violation(rounds, s):
        E = (D if began else R) ** 2 / R**2 / (2.0 * s.eta) + energy + D / R * rounds
        return G_g * R * math.sqrt(2.0 * (s.theta * rounds + 1.0 / s.nu) * E)

    for played in tw.play(learner, stream):
        if t == began + T:
            committed += violation(T, learner.steps(T))
            began, T, energy, paid_for = t, 2 * T, 0.0, 0.0
            before = before._replace(
                point=ProjectedPoint.of(before.point.active), saddle=learner.start().saddle
            )
        s, n = learner.steps(T), len(played.losses)
        x, y, lam, rounds = before.point.x, before.point.y, before.saddle.lam, slice(t, t + n)
        C, limits = stream.losses.C[rounds], stream.constraints[rounds]
        A, g = limits.A, limits.values(x)
        grad_f, grad_g = K.tangent(C.sum(0)), K.tangent(A[g > 0].sum(0))
        G_f, G_g = max(G_f, np.linalg.norm(grad_f) / n), max(G_g, np.linalg.norm(grad_g) / n)
        d, q = grad_f / G_f + lam * grad_g / (G_g or 1.0), g[g > 0].sum() / ((G_g or 1.0) * R)
        price = d @ (x - y) / R + s.eta * d @ d / 2.0 - lam * q
        energy += price + lam * q + s.nu * (q - n * s.theta * lam) ** 2 / 2.0
        energy -= n * s.theta * lam**2 / 2.0
        reach = R if t == 0 else min(2.0 * R, D + np.linalg.norm(x - y))
        regret += G_f * R * price + (G_f - paid_for) * reach**2 / (2.0 * s.eta * R)
        paid_for, before, t = G_f, played.state, t + n
    assert began > 20
    assert G_f > 2.0 * np.linalg.norm(K.tangent(stream.losses.C[0]))
    assert run.bound.regret == pytest.approx(regret, rel=1e-9)
    assert run.bound.violation == pytest.approx(committed + violation(t - began, s), rel=1e-9)


# --- the theorem ----------------------------------------------------------------------------------


def test_the_thresholds_are_those_of_the_errata():
    assert paper.first_moving_horizon(1.0, 1.0) == 339_460
    assert paper.first_moving_horizon(1.0, 0.0) == 8_529_325
    assert paper.first_moving_horizon(0.25, 0.25) == 339_460
    for T, distance in ((339_459, 1.0), (8_529_324, 0.0)):
        assert paper.frozen_at(paper.theorem_eps(T, 1.0), 1.0, distance)
        assert not paper.frozen_at(paper.theorem_eps(T + 1, 1.0), 1.0, distance)
    flat, steep = (PrimalDual(L2Ball(2), constraint_lipschitz=slope) for slope in (1.0, 10.0))
    assert flat.theorem_horizon() == 679_601
    assert steep.theorem_horizon() == pytest.approx(1.25e9, rel=0.01)


def naive(learner, stream, start):
    """Algorithm 4 as it is printed, with the paper's projection, on a ball around the origin."""
    K, T, b, eta = learner.K, learner.horizon, learner.block, learner.eta
    x, y, lam, played = start, start, 0.0, []
    for first in range(0, T, b):
        rounds = slice(first, min(first + b, T))
        C, limits = stream.losses.C[rounds], stream.constraints[rounds]
        A, level = limits.A, limits.b
        played.append(x)
        breach = np.maximum(A @ x - level, 0.0)
        y = y - eta * (C.sum(0) + lam * A[breach > 0].sum(0))
        y = y * min(1.0, K.radius / np.linalg.norm(y))
        lam = max(0.0, lam + eta * float((breach - learner.delta * eta * lam).sum()))
        x, y, _, _ = tw.projection.afp_paper(K, y, x, tol=3.0 * learner.eps)
    return played


def test_the_theorem_is_algorithm_4_written_plainly():
    """With an eps a thousand times finer and steps ten times as long, so that something happens in
    a short run.
    """
    K, T = L2Ball(3), 500
    stream, start = hostile(K, T, 9), np.array([0.0, 0.6, 0.0])
    theorem = theorems.primal_dual(K, T, 1.0, 1.0, start=start)
    assert theorem.eta == pytest.approx(T**-0.75)
    assert theorem.delta == pytest.approx(64 * math.sqrt(T * math.log(T)))
    assert theorem.eps == pytest.approx(61 * math.log(T) / math.sqrt(T))
    learner = replace(theorem, eps=theorem.eps / 1000, eta=10 * theorem.eta)
    # violated by more than G_g D: not cut
    hopeless = tw.Stream(stream.losses, Affine(stream.constraints.A, stream.constraints.b - 5.0))
    for rounds in (stream, hopeless):
        ours = [p.x for p in tw.play(learner, rounds)]
        assert np.ptp(np.array(ours), axis=0).max() > 0.1
        np.testing.assert_allclose(ours, naive(learner, rounds, start), atol=1e-9)


def test_a_start_outside_is_refused():
    slopes = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
    with pytest.raises(errors.NotAMember, match="starting point"):
        PrimalDual.theorem(L2Ball(2), horizon=9, start=[2.0, 0.0], **slopes)
