"""Learners and rivals: the laws on every one and every set, units, bounds on hostile streams,
extremes, and learners broken on purpose.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tidewolf as tw
from covering import cover, thinned
from failing import assert_fails
from pairs import takes
from streams import together
from tidewolf import baselines, learners, sets
from tidewolf.baselines import (
    OnlineFrankWolfe,
    ProjectedPrimalDual,
    ProximalPenalty,
    SinhaVaze,
    WangWanZhang,
)
from tidewolf.core.arrays import frozen
from tidewolf.core.checkpoint import Stored
from tidewolf.core.errors import InvalidInput, NotSupported, TidewolfError, WrongShape, WrongType
from tidewolf.core.feedback import FirstOrder, first_order, require_first_order
from tidewolf.core.values import identity
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.hindsight.best_point import BestPoint
from tidewolf.learners import (
    BanditPrimalDual,
    DriftPlusPenalty,
    LyapunovDescent,
    LyapunovFrankWolfe,
    PrimalDual,
)
from tidewolf.methods import descent
from tidewolf.methods.base import Bound, Learner
from tidewolf.methods.certificate import GradientSums, paid_at_most, regret_at_most
from tidewolf.methods.steps import lyapunov
from tidewolf.methods.steps.saddle import HOPELESS
from tidewolf.sets import (
    BoundedPSD,
    Box,
    CappedSimplex,
    FlowPolytope,
    L2Ball,
    Simplex,
    Translated,
    VertexHull,
)
from tidewolf.testing import check_learner
from tidewolf.testing.learners import LearnerChecks, hostile_stream

EVERY = {**learners.every(), **baselines.every()}
SETS = [(f"{kind.__name__}-{i}", K) for kind in sets.every() for i, K in enumerate(kind.examples())]
LYAPUNOV = {
    "LyapunovDescent": LyapunovDescent,
    "LyapunovFrankWolfe": LyapunovFrankWolfe,
    "SinhaVaze": SinhaVaze,
    "WangWanZhang": WangWanZhang,
}


DEAR = {"Ensemble", "DriftPlusPenalty", "BanditPrimalDual", "PrimalDual", "Resolve"}
"""Learners whose laws take longest to try: the quick suite tries a set with another if it can."""
FEW = 9
"""Rounds of a learner on each set in the quick suite; the losses turn round in them."""


HORIZONS = (20, 7, 2, 1, 300)


def cases():
    """Every learner, with each of its settings, on every set twice. In the quick suite few of them,
    for half as many rounds: every learner meets each of its settings, capacities and half-spaces,
    every horizon and kind of set some learner, and every family of sets learners and rivals.
    """
    found, met = [], []
    for name, kind in sorted(EVERY.items(), key=lambda named: named[0] in DEAR):
        settings = len(kind.examples(Simplex(3), 20))
        for number, (where, K) in enumerate(SETS):
            if not takes(kind, K):
                continue
            for seed in (number, number + 1):
                family, horizon = type(K).__module__.split(".")[2], HORIZONS[number // 2 % 5]
                meets = {(name, "setting", seed % settings), (name, "limits", seed % 2), type(K)}
                found.append((kind, K, seed, horizon, f"{name}-{where}-{seed - number}"))
                met.append(meets | {(name in baselines.every(), family), horizon})
    soon = set(cover(met))
    for i, (kind, K, seed, horizon, name) in enumerate(found):
        yield pytest.param(kind, K, seed, 20, 2 * FEW, id=name, marks=pytest.mark.soak)
        if i in soon:
            yield pytest.param(kind, K, seed, horizon, FEW, id=f"{name}-few")


CASES = list(cases())
seeds = st.integers(0, 2**32)
DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))


# --- the laws, on everything exported -------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def every_program_solved_once():
    """The laws play the same rounds over and over; that a program's answer depends on its question
    alone has a test of its own.
    """
    solve, answers = BestPoint.__call__, {}

    def remembered(best, losses, constraints):
        question = (
            identity((best.K, losses, constraints)),
            str(best.K.center.dtype),
            type(best.K.center),
        )
        if question not in answers:
            answers[question] = solve(best, losses, constraints)
        return answers[question]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BestPoint, "__call__", remembered)
        yield


def test_who_refuses_a_set_says_so_in_a_sentence(monkeypatch):
    for kind, (_, K) in itertools.product(EVERY.values(), SETS):
        if takes(kind, K):
            assert kind.examples(K, 20)
            continue
        with pytest.raises(NotSupported, match=rf"{kind.__name__}|{type(K).__name__}"):
            kind.examples(K, 20)
    monkeypatch.setattr(VertexHull, "inner_radius", None)
    with pytest.raises(NotSupported, match="inner_radius"):
        learners.BanditPrimalDual(VertexHull(HULL.points))


@pytest.mark.parametrize(("kind", "K", "seed", "horizon", "rounds"), CASES)
def test_every_learner_keeps_every_law_on_every_set(kind, K, seed, horizon, rounds):
    examples = kind.examples(K, horizon)
    learner = examples[seed % len(examples)]
    check_learner(learner, hostile_stream(learner.hard_set, rounds, seed))


@pytest.mark.soak
@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY.keys())
@given(
    seed=seeds,
    K=st.sampled_from([DIAMOND, HULL, CappedSimplex(5, 0.5), L2Ball((2, 2))]),
    horizon=st.sampled_from([1, 2, 7, 300]),
)
@settings(max_examples=3)
def test_the_laws_hold_for_any_seed_and_horizon(kind, seed, K, horizon):
    K = DIAMOND if not takes(kind, K) else K
    examples = kind.examples(K, horizon)
    check_learner(examples[seed % len(examples)], seed=seed)


def moved_cases():
    """Every learner on a few sets in another dtype and another library; of the sets, which take
    turns from learner to learner, the quick suite has one, in single precision or strict by turns,
    for a third as many rounds.
    """
    references = {"float32": np.zeros(1, dtype=np.float32), "strict": strict.zeros(1)}
    for turn, (name, kind) in enumerate(EVERY.items()):
        places = [Simplex(4), HULL, DIAMOND, L2Ball(3), BoundedPSD.examples()[3]]
        places = [K for K in places if takes(kind, K) or (K is HULL and name == "BanditPrimalDual")]
        for (i, K), (library, reference) in itertools.product(
            enumerate(places), references.items()
        ):
            soon = (i - turn) % (len(places) - 1 or 1) < 1 and (library == "strict") == turn % 2
            where = f"{library}-{name}-{K!r}"
            yield pytest.param(kind, K, reference, 2 * FEW, id=where, marks=pytest.mark.soak)
            if soon and not isinstance(K, BoundedPSD):
                yield pytest.param(kind, K, reference, 9, id=f"{where}-few")


@pytest.mark.parametrize(("kind", "K", "reference", "rounds"), list(moved_cases()))
def test_the_laws_hold_in_other_libraries_and_dtypes(kind, K, reference, rounds):
    K = CappedSimplex(4, 0.4) if K is HULL and kind is learners.BanditPrimalDual else K
    moved = K.to(reference)
    check_learner(kind.examples(moved, 20)[1], hostile_stream(moved, rounds, 1))


@pytest.mark.soak_examples(8)
@pytest.mark.parametrize("K", [DIAMOND, HULL, CappedSimplex(5, 0.5), L2Ball(3)], ids=repr)
@given(seed=seeds, block=st.integers(2, 7), horizon=st.integers(1, 40))
@settings(max_examples=4)
def test_blocks_are_rounds_bit_for_bit_when_sums_are_added_in_order(K, seed, block, horizon):
    learner, stream = (
        LyapunovDescent(K, horizon=horizon, block=block),
        hostile("switching", K, 40, seed),
    )
    t, alone, whole = 0, learner.start(), learner.start()
    while t < 40:
        k, x = min(learner.rounds_left(whole), 40 - t), learner.act(whole)
        parts = [stream[s : s + 1] for s in range(t, t + k)]
        seen = [
            first_order(part.losses, part.constraints, x, part.constraints.values(x))
            for part in parts
        ]
        whole = learner.update(whole, together(seen))
        for one in seen:
            alone = learner.update(alone, one)
        t += k
        assert learner.save(whole) == learner.save(alone)


def test_every_lists_what_is_public():
    for module in (learners, baselines):
        assert list(module.every()) == module.__all__ == sorted(module.__all__)
        assert all(issubclass(kind, Learner) for kind in module.every().values())


def test_check_learner_refuses_what_is_no_learner_or_no_stream():
    learner = LyapunovDescent(Simplex(3))
    other_shape, short = (hostile("switching", Simplex(n), k, 0) for n, k in ((2, 5), (3, 1)))
    for what, error in (
        ((3,), WrongType),
        ((learner, 3), WrongType),
        ((learner, other_shape), WrongShape),
        ((learner, short), InvalidInput),
    ):
        with pytest.raises(error):
            check_learner(*what)
    check_learner(learner, hostile("switching", Simplex(3), 2, 0))


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY.keys())
def test_bad_settings_are_refused_and_named(kind):
    names = kind.__dataclass_fields__
    for bad, error in (
        ({"horizon": 0}, InvalidInput),
        ({"horizon": 2.5}, InvalidInput),
        ({"caution": -1}, InvalidInput),
        ({"loss_lipschitz": -1}, InvalidInput),
        ({"loss_size": 0}, InvalidInput),
        ({"constraint_lipschitz": "x"}, WrongType),
        ({"seed": -1}, InvalidInput),
    ):
        (name,) = bad
        if name in names:
            with pytest.raises(error, match=f"{name} of {kind.__name__}"):
                kind(Simplex(2), **bad)
    with pytest.raises(WrongType, match=f"{kind.__name__} needs a set"):
        kind(3)


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
def test_a_lipschitz_constant_that_does_not_hold_is_named(kind):
    K = Box(np.zeros(2), np.ones(2))
    for name, seen in (
        ("loss", FirstOrder(np.array([3.0, 4.0]), 0.0, np.zeros(2), 5.0, 0.0, 1)),
        ("constraint", FirstOrder(np.zeros(2), 1.0, np.array([3.0, 4.0]), 0.0, 5.0, 1)),
    ):
        learner = kind(K, horizon=5, **{f"{name}_lipschitz": 4.9})
        with pytest.raises(InvalidInput, match=rf"slope 5 .* {name}_lipschitz = 4\.9"):
            learner.update(learner.start(), seen)


# --- units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LyapunovDescent, LyapunovFrankWolfe, SinhaVaze])
def test_a_horizon_only_holds_the_exponent_still(kind):
    """Limits that are kept leave nothing for a horizon to change; past a horizon of 16 there is
    none. Nothing restarts, and there is no note.
    """
    K = Simplex(4)
    stream = hostile("switching", K, 80, 1)
    kept = tw.Stream(stream.losses, Capacity(np.full((80, 4), 2.0)))
    for horizon in (4, None):
        learner = kind(K, horizon=horizon)
        state = tw.run(learner, stream).final_state
        assert state.dual.rounds == state.t == 80
        assert not any("horizon" in note for note in learner.notes(state))
    if kind is not LyapunovFrankWolfe:
        np.testing.assert_array_equal(actions(kind(K, horizon=80), kept), actions(kind(K), kept))
        short, unknown = actions(kind(K, horizon=16), stream), actions(kind(K), stream)
        np.testing.assert_array_equal(short, unknown)
        assert (actions(kind(K, horizon=80), stream) != unknown).any()


def scaled_sets(s: float) -> dict[str, Any]:
    points = np.random.default_rng(3).standard_normal((7, 3))
    return {
        "simplex": Simplex(4, total=s),
        "at most": Simplex(4, total=s, at_most=True),
        "capped": CappedSimplex(5, 0.4 * s, s),
        "box": Box(-s * np.arange(1.0, 4.0), s * np.ones(3)),
        "ball": L2Ball(3, s, s * np.array([0.0, 1.0, 3.0])),
        "hull": VertexHull(s * points),
        "moved": Translated(Simplex(3, total=s), s * np.array([1.0, -2.0, 0.5])),
    }


def actions(learner: Learner[Any], stream: tw.Stream) -> np.ndarray:
    """The point of every block, or every point if the learner explores, one a row."""
    shape = (-1, *learner.hard_set.shape)
    return np.concatenate([played.x.reshape(shape) for played in tw.play(learner, stream)])


def rescaled(name: str, make: Any, x: float, f: float, g: float, rounds: int) -> np.ndarray:
    """The actions, in the old units, where points are x times as large, losses f times and
    constraints g times.
    """
    rng, K = np.random.default_rng(5), scaled_sets(x)[name]
    plain = scaled_sets(1.0)[name]
    C, A = rng.standard_normal((rounds, *K.shape)), rng.standard_normal((rounds, *K.shape))
    b = A @ plain.center + plain.radius * rng.uniform(-0.1, 0.3, rounds)
    return actions(make(K), tw.Stream(Linear(C * (f / x)), Affine(A * (g / x), b * g))) / x


MAKES = {
    "descent": lambda K: LyapunovDescent(K, horizon=40),
    "blocks": lambda K: LyapunovDescent(K, horizon=25, block=3, calls_per_round=0.5, caution=1.0),
    "doubling": lambda K: LyapunovDescent(K, horizon=7, tolerance=1e-2),
    "baseline": lambda K: SinhaVaze(K, horizon=25),
    "doubling rival": lambda K: WangWanZhang(K, horizon=25),
    "penalised rival": lambda K: OnlineFrankWolfe(K, horizon=25, caution=1.0),
    "primal-dual rival": lambda K: ProjectedPrimalDual(K, horizon=25),
    "proximal rival": lambda K: ProximalPenalty(K, horizon=25),
    "primal-dual": lambda K: PrimalDual(K, horizon=40, block=3, calls_per_round=0.4),
    "drift": lambda K: DriftPlusPenalty(K, horizon=40, block=3, calls_per_round=0.4),
    "drift, single rounds": lambda K: DriftPlusPenalty(K, horizon=40, block=1),
    "bandit": lambda K: BanditPrimalDual(K, horizon=40, block=3, calls_per_round=0.4),
    "bandit, single rounds": lambda K: BanditPrimalDual(K, horizon=40, block=1),
}


@thinned(3, name={name: name for name in scaled_sets(1.0)}, make=MAKES)
def test_powers_of_two_in_the_units_change_no_bit_of_a_decision(name, make):
    plain = rescaled(name, make, 1.0, 1.0, 1.0, 60)
    for x, f, g in (
        (8.0, 1.0, 1.0),
        (1.0, 0.25, 1.0),
        (1.0, 1.0, 2.0**20),
        (2.0**-12, 2.0**30, 2.0**-7),
    ):
        assert rescaled(name, make, x, f, g, 60).tobytes() == plain.tobytes(), (x, f, g)


@thinned(3, name={name: name for name in scaled_sets(1.0)}, make=dict(list(MAKES.items())[:8]))
def test_other_units_change_decisions_by_rounding_only(name, make):
    """The oracle of a box, a hypersimplex or a hull may answer with another corner when rounding
    breaks a tie: there exact rivals only.
    """
    exact = make in (MAKES["baseline"], MAKES["primal-dual rival"])
    if not exact and name in ("box", "capped", "hull"):
        return
    plain = rescaled(name, make, 1.0, 1.0, 1.0, 30)
    for x, f, g in ((3.7, 1.0, 1.0), (1.0, 1e-5, 1.0), (1.0, 1.0, 123.0), (1e3, 7e-3, 1e6)):
        tolerance = 1e-4 if not exact else 1e-6 if name == "hull" else 1e-9
        np.testing.assert_allclose(
            rescaled(name, make, x, f, g, 30), plain, atol=tolerance * scaled_sets(1.0)[name].radius
        )


# --- theory is executable -------------------------------------------------------------------------


def hostile(kind: str, K: Any, rounds: int, seed: int) -> tw.Stream:
    """A stream on which some point of K keeps every constraint."""
    rng = np.random.default_rng([seed, len(kind)])
    column, flat = (rounds, *[1] * len(K.shape)), (rounds, -1)
    star = 0.7 * K.center + 0.3 * K.lmo(rng.standard_normal(K.shape))
    turns = np.where(np.arange(rounds) // max(2, rounds // 7) % 2, -1.0, 1.0).reshape(column)
    C = turns * rng.standard_normal(K.shape) + 0.3 * rng.standard_normal((rounds, *K.shape))
    A, size = -C + 0.2 * rng.standard_normal(C.shape), np.ones(rounds)
    if kind == "random signs":
        C, A = rng.choice([-1.0, 1.0], C.shape), rng.choice([-1.0, 1.0], C.shape)
    elif kind == "rare and huge":
        size = np.where(rng.random(rounds) < 0.05, 1e3, 1e-2)
    elif kind == "steady":
        C = A = rng.standard_normal(K.shape) + 0.0 * C
    elif kind == "losses that grow":
        C = C * np.logspace(-3, 3, rounds).reshape(column)
    elif kind == "capacities":
        return tw.Stream(
            Linear(-rng.random(C.shape)), Capacity(star + K.radius * 0.1 * rng.random(C.shape))
        )
    else:
        assert kind == "switching"
    A = A * size.reshape(column)
    return tw.Stream(Linear(C), Affine(A, A.reshape(flat) @ star.reshape(-1)))


KINDS = ["switching", "random signs", "rare and huge", "steady", "losses that grow", "capacities"]
THEORY = [Simplex(4), DIAMOND, CappedSimplex(6, 0.5), Box([-1.0, 0.0], [1.0, 3.0]), HULL]


def settings_of(K: Any, T: int) -> dict[str, Learner[Any]]:
    return {
        "bold": LyapunovDescent(K, horizon=T, caution=1.0),
        "default": LyapunovDescent(K, horizon=T),
        "cautious": LyapunovDescent(K, horizon=T, caution=100.0),
        "poor": LyapunovDescent(K, horizon=T, calls_per_round=0.05),
        "coarse": LyapunovDescent(K, horizon=T, tolerance=1.0, block=4),
        "past the horizon": LyapunovDescent(K, horizon=T // 5),
        "an open block": LyapunovDescent(K, horizon=T, block=7, calls_per_round=0.3),
        "unknown horizon": LyapunovDescent(K),
        "baseline": SinhaVaze(K, horizon=T),
        "rival, published": SinhaVaze.published(K, horizon=T),
        "rival, past the horizon": SinhaVaze(K, horizon=T // 5, caution=1.0),
        "Frank-Wolfe": LyapunovFrankWolfe(K),
        "Frank-Wolfe, past the horizon": LyapunovFrankWolfe(K, horizon=T // 5),
        "doubling rival": WangWanZhang(K, horizon=T),
        "doubling rival, published": WangWanZhang.published(K, horizon=T // 5),
        "penalised rival": OnlineFrankWolfe(K, horizon=T),
        "blind rival, restarts": OnlineFrankWolfe.blind(K, horizon=T // 5),
        "primal-dual rival": ProjectedPrimalDual(K, horizon=T),
        "primal-dual rival, cautious": ProjectedPrimalDual(K, horizon=T, caution=1000.0),
        "primal-dual rival, restarts": ProjectedPrimalDual.published(K, horizon=T // 5),
    }


def beyond_the_bound(learner: Learner[Any], stream: tw.Stream) -> list[str]:
    """What was measured above what was promised."""
    run = tw.run(learner, stream)
    assert run.comparator is not None
    assert run.comparator.feasible
    assert run.bound.regret is not None
    slack = 1e-9 * float(np.abs(run.losses).sum() + run.violations.sum())
    beyond = []
    if float(run.losses.sum()) - run.comparator.upper > run.bound.regret + slack:
        beyond.append("regret")
    if (
        run.bound.violation is not None
        and float(run.violations.sum()) > run.bound.violation + slack
    ):
        beyond.append("violation")
    return beyond


@thinned(3, K={type(K).__name__: K for K in THEORY}, kind={kind: kind for kind in KINDS})
def test_what_is_measured_stays_below_what_is_promised(K, kind):
    T = 70
    stream = hostile(kind, K, T, 1)
    for name, learner in settings_of(K, T).items():
        assert beyond_the_bound(learner, stream) == [], name


@pytest.mark.soak_examples(40)
@given(
    seed=seeds,
    kind=st.sampled_from(KINDS),
    K=st.sampled_from(THEORY),
    T=st.integers(1, 60),
    caution=st.sampled_from([0.01, 1.0, 1e4]),
)
@settings(max_examples=12)
def test_bounds_hold_on_short_streams_of_any_seed(seed, kind, K, T, caution):
    stream = hostile(kind, K, T, seed)
    for learner in (
        LyapunovDescent(K, horizon=max(1, T // 2), caution=caution),
        SinhaVaze(K, horizon=T, caution=caution),
        WangWanZhang(K, horizon=T, caution=caution),
    ):
        assert beyond_the_bound(learner, stream) == []


def plain_bounds(learner: Learner[Any], stream: tw.Stream) -> tuple[float, float]:
    """Both bounds from the formulas of methods/certificate.py and steps/lyapunov.py, written
    plainly over all vertices, given the points that were played; the best c by a linear program.
    """
    K, theta, c = learner.hard_set, 0.5, 2.0
    D, rng, rho = K.diameter, np.random.default_rng(0), math.inf
    vertices = np.unique([K.lmo(d) for d in rng.standard_normal((400, *K.shape))], axis=0)
    at = vertices - K.center
    F, W, G_f, G_g, paid, Q, e = 0.0 * K.center, 0.0 * K.center, 0.0, 0.0, 0.0, 0.0, 0.0
    loss_at, limit_at = 0.0, 0.0
    for t, played in enumerate(tw.play(learner, stream)):
        C, A = K.tangent(stream.losses.C[t]), K.tangent(stream.constraints.A[t])
        G_f, breach = max(G_f, float(np.linalg.norm(C))), float(played.constraints[0])
        F, loss_at = F + C, loss_at + C @ (played.x - K.center)
        e = theta * max(t + 1, learner.horizon or 16) ** -0.5
        if breach > 0:
            Q, G_g = Q + breach, max(G_g, float(np.linalg.norm(A)))
            w, rho = theta * G_f / G_g * math.exp(e * Q / (c * G_g * D)), min(rho, G_f / G_g)
            W, limit_at = W + w * A, limit_at + w * A @ (played.x - K.center)
            paid += w * breach
    # the least a + c b + s with s >= -<F + c W, v - center> at every vertex v
    rows = np.column_stack([-at @ W, -np.ones(len(at))])
    limits = [(0.0, None), (None, None)]
    found = linprog([limit_at - paid, 1.0], A_ub=rows, b_ub=at @ F, bounds=limits)
    unit, most = c * G_g * D / e, limit_at - (at @ W).min()
    violation = unit * math.log1p(most / (rho * theta * unit)) if Q > 0 else 0.0
    return loss_at + found.fun, violation


@thinned(
    2,
    K={type(K).__name__: K for K in (Simplex(4), DIAMOND, HULL)},
    kind={kind: kind for kind in ("switching", "rare and huge", "steady", "losses that grow")},
)
def test_bounds_are_those_of_the_formulas_written_plainly(K, kind):
    stream = hostile(kind, K, 150, 6)
    for learner in (
        LyapunovDescent(K, horizon=150),
        LyapunovDescent(K, horizon=20, calls_per_round=0.1, caution=1.0),
        SinhaVaze(K),
    ):
        bound, (regret, violation) = tw.run(learner, stream).bound, plain_bounds(learner, stream)
        slack = 1e-6 * float(np.linalg.norm(stream.losses.C, axis=1).sum()) * K.diameter
        assert regret - slack <= bound.regret <= regret + 2e-3 * abs(regret) + slack
        assert bound.violation == pytest.approx(violation, rel=1e-6)


@pytest.mark.parametrize("K", [Simplex(4), DIAMOND, HULL], ids=lambda K: type(K).__name__)
def test_steps_are_those_of_the_formulas_written_plainly(K):
    """Where y goes before it is projected, from the points and gradients of each round."""
    stream, V, theta, c, D = hostile("switching", K, 80, 6), 0.1, 0.5, 2.0, K.diameter
    learner = LyapunovDescent(K, calls_per_round=0.2, step_scale=0.7)
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


def uncompiled(learner: Any) -> Any:
    learner.__dict__["compiled"] = None
    return learner


def test_an_oracle_that_errs_adds_its_error():
    K, rng = Simplex(3), np.random.default_rng(0)
    F, W = K.tangent(rng.standard_normal(3)), K.tangent(rng.standard_normal(3))
    sums, right = GradientSums(F, W, 1.0, 2.0), K.answer
    before = regret_at_most(K, sums, 0.5), paid_at_most(K, sums)
    K.__dict__["answer"] = lambda d, warm=None: right(d)._replace(error=0.25)
    assert paid_at_most(K, sums) == pytest.approx(before[1] + 0.25 * np.linalg.norm(W))
    assert regret_at_most(K, sums, 0.5) > before[0]


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
def test_a_given_slope_gives_a_bound_on_the_violation(kind):
    stream = hostile("switching", DIAMOND, 200, 2)
    largest = float(np.linalg.norm(stream.losses.C, axis=1).max())
    run = tw.run(kind(DIAMOND, horizon=200, loss_lipschitz=largest), stream)
    assert 0.0 < run.violations.sum() <= run.bound.violation < math.inf
    assert run.bound.reason == ""


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
def test_curved_losses_have_a_bound_on_the_violation_without_a_given_slope(kind):
    """Limits of 0.45 on both sides of the diamond are broken at first and can be kept; away from
    the path played losses are steep.
    """
    T, rng = 400, np.random.default_rng(0)
    K = DIAMOND
    losses = tw.functions.Quadratic(
        30.0 * np.eye(5), -30.0 * K.lmo(rng.normal(size=5)) + rng.random((T, 5))
    )
    limit = np.maximum(K.center, 0.1) + 0.02
    run = tw.run(kind(K), tw.Stream(losses, Capacity(np.tile(limit, (T, 1)))))
    assert run.comparator.feasible
    assert 0.0 < run.violations.sum() <= run.bound.violation
    assert run.bound.reason == ""
    assert run.certificate.holds is not False


@pytest.mark.parametrize("rounds", [1, 10, 11, 12, 40])
def test_a_block_that_is_still_open_has_its_bound(rounds):
    """As though it had been cut where the run ended."""
    stream = hostile("switching", DIAMOND, rounds, 0)
    learner = LyapunovDescent(DIAMOND, horizon=20, block=3, calls_per_round=0.5)
    run = tw.run(learner, stream)
    assert beyond_the_bound(learner, stream) == []
    state, open_rounds = run.final_state, rounds % 3
    assert state.open.rounds == open_rounds
    if open_rounds:
        cut = learner.finish_block(state._replace(open=learner.start().open), state.open)
        assert run.bound == learner._weights.bound(cut.dual)


MISTAKES = {
    "none": (),
    "up the gradient": ("descend", lambda right: lambda y, g, *a, **b: right(y, -g, *a, **b)),
    "infeasible iterates back at the center": (
        "into_ball",
        lambda right: lambda y, center, radius: center + 0.0 * y,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_guarantee_catches_mistakes(mistake, monkeypatch):
    """A measured bound holds whatever a learner does; a promise does not. In Python, where mistakes
    can be made; mutants/table.py makes them in kernels.
    """
    monkeypatch.setattr(tw.LyapunovDescent, "compiled", None)
    if made := MISTAKES[mistake]:
        name, wrong = made
        monkeypatch.setattr(descent, name, wrong(getattr(descent, name)))
    found = []
    for K in (Simplex(4), DIAMOND):
        stream = hostile("steady", K, 400, 4)
        slopes = (np.linalg.norm(A, axis=1).max() for A in (stream.losses.C, stream.constraints.A))
        given = dict(zip(("loss_lipschitz", "constraint_lipschitz"), slopes, strict=True))
        tol = 1e-3
        calls = 8.0 / tol + 4.0
        learner = LyapunovDescent(K, 400, 1.0, calls, tol, **given)
        run, guarantee = tw.run(learner, stream), learner.guarantee()
        found.append(run.bound.regret > guarantee.regret)
    assert any(found) == bool(made)


# --- extremes -------------------------------------------------------------------------------------


def naive_sinha_vaze(K: Any, stream: tw.Stream, horizon: int, caution: float) -> np.ndarray:
    """The method as it is written down, with plain exponentials and no restart."""
    x, Q, G_f, G_g, S, played = K.center, 0.0, 0.0, 0.0, 0.0, []
    V, s = horizon**-0.5 / caution, 0.5 * horizon**-0.5
    for C, A, b in zip(stream.losses.C, stream.constraints.A, stream.constraints.b, strict=True):
        played.append(x)
        grad_f, grad_g, breach = K.tangent(C), K.tangent(A), max(0.0, float(A @ x - b))
        G_f = max(G_f, float(np.linalg.norm(grad_f)))
        g, Q = V * grad_f, Q + breach
        if breach > 0:
            G_g = max(G_g, float(np.linalg.norm(grad_g)))
            g = g + G_f / G_g * s * math.exp(s * Q / (2.0 * G_g * K.diameter)) * grad_g
        S += float(g @ g)
        x = K.project(x - K.diameter / math.sqrt(2.0 * S) * g)
    return np.array(played)


@pytest.mark.parametrize("caution", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("K", [Simplex(4), Box([-1.0, 0.0, 0.0], [1.0, 2.0, 0.5])], ids=repr)
def test_the_rival_agrees_with_its_formulas_written_plainly(K, caution):
    stream = hostile("switching", K, 200, 7)
    np.testing.assert_allclose(
        actions(SinhaVaze(K, horizon=200, caution=caution), stream),
        naive_sinha_vaze(K, stream, 200, caution),
        atol=1e-9,
    )


def breached(K: Any, rounds: int, depth: float) -> tw.Stream:
    """Limits that no point keeps, breached by at least `depth` every round, whose gradients still
    say where it is least.
    """
    rng = np.random.default_rng(8)
    A = rng.random((rounds, *K.shape))
    return tw.Stream(
        Linear(rng.standard_normal((rounds, *K.shape))), Affine(A, A @ K.center - depth)
    )


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
@pytest.mark.parametrize("stride", [4, 32])
def test_the_unit_in_which_weights_are_kept_changes_nothing_but_rounding(kind, stride, monkeypatch):
    K, T = Simplex(4), 400
    monkeypatch.setattr(tw.LyapunovDescent, "compiled", None)  # kernels have their own constants
    stream, learner = breached(K, T, 40.0), kind(K, horizon=T)
    hasty = {WangWanZhang: 1500.0, LyapunovFrankWolfe: 60.0}.get(kind, 10.0)
    monkeypatch.setattr(lyapunov, "THETA", hasty)  # weights that grow fast enough to need units
    whole = tw.run(learner, stream)
    monkeypatch.setattr(lyapunov, "_STRIDE", stride)
    stepped = tw.run(learner, stream)
    assert whole.final_state.dual.exponent == 0
    assert stepped.final_state.dual.exponent >= 2 * stride
    # between equal vertices rounding chooses, and a small step follows
    np.testing.assert_allclose(stepped.losses, whole.losses, atol=1e-5)
    assert learner.bound(stepped).regret == pytest.approx(learner.bound(whole).regret, rel=1e-6)


@pytest.mark.parametrize("kind", [LyapunovDescent, SinhaVaze])
def test_seasons_that_exclude_each_other_are_proved_hopeless_by_what_was_paid(kind):
    """By turns x_0 <= 0.2 and x_0 >= 0.8, each kept by many points: most stays far above 0, and is
    less than what was paid.
    """
    T, K = 4000, Simplex(3)
    sign = np.where(np.arange(T) // 50 % 2, -1.0, 1.0)
    A = sign[:, None] * np.eye(3)[0]
    stream = tw.Stream(
        Linear(np.tile([0.0, 0.1, 0.2], (T, 1))), Affine(A, np.where(sign > 0, 0.2, -0.8))
    )
    run = tw.run(kind(K, caution=100.0), stream)
    assert run.comparator.feasible is False
    dual = run.final_state.dual
    assert 0.0 < paid_at_most(K, dual.sums) < 0.9 * dual.paid
    assert run.learner.bound(run) == Bound(run.learner.bound(run).regret, None, HOPELESS)


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
def test_one_absurd_breach_does_not_silence_the_losses(kind):
    """A breach beyond slope times diameter proves that no point kept that limit, and counts as no
    more, however large it is.
    """
    T, K = 100, Simplex(3)
    stream = hostile("switching", K, T, 0)
    shifts = 1e3 * np.eye(T)[5], 1e12 * np.eye(T)[5]
    large, absurd = (
        tw.Stream(stream.losses, Affine(stream.constraints.A, stream.constraints.b - shift))
        for shift in shifts
    )
    np.testing.assert_array_equal(
        actions(kind(K, horizon=T), absurd), actions(kind(K, horizon=T), large)
    )
    spoilt = tw.run(kind(K, horizon=T), absurd)
    assert spoilt.learner.bound(spoilt).reason == HOPELESS


@thinned(4, kind=LYAPUNOV, depth={f"{depth:g}": depth for depth in (1e3, 1e6, 1e15, 1e100)})
def test_hopeless_limits_never_overflow(kind, depth):
    K = CappedSimplex(5, 0.5)
    learner = kind(K, horizon=1000)
    run = tw.run(learner, breached(K, 1200, depth))
    assert run.max_infeasibility <= 1e-12
    assert np.isfinite(run.losses).all()
    bound = learner.bound(run)
    assert all(part is None or math.isfinite(part) for part in bound[:2])
    assert bound.reason or None not in bound[:2]
    check_learner(learner, breached(K, 5, depth))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [LyapunovDescent, SinhaVaze])
def test_a_breach_that_no_decision_can_change_leaves_the_learner_alive(kind, dtype):
    """The only way passes a link over its capacity: rounding of its flat gradient must not swallow
    everything else.
    """
    K = FlowPolytope.examples()[4].to(np.zeros(1, dtype=dtype))
    names = ["s-m", "m-a", "m-b", "a-n", "b-n", "n-t"]
    capacity = np.full((400, 6), 2.0)
    capacity[:, names.index("n-t")] = 0.5
    costs = np.tile([0.0, 1.0, 0.0, 1.0, 0.0, 0.0], (400, 1))
    costs[200:] = costs[200:, [0, 2, 1, 4, 3, 5]]
    learner = kind(K, horizon=400, caution=0.1)
    x = actions(learner, tw.Stream(Linear(costs.astype(dtype)), Capacity(capacity.astype(dtype))))
    assert x[199, names.index("m-b")] > 0.9
    assert x[399, names.index("m-a")] > 0.9


@pytest.mark.parametrize("kind", LYAPUNOV.values(), ids=LYAPUNOV.keys())
@pytest.mark.parametrize("f", [1e-100, 1e100])
@pytest.mark.parametrize("g", [1e-100, 1e100])
def test_tiny_and_huge_slopes_are_only_units(kind, f, g):
    K, plain = Simplex(4), hostile("switching", Simplex(4), 40, 3)
    stream = tw.Stream(
        Linear(f * plain.losses.C), Affine(g * plain.constraints.A, g * plain.constraints.b)
    )
    np.testing.assert_allclose(
        actions(kind(K, horizon=40), stream), actions(kind(K, horizon=40), plain), atol=1e-5
    )


# --- learners broken on purpose -------------------------------------------------------------------


class Log(Stored):
    """Gradients in a list that states share."""

    tag = "log of the tests"

    def __init__(self, rows: list[Any], count: int) -> None:
        self.rows, self.count = rows, count

    def parts(self):
        return {"rows": self.rows[: self.count]}

    @classmethod
    def restored(cls, parts):
        return cls(list(parts["rows"]), len(parts["rows"]))


class Walk(NamedTuple):
    t: int
    x: Any
    total: Any
    open: Any
    rounds: int
    calls: int = 0
    distance: float = 0.0
    extra: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Walker(Learner[Walk]):
    """Follows the leader by one oracle call every two rounds, right in everything; each broken
    learner below changes one thing.
    """

    needs: ClassVar = FirstOrder
    state_type: ClassVar = Walk

    K: Any = field(default_factory=lambda: Simplex(3))
    horizon: int | None = 10
    calls_per_round: float = 0.5

    @property
    def hard_set(self):
        return self.K

    def start(self):
        zero = frozen(np.zeros(self.K.shape))
        return Walk(0, self.K.center, zero, zero, 0)

    def act(self, state):
        return state.x

    def rounds_left(self, state):
        return 2 - state.rounds

    def update(self, state, seen):
        self.look(state, seen)
        rounds, open = (
            state.rounds + seen.rounds,
            frozen(state.open + seen.loss_gradient + seen.constraint_gradient),
        )
        if rounds < 2:
            return state._replace(t=state.t + seen.rounds, open=open, rounds=rounds)
        return self.close(state, frozen(state.total + open), state.t + seen.rounds)

    def close(self, state, total, t):
        x = state.x + 2.0 / (t + 2.0) * (self.K.lmo(total) - state.x)
        return state._replace(
            t=t, x=frozen(x), total=total, open=frozen(0.0 * total), rounds=0, calls=state.calls + 1
        )

    def look(self, state, seen):
        require_first_order(seen, self.K.shape, self.rounds_left(state))
        for part in (seen.loss_gradient, seen.constraint_gradient):
            if not np.isfinite(part).all():
                raise InvalidInput("Give finite gradients.")

    def bound(self, record):
        return Bound(None, None, "Nothing is promised.")

    def notes(self, state):
        return (
            () if self.horizon is None or state.t <= self.horizon else ("The horizon was passed.",)
        )

    @classmethod
    def examples(cls, K, horizon):
        return (cls(K, horizon),)


class Listens(Walker):
    """Right in everything, too: in a round that it knows the time of, it plays a vertex."""

    def with_info(self, state, known):
        return state._replace(extra=frozen(self.K.lmo(np.cos(known.time + np.arange(3.0)))))

    def act(self, state):
        return state.x if state.extra is None else state.extra

    def rounds_left(self, state):
        return 1

    def update(self, state, seen):
        return super().update(state._replace(extra=None), seen)


class PlaysOutside(Walker):
    def act(self, state):
        return frozen(1.5 * state.x)


class PlaysNaN(Walker):
    def close(self, state, total, t):
        return super().close(state, total, t)._replace(x=frozen(np.full(3, np.nan)))


class PlaysInSinglePrecision(Walker):
    def act(self, state):
        return frozen(state.x.astype(np.float32))


class LeavesTheDoorOpen(Walker):
    def act(self, state):
        return state.x.copy()


class ForgetsTheStateInAct(Walker):
    calls_so_far: ClassVar = itertools.count()

    def act(self, state):
        return self.K.lmo(np.roll(np.arange(3.0), next(self.calls_so_far)))


class ActsOtherwiseAhead(Walker):
    def acts(self, state, k):
        return (
            np.array([state.x, *[self.K.center] * (k - 1)]) if state.t else super().acts(state, k)
        )


class ActWrites(Walker):
    def act(self, state):
        if state.rounds == 1:
            state.open.flags.writeable = True
            state.open[0] += 1e-3
            state.open.flags.writeable = False
        return state.x


class KeepsTheCallersArray(Walker):
    def update(self, state, seen):
        new = super().update(state, seen)
        return new._replace(open=seen.loss_gradient) if new.rounds else new


class CountsTwice(Walker):
    def close(self, state, total, t):
        return super().close(state, total, t + 1)


class ForgetsCalls(Walker):
    def close(self, state, total, t):
        return super().close(state, total, t)._replace(calls=max(0, 3 - t))


class IgnoresTheBudget(Walker):
    def close(self, state, total, t):
        return super().close(state, total, t)._replace(calls=state.calls + 3)


class HasNoDistance(Walker):
    def close(self, state, total, t):
        return super().close(state, total, t)._replace(distance=math.nan)


class TakesNoRounds(Walker):
    def rounds_left(self, state):
        return 0 if state.t > 5 else super().rounds_left(state)


class RollsDice(Walker):
    dice: ClassVar = np.random.default_rng(0)

    def close(self, state, total, t):
        return (
            super()
            .close(state, frozen(total + 1e3 * self.dice.standard_normal(3)), t)
            ._replace(total=total)
        )


class RemembersEarlierRuns(Walker):
    def close(self, state, total, t):
        runs = self.__dict__.setdefault("runs", [0])
        runs[0] += 1
        return (
            super()
            .close(state, frozen(total + 1e3 * np.roll([0.0, 1.0, 2.0], runs[0])), t)
            ._replace(total=total)
        )


class LosesDigitsWhenSaved(Walker):
    def load(self, data):
        state = super().load(data)
        return state._replace(x=frozen(state.x.astype(np.float32).astype(float)))


class ForgetsTheOpenBlockWhenSaved(Walker):
    def load(self, data):
        state = super().load(data)
        return state._replace(open=self.start().open) if state.rounds else state


class ComesBackAsATuple(Walker):
    def load(self, data):
        return tuple(super().load(data))


class WritesIntoTheOldState(Walker):
    def close(self, state, total, t):
        new = super().close(state, total, t)
        state.x.flags.writeable = True
        state.x[:] = new.x
        state.x.flags.writeable = False
        return new

    def start(self):
        return super().start()._replace(x=frozen(np.full(3, 1 / 3)))


class SharesATableWithoutForking(Walker):
    def start(self):
        return super().start()._replace(extra=Log([], 0))

    def close(self, state, total, t):
        log = state.extra
        if len(log.rows) > 6:
            log = Log([], 0)
        log.rows[log.count :] = [*log.rows[log.count :], total]
        new = super().close(state, frozen(total + sum(log.rows)), t)
        return new._replace(total=total, extra=Log(log.rows, len(log.rows)))


class TakesABlockForARound(Walker):
    def update(self, state, seen):
        new = super().update(state, seen)
        return new._replace(x=frozen(self.K.lmo(new.total))) if seen.rounds == 2 else new


class TakesNaN(Walker):
    def look(self, state, seen):
        require_first_order(seen, self.K.shape, self.rounds_left(state))

    def close(self, state, total, t):
        return super().close(state, frozen(np.nan_to_num(total)), t)


class RefusesTooLate(Walker):
    def look(self, state, seen):
        require_first_order(seen, self.K.shape, self.rounds_left(state))

    def close(self, state, total, t):
        if not np.isfinite(total).all():
            raise InvalidInput("Give finite gradients.")
        return super().close(state, total, t)


class TakesTooManyRounds(Walker):
    def look(self, state, seen):
        super().look(state, seen._replace(rounds=1) if type(seen) is FirstOrder else seen)


class TakesNegativeViolations(Walker):
    def look(self, state, seen):
        super().look(state, seen._replace(violation=0.0) if type(seen) is FirstOrder else seen)


class StumblesOverNone(Walker):
    def look(self, state, seen):
        if seen.rounds:
            super().look(state, seen)


class TakesOtherSettings(Walker):
    def load(self, data):
        return Walker().load(data)

    def save(self, state):
        return Walker().save(state)


class TakesBrokenBytes(Walker):
    def load(self, data):
        try:
            return super().load(data)
        except TidewolfError as error:
            if "other settings" in str(error):
                raise
            return self.start()


class GuaranteesNaN(Walker):
    def bound(self, record):
        return Bound(math.nan, 1.0)


class GuaranteesNothingWithoutAReason(Walker):
    def bound(self, record):
        return Bound(1.0, None)


class GuaranteesANumber(Walker):
    def bound(self, record):
        return 3.0


class StopsAtTheHorizon(Walker):
    def look(self, state, seen):
        super().look(state, seen)
        if state.t >= 60:
            raise InvalidInput("The horizon is over.")


class LeavesAfterTheHorizon(Walker):
    def act(self, state):
        return frozen(2.0 * state.x) if state.t > 26 else state.x


class SaysNothingOfTheHorizon(Walker):
    def notes(self, state):
        return ()


class Mumbles(Walker):
    def notes(self, state):
        return ("horizon",) if super().notes(state) else ()


class Hoards(Walker):
    """One number a round."""

    def start(self):
        return super().start()._replace(extra=frozen(np.zeros(0)))

    def close(self, state, total, t):
        return super().close(state, total, t)._replace(extra=frozen(np.append(state.extra, [t, t])))


class CountsWhatItIsTold(Walker):
    def with_info(self, state, known):
        return state._replace(t=state.t + 1)


class FollowsAdviceOutside(Walker):
    def with_info(self, state, known):
        return state._replace(x=frozen(2.0 * known.advice["unexpected"]))


class ForgetsWhatWasKnown(Walker):
    """It keeps the point that was advised beside its state, where no file finds it."""

    points: ClassVar[dict[int, Any]] = {}

    def with_info(self, state, known):
        self.points[id(self), state.t] = frozen(self.K.lmo(np.arange(3.0) - state.t))
        return state._replace(extra=True)

    def act(self, state):
        return self.points.pop((id(self), state.t), state.x) if state.extra else state.x


class WritesWhatIsKnownIntoTheOldState(Walker):
    def with_info(self, state, known):
        state.open.flags.writeable = True
        state.open[0] += 1e-3
        state.open.flags.writeable = False
        return state


class GoesOnWithNothing(Walker):
    def with_info(self, state, known):
        return None if state.t else state


class RemembersOnTheSide(Walker):
    """It seems to have no use for what is known, and has one."""

    late: ClassVar[set[int]] = set()

    def with_info(self, state, known):
        self.late.update({id(self)} if known.time > 72000.0 else ())
        return state

    def close(self, state, total, t):
        return super().close(state, -total if id(self) in self.late else total, t)


@dataclass(frozen=True)
class ComparesByTuple(Walker):
    pass


class Undecorated(Learner[Walk]):
    needs, state_type, hard_set, fields = FirstOrder, Walk, Simplex(3), lambda self: {}
    start, act, rounds_left, update, bound, examples = (lambda self: None,) * 6


BROKEN = {
    PlaysOutside: "actions are members: 0.5 0.5 0.5",
    PlaysNaN: "actions are members: nan nan nan",
    PlaysInSinglePrecision: "actions are members: float32",
    LeavesTheDoorOpen: "actions are members: flags.writeable = False",
    ForgetsTheStateInAct: "acting changes nothing",
    ActsOtherwiseAhead: "acting changes nothing: acts(state",
    ActWrites: "acting changes nothing: changed the state of round 1",
    KeepsTheCallersArray: "states are read only: flags.writeable = False",
    CountsTwice: "rounds and calls are counted: t is 3 after 2 rounds",
    ForgetsCalls: "rounds and calls are counted: from 1 to 0 in round 4",
    IgnoresTheBudget: "rounds and calls are counted: calls_per_round is 0.5",
    HasNoDistance: "rounds and calls are counted: distance is nan",
    TakesNoRounds: "actions are members: rounds_left",
    RollsDice: "same rounds same run: played again",
    RemembersEarlierRuns: "same rounds same run: is played in place of",
    LosesDigitsWhenSaved: "saved states resume: other bytes",
    ForgetsTheOpenBlockWhenSaved: "saved states resume: after round 1",
    ComesBackAsATuple: "saved states resume: tuple",
    WritesIntoTheOldState: "",
    SharesATableWithoutForking: "old states stay good: two branches",
    TakesABlockForARound: "blocks are rounds: in round 2",
    TakesNaN: "bad feedback is refused: loss_gradient = [nan",
    RefusesTooLate: "bad feedback is refused: loss_gradient = [nan",
    TakesTooManyRounds: "bad feedback is refused: rounds = 0",
    TakesNegativeViolations: "bad feedback is refused: violation = -1.0",
    StumblesOverNone: "bad feedback is refused: raised AttributeError",
    TakesOtherSettings: "other settings are refused: another horizon",
    TakesBrokenBytes: "other settings are refused: short bytes",
    GuaranteesNaN: "bounds are stated: regret is nan",
    GuaranteesNothingWithoutAReason: "bounds are stated: violation is None",
    GuaranteesANumber: "bounds are stated: 3.0",
    StopsAtTheHorizon: ": The horizon is over.",
    LeavesAfterTheHorizon: "the horizon may be passed: infeasibility",
    SaysNothingOfTheHorizon: "the horizon may be passed: with a horizon of 10",
    Mumbles: "the horizon may be passed: 'horizon'",
    Hoards: "states do not grow: bytes",
    CountsWhatItIsTold: "information stays with the state: from 0 to 1",
    FollowsAdviceOutside: "information stays with the state: infeasibility",
    ForgetsWhatWasKnown: "information stays with the state: is not the point of",
    WritesWhatIsKnownIntoTheOldState: "information stays with the state: changed the state",
    GoesOnWithNothing: "information stays with the state: NoneType",
    RemembersOnTheSide: "information stays with the state: is played in place",
    ComparesByTuple: "learner prints and compares: eq=False",
    Undecorated: "learner prints and compares: dataclass",
}
"""The check that fails, and a word of its detail."""


def test_the_pattern_of_the_broken_learners_is_right():
    check_learner(Walker(), seed=1)
    check_learner(Walker(L2Ball((2, 2)), None))
    stream = hostile("switching", Simplex(3), 12, 0)
    timed = tw.Stream(stream.losses, stream.constraints, time=np.arange(12.0))
    check_learner(Listens(), timed)


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_learner_fails_the_fitting_check(kind):
    assert_fails(check_learner, LearnerChecks, kind(), BROKEN[kind])
