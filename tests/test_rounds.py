"""Whole rounds in a kernel: the same as the learner's own steps, the same bits however rounds come,
and what it leaves to others is left as it was.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tidewolf as tw
from covering import thinned
from streams import recorded
from tidewolf.core import errors, feedback, jit
from tidewolf.evaluation import recording
from tidewolf.evaluation.recording import Recording
from tidewolf.functions.base import AT_ONCE, lane_products
from tidewolf.functions.linear import Affine, Capacity, Linear, MaxAffine
from tidewolf.functions.loads import LoadCost, LoadLimit, MaxUtilization
from tidewolf.kernels import active_set, evaluate, large, rounds
from tidewolf.methods import compiled_rounds, kernel_functions
from tidewolf.methods.steps.lyapunov import LyapunovWeights
from tidewolf.projection.active import ActiveSet, ExactPoint
from tidewolf.sets import CappedSimplex, FlowPolytope, Simplex

EPS = float(np.finfo(np.float64).eps)
LADDER = [(f"{i}", f"{i + 1}") for i in range(4)] + [(f"{i}", f"{i + 2}") for i in range(3)]
LADDER += [("0", "1"), ("3", "nowhere"), ("1", "4")]
"""Parallel arcs, arcs side by side, and one that leads nowhere."""
SETS = {
    "simplex": Simplex(11),
    "of total 3": Simplex(4, total=3.0),
    "at most": Simplex(3, total=0.5, at_most=True),
    "one entry": Simplex(1, at_most=True),
    "capped": CappedSimplex(9, cap=0.4),
    "flow": FlowPolytope.from_edges(LADDER, source="0", target="4"),
}
seeds = st.integers(0, 2**32 - 1)


def uncompiled(learner):
    """The same learner without its kernel."""
    learner.__dict__["compiled"] = None
    return learner


def stream(K, kind, count, seed=0, scale=1.0):
    """Losses and limits of some kind; breaches are about as frequent as not."""
    rng, n = np.random.default_rng(seed), math.prod(K.shape)
    costs, c = scale * rng.standard_normal((count, n)), K.center
    full, rows = c * rng.uniform(0.5, 2.0, (count, n)), rng.standard_normal((count, n))
    many = rng.standard_normal((count, 3, n))
    offsets = many @ c + 0.1 * K.radius * rng.standard_normal((count, 3))
    losses, limits = Linear(costs), tw.functions.Unlimited(K.shape, count)
    if kind == "capacities":
        limits = Capacity(full)
    elif kind == "affine":
        losses = Affine(costs, costs[:, 0])
        limits = Affine(rows, rows @ c - 0.05 * K.radius)
    elif kind == "maxima":
        losses, limits = MaxAffine(many[:, ::-1], offsets), MaxAffine(many, offsets)
    elif kind in ("loads", "utilisation"):
        pairs, incidence = np.arange(n) % 2, (rng.random((3, n)) < 0.6).astype(float)
        demands, room = np.asfortranarray(scale * rng.random((count, 2))), rng.random((count, 3))
        losses = LoadCost(incidence, demands, room, pairs)
        limits = LoadLimit(incidence, demands, demands @ np.ones((2, 3)) * room, pairs)
        if kind == "utilisation":
            losses = MaxUtilization(incidence, demands, 0.1 + room[0], pairs)
            limits = MaxUtilization(incidence, demands, 0.1 + room[0], pairs, 0.3 * scale)
    elif kind == "elsewhere in memory":
        losses, limits = Linear(np.asfortranarray(costs)), Capacity(full[:, ::-1])
    elif kind == "mostly across":
        losses = Linear(100.0 + 0.5 * np.sign(costs))
        limits = Affine(100.0 + 0.5 * np.sign(rows), (100.0 + 0.5 * np.sign(rows)) @ c - 0.01)
    elif kind == "across":  # constant losses, and now and then limits that are nearly so
        losses = Linear(np.repeat(costs[:, :1], n, axis=1) * 3.7)
        rows = np.where(np.arange(count)[:, None] % 3, rows, 100.0 + 1e-3 * rows)
        limits = Affine(rows, rows @ c - 0.01 * K.radius)
    elif kind == "ties":
        losses, limits = Linear(np.round(costs)), Capacity(np.tile(c * 1.25, (count, 1)))
    elif kind == "nothing":
        losses = Linear(costs * (np.arange(count)[:, None] % 4 == 0))
    return tw.Stream(losses, limits)


KINDS = (
    "capacities", "affine", "maxima", "utilisation", "unlimited", "elsewhere in memory",
    "mostly across",
)  # fmt: skip
KINDS += ("across", "ties", "nothing", "loads")


def numbers(recording):
    """All that was recorded."""
    state, audit = recording.state, recording.audit
    return {
        "losses": recording.losses, "violations": recording.violations,
        "distances": recording.distances, "calls": recording.calls, "churn": recording.churn,
        "last": recording.movement.last, "means": recording.trajectory.means,
        "trajectory": np.array(recording.trajectory.parts()[1:3]), "each": recording.each,
        "peaks": recording.peaks.used,
        **{f"breaches {i}": part for i, part in enumerate(recording.breaches.parts())},
        "membership": np.array(recording.membership.parts()[1:4]),
        "infeasibility": np.array(recording.membership.worst),
        "audit": np.array([audit.updates, *audit.numbers()[-2:], len(audit.sample)]),
        "ends": np.array(recording.ends), **told(state),
    }  # fmt: skip


def told(state):
    """What a state holds, as arrays."""
    dual, active, own = state.dual, state.point.active, state.descents[0].sums
    weights = np.ones(1) if isinstance(active, ExactPoint) else active.weights
    return {
        "t": np.array(state.t),
        "x": state.point.x,
        "y": state.point.y,
        "before": state.point.before_projection,
        "apart": np.array(state.distance),
        "weights": weights[weights > 0.0],
        "dual": np.array([*dual[:2], *dual.slopes, *dual[3:7]], dtype=float),
        "gradients": np.array([*(each - each.mean() for each in dual.sums[:2])]),
        "sharp": np.array([*(each - each.mean() for each in dual.sharp[:2])]),
        "products": np.array([*dual.sums[2:], *dual.sharp[2:]]),
        "descent": np.concatenate(own),
        "bank": np.array([state.oracle_budget, state.calls]),
    }


COUNTS = {"calls", "trajectory", "membership", "audit", "ends", "t", "breaches 0"}


def assert_alike(ours, theirs, tolerance, size):
    for name, mine in ours.items():
        other = theirs[name]
        if name == "breaches 0":  # of rounds that are as bad, rounding chooses the worst
            mine, other = (np.delete(rows, 1, axis=0) for rows in (mine, other))
        if name in COUNTS:
            np.testing.assert_array_equal(mine, other, err_msg=name)
        else:
            room = {"rtol": tolerance, "atol": tolerance * size}
            np.testing.assert_allclose(mine, other, **room, err_msg=name)


def assert_same(ours, theirs):
    for name, mine in ours.items():
        assert np.asarray(mine).tobytes() == np.asarray(theirs[name]).tobytes(), name


# --- the learner's rounds -------------------------------------------------------------------------


def both_ways(K, played, **options):
    """Recordings of a run in the kernel, and of the same without."""
    ours = recorded(tw.LyapunovDescent(K, **options), played)
    return ours, recorded(uncompiled(tw.LyapunovDescent(K, **options)), played)


@thinned(2, K=SETS, kind=KINDS)
def test_a_run_in_the_kernel_is_the_run_without(K, kind):
    given_to = {"capacities": {"horizon": 40}, "ties": {"calls_per_round": 0.3}}
    assert tw.LyapunovDescent(K).compiled is not None
    ours, theirs = both_ways(K, stream(K, kind, 50, seed=1), **given_to.get(kind, {}))
    assert_alike(numbers(ours), numbers(theirs), 1e-9, max(1.0, float(np.abs(theirs.losses).max())))
    one, other = (recording.audit for recording in (ours, theirs))
    np.testing.assert_allclose(one.numbers()[:3], other.numbers()[:3], atol=1e-12)
    last = (np.array([*audit.parts()[4]]) for audit in (one, other))
    np.testing.assert_allclose(*last, atol=1e-9 * K.radius)


LARGE = {
    "simplex": lambda n: Simplex(n + 1, total=3.0),
    "capped": lambda n: CappedSimplex(n + 1, cap=1.7 / (n + 1)),
    "box": lambda n: tw.sets.Box(-np.ones(n + 1), np.linspace(0.5, 2.0, n + 1)),
}


@pytest.mark.parametrize("options", [{}, {"target_violation": 0.01}, {"tolerance": 1e-6}])
@pytest.mark.parametrize("n", [1, large.BLOCK + 44])
@thinned(2, make=LARGE, kind=("capacities", "affine", "unlimited", "nothing"))
def test_large_points_are_played_as_small_ones(make, kind, n, options, monkeypatch):
    K, due = make(n), []
    played = stream(K, kind, 40, seed=n, scale=1e3)
    for least in (1, n + 2):
        monkeypatch.setattr(compiled_rounds, "LARGE", least)
        learner = tw.LyapunovDescent(K, **options)
        assert learner.compiled.is_large is (least == 1)
        due.append(recorded(learner, played))
    assert_alike(*map(numbers, due), 1e-8, max(1.0, float(np.abs(due[1].losses).max())))
    assert due[0].audit.numbers()[:3] == pytest.approx(due[1].audit.numbers()[:3], abs=1e-9)


@pytest.mark.parametrize("name", ["simplex", "capped"])
def test_large_points_do_not_see_what_all_costs_share(name, monkeypatch):
    monkeypatch.setattr(compiled_rounds, "LARGE", 1)
    K, rng = LARGE[name](2), np.random.default_rng(0)
    costs, limits = rng.integers(-9, 9, (30, 3)), Capacity(np.full((30, 3), K.total / 3.0))
    plain, far = (tw.Stream(Linear(costs + shared), limits) for shared in (0.0, 2.0**40))
    learner = tw.LyapunovDescent(K)
    for one, other in zip(tw.play(learner, plain), tw.play(learner, far), strict=True):
        np.testing.assert_allclose(one.x, other.x, atol=1e-8)


@pytest.mark.parametrize("name", ["simplex", "box"])
def test_large_points_have_the_same_bits_however_they_come(name, tmp_path, monkeypatch):
    monkeypatch.setattr(compiled_rounds, "LARGE", 1)
    assert_same_however_they_come(LARGE[name](9), "capacities", tmp_path)


SETTINGS = {
    "caution": [1e-6, 1.0, 10.0, 1e6],
    "tolerance": [None, 1e-6, 0.5],
    "calls_per_round": [0.01, 0.4, 1.0, 3.0],
    "horizon": [None, 1, 1000],
    "step_scale": [0.1, 1.0, 8.0],
}


@pytest.mark.soak_examples(30)
@given(
    name=st.sampled_from(["at most", "of total 3", "one entry", "simplex"]),
    kind=st.sampled_from(KINDS),
    seed=seeds,
    scale=st.sampled_from([1e-60, 1e-3, 1.0, 1e6, 1e100]),
    options=st.fixed_dictionaries({name: st.sampled_from(some) for name, some in SETTINGS.items()}),
)
@settings(max_examples=12)
def test_under_any_settings(name, kind, seed, scale, options):
    K = SETS[name]
    ours, theirs = both_ways(K, stream(K, kind, 25, seed, scale), **options)
    mine, other = numbers(ours), numbers(theirs)
    np.testing.assert_allclose(mine["means"], other["means"], atol=1e-6 * K.radius)
    np.testing.assert_array_equal(mine["calls"], other["calls"])
    for part in ("dual", "descent", "bank", "violations"):
        sizes = np.abs(other[part][np.isfinite(other[part])])
        rest = 1e-6 * sizes.max(initial=0.0)  # as far as points may be apart
        np.testing.assert_allclose(mine[part], other[part], rtol=1e-6, atol=rest, err_msg=part)


def test_violations_without_end_are_counted_in_units_that_grow():
    """Exponents go past 256, more than once, and sums are in their units."""
    K, count = Simplex(3), 700
    costs = Linear(np.tile([1.0, 0.0, 0.3], (count, 1)))
    for row, least in (([1.0, 3.0, 2.0], -50.0), ([0.0, 1.0, 0.0], -1.0)):
        limits = Affine(np.tile(row, (count, 1)), np.full(count, least))
        ours, theirs = both_ways(K, tw.Stream(costs, limits), horizon=1, caution=2.0)
        assert ours.state.dual.impossible or least > -50.0
    assert_alike(numbers(ours), numbers(theirs), 1e-9, 1.0)


@pytest.mark.parametrize("name", ["simplex", "capped"])
def test_losses_across_the_set_are_none_beside_limits_that_nearly_are(name):
    """What rounding leaves of them is 0, whatever becomes of the limits."""
    K, rng = SETS[name], np.random.default_rng(0)
    learner = tw.LyapunovDescent(K)
    for across in (0.1, 3.7, 1e3 / 3.0):
        row = 100.0 + 0.5 * np.sign(rng.standard_normal(K.n))
        limits = Affine([row], [float(row @ K.center) - 0.01])
        both = (tw.Stream(Linear([c]), limits) for c in (np.full(K.n, across), np.zeros(K.n)))
        ends = [told(recorded(learner, played).state) for played in both]
        assert_same(*ends)


# --- the same bits --------------------------------------------------------------------------------


SOME = ("simplex", "at most", "capped", "flow")


@thinned(2, name=SOME, kind=("capacities", "affine", "maxima"))
def test_rounds_have_the_same_bits_however_they_come(name, kind, tmp_path):
    assert_same_however_they_come(SETS[name], kind, tmp_path)


def assert_same_however_they_come(K, kind, folder):
    played, learner = stream(K, kind, 60, seed=3), tw.LyapunovDescent(K)
    run = recorded(learner, played)
    *_, last = tw.play(learner, played)
    assert_same(numbers(run), numbers(recorded(learner, played, cuts=(1, 23, 59))))
    first, second = tw.Session(learner), tw.Session.open(folder / "it.db", learner)
    by_arrays = tw.Session(learner)
    with second:
        for t in range(len(played)):
            one = slice(t, t + 1)
            loss, limit = played.losses.view(one), played.constraints.view(one)
            first.observe(loss=loss, constraint=limit)
            second.observe(loss=loss, constraint=limit)
            if kind == "capacities":
                by_arrays.observe(costs=played.losses.C[t], capacities=played.constraints.c[t])
        same = [last.state, first.state, second.state]
        for state in [*same, by_arrays.state] if kind == "capacities" else same:
            assert_same(told(run.state), told(state))


@given(n=st.sampled_from([1, 7, 8, 9, 40, 1003]), pieces=st.integers(1, 5), seed=seeds)
@example(n=2 * AT_ONCE + 11, pieces=1, seed=0)
@settings(max_examples=15)
def test_products_have_the_bits_of_the_kernel(n, pieces, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((pieces, n)) * 10.0 ** rng.integers(-8, 8, (pieces, n))
    x = rng.random(n)
    found = np.array([active_set.dot(row, x) for row in A])
    np.testing.assert_array_equal(lane_products(A, x), found)
    np.testing.assert_array_equal(lane_products(np.asfortranarray(A)[::-1], x), found[::-1])
    assert Affine(A[:1], [0.25]).values(x)[0] == found[0] - 0.25
    assert Linear(A[:1]).values(x)[0] == found[0]
    np.testing.assert_array_equal(MaxAffine(A[None], np.ones((1, pieces))).pieces(x)[0], found - 1)
    if n <= 1003:
        np.testing.assert_array_equal([active_set.dot.plain(row, x) for row in A], found)
        np.testing.assert_array_equal([in_eight_sums(row, x) for row in A], found)
        assert math.isclose(active_set.dot(A[0], x), math.fsum(A[0] * x), abs_tol=1e-6)


def in_eight_sums(a, b):
    lanes, whole = [0.0] * 8, len(a) - len(a) % 8
    for i in range(whole):
        lanes[i % 8] += a[i] * b[i]
    s0, s1, s2, s3, s4, s5, s6, s7 = lanes
    total = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
    for i in range(whole, len(a)):
        total += a[i] * b[i]
    return total


# --- what it leaves to others ---------------------------------------------------------------------


ODD = {
    "a NaN": (np.array([math.nan, 0.0, 1.0]), None),
    "infinite": (np.array([math.inf, 0.0, 1.0]), None),
    "too steep": (np.array([1e200, 0.0, 1.0]), None),
    "hardly steep": (np.array([1e-200, 0.0, 1.0e-200]), None),
    "capacities of NaN": (np.array([0.0, 0.0, 1.0]), np.array([math.nan, 1.0, 1.0])),
    "capacities below 0": (np.array([0.0, 0.0, 1.0]), np.array([-1.0, 1.0, 1.0])),
    "above what was given": (np.array([5.0, 0.0, 1.0]), None),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rounds_that_need_a_sentence_change_nothing_and_the_next_goes_on(name):
    K, (costs, capacities) = Simplex(3), ODD[name]
    given = {"loss_lipschitz": 2.0} if name == "above what was given" else {}
    said, ends = [], []
    for made in (lambda learner: learner, uncompiled):
        session = tw.Session(made(tw.LyapunovDescent(K, **given)))
        session.observe(costs=np.array([1.0, 0.0, 0.5]), capacities=np.array([0.3, 1.0, 0.2]))
        before = told(session.state)
        try:
            session.observe(costs=costs, capacities=capacities)
            said.append("")
        except errors.TidewolfError as error:
            said.append(f"{type(error).__name__}: {error}")
            assert_same(before, told(session.state))
        session.observe(costs=np.array([0.0, 1.0, 0.5]), capacities=np.array([0.3, 0.4, 0.6]))
        ends.append(told(session.state))
    assert said[0] == said[1]
    assert (said[0] == "") == (name in ("capacities below 0", "hardly steep"))
    assert_alike(*ends, 1e-9, 1.0)


def test_a_run_stops_with_the_same_sentence_in_the_same_round():
    K, rng = Simplex(4), np.random.default_rng(0)
    costs, A = rng.standard_normal((40, 4)), rng.standard_normal((40, 2, 4))
    for steep_costs, steep_A in ((1e300, 1.0), (1.0, 1e300)):
        C, rows = costs.copy(), A.copy()
        C[33] *= steep_costs
        rows[33, -1] *= steep_A
        said = []
        for made in (lambda learner: learner, uncompiled):
            spoilt = tw.Stream(Linear(C), MaxAffine(rows, np.full((40, 2), 0.5)))
            recording = Recording(made(tw.LyapunovDescent(K)), spoilt)
            with pytest.raises(errors.TidewolfError) as caught:
                for _ in recording.advance():
                    pass
            said.append((str(caught.value), recording.t))
        assert said[0] == said[1]


def test_a_piece_that_is_no_number_is_seen_behind_others():
    A, b, x = np.zeros((2, 9)), np.array([0.0, 1.0]), np.full(9, 0.1)
    A[1, :2] = math.inf, -math.inf
    for way in (evaluate.evaluate, evaluate.evaluate.plain):
        with np.errstate(all="ignore"):
            value = way(evaluate.MAX_AFFINE, A, b, 2, 0, x, np.empty(2), np.empty(9))
        assert math.isnan(value)


@dataclass(frozen=True, eq=False, repr=False)
class Halved(Simplex):
    """A simplex whose owner says otherwise what lies within it."""

    def tangent(self, direction):
        return 0.5 * super().tangent(direction)


class Careful(tw.LyapunovDescent):
    """A learner whose owner weighs otherwise."""

    def limit_price(self, state):
        return 2.0 * super().limit_price(state)


def test_what_somebody_made_of_a_set_or_learner_is_not_played_by_the_kernel():
    assert tw.LyapunovDescent(Halved(3)).compiled is None
    assert Careful(Simplex(3)).compiled is None
    for options in ({"block": 2}, {"per_constraint": True}, {"max_move": 0.1}):
        assert tw.LyapunovDescent(Simplex(3), **options).compiled is None
    assert tw.LyapunovDescent(Simplex(1)).compiled is None  # a point
    assert tw.LyapunovDescent(Simplex(3)).compiled is not None


def test_functions_that_it_cannot_read_are_evaluated_outside():
    curved = tw.functions.Quadratic(np.eye(3), np.zeros((4, 3)))
    for batch in (curved, Linear(np.zeros((4, 3), dtype=np.float32))):
        assert kernel_functions.StreamFunctions.of(tw.Stream(batch)) is None
    stream = tw.Stream(curved, tw.functions.Unlimited((3,), 4))
    assert recorded(tw.LyapunovDescent(Simplex(3)), stream).done


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: Simplex(120), lambda: CappedSimplex(60, cap=0.05)])
def test_tables_grow_and_are_made_smaller_inside_long_runs(make):
    """Rows without room, idle ones that leave, and more atoms than a point needs."""
    K = make()
    played = stream(K, "capacities", 400, seed=2)
    options = {"calls_per_round": 3.0, "tolerance": 1e-5}
    ours = recorded(tw.LyapunovDescent(K, **options), played)
    theirs = recorded(uncompiled(tw.LyapunovDescent(K, **options)), played)
    assert_alike(numbers(ours), numbers(theirs), 1e-8, 1.0)
    active = ours.state.point.active
    assert len(active) <= K.dimension + 1 + rounds.SPARE
    table, count = active.atoms, len(active.weights)
    vertices = [vertex.dense(K.center) for vertex in table.vertices[:count]]
    products = np.array(vertices) @ np.array(vertices).T
    np.testing.assert_allclose(table.gram[:count, :count], products, atol=1e-14)
    np.testing.assert_allclose(active.weights @ np.array(vertices), active.x, atol=1e-12)
    assert len(table.gram) < 4 * len(K.center) + 200


# --- its parts ------------------------------------------------------------------------------------


@given(
    seed=seeds,
    violation=st.sampled_from([-1.0, 0.0, 1e-9, 0.3, 1e6]),
    slopes=st.sampled_from([(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (2.0, 0.5)]),
    past=st.sampled_from([0, 3, 900]),
)
@example(seed=0, violation=0.3, slopes=(1.0, 0.0), past=900)  # units change
def test_weights_are_those_of_the_ledger(seed, violation, slopes, past):
    K, rng = SETS["simplex"], np.random.default_rng(seed)
    weights = LyapunovWeights(K, 3.0)
    d = np.array([K.tangent(rng.standard_normal(K.shape)) for _ in range(2)])
    d *= (np.array(slopes) / np.sqrt((d * d).sum(axis=1)))[:, None]
    learner = tw.LyapunovDescent(K, caution=3.0)
    state = learner.start()
    dual = state.dual._replace(violation=4.0 * past, rounds=past)
    if past:
        dual = dual._replace(slopes=type(dual.slopes)(1.0, 0.1), least_ratio=0.5, paid=2.0)
    start = learner.compiled.begin(state._replace(dual=dual))
    seen = feedback.FirstOrder(d[0], max(violation, 0.0), d[1] * (violation > 0.0), *slopes, 1)
    wanted = weights.weigh(dual, seen, state.point.x)
    numbers = learner.compiled.settings
    for way in (rounds.weigh, rounds.weigh.plain):
        after, along = start.copy(), d.copy()
        where = (state.point.x, K.center, np.zeros(0), after.arrays.gradients, after.arrays.sharp)
        value = way(after.arrays.s, numbers, violation, slopes[1], along, np.array(slopes), *where)
        assert value == pytest.approx(wanted.grad.penalty_value, rel=1e-12)
        np.testing.assert_allclose(along[0], wanted.grad.g, rtol=1e-12, atol=1e-15)
        for name in ("dual", "gradients", "sharp", "products"):
            due = told(state._replace(dual=wanted.dual))[name]
            np.testing.assert_allclose(told(after.undecided())[name], due, rtol=1e-12, atol=1e-12)


# --- ties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simplex", "capped", "flow"])
@pytest.mark.parametrize("kind", ["capacities", "ties", "mostly across"])
def test_rounding_does_not_choose_between_vertices(name, kind):
    """Functions that are off by an ulp or two lead to the same vertices, and nearly the same
    points.
    """
    K = SETS[name]
    played, found, rng = stream(K, kind, 120, seed=7), [], np.random.default_rng(0)
    for off in (0.0, 4.0 * EPS):
        noise = 1.0 + off * rng.uniform(-1.0, 1.0, played.losses.C.shape)
        own = tw.Stream(Linear(played.losses.C * noise), played.constraints)
        found.append(recorded(tw.LyapunovDescent(K), own))
    one, other = (recording.state.point.active for recording in found)
    np.testing.assert_array_equal(found[0].calls, found[1].calls)
    mine, theirs = ([v.key() for v in active.parts()["vertices"]] for active in (one, other))
    assert mine == theirs
    np.testing.assert_allclose(one.x, other.x, atol=1e-9)


# --- ensembles ------------------------------------------------------------------------------------


def ensemble_told(state):
    """What a state of an ensemble holds, as arrays."""
    dual, cells, accounts = state.dual, state.cells, state.accounts
    return {
        "t": np.array([state.t, state.calls, state.solves]),
        "x": state.upcoming.x,
        "p": state.upcoming.p,
        "y": np.array([own.y for own in state.descents]),
        "members": np.array([active.x for active in state.pool.actives]),
        "steps": np.array([own.sums for own in state.descents]),
        "distances": np.array([own.distance for own in state.descents]),
        "mixer": np.array([*state.mixer.totals, *state.mixer[1:]]),
        "dual": np.array(
            [*dual[:2], *dual.slopes, *dual[3:7], *dual.sums[2:], *dual.sharp[2:]], dtype=float
        ),
        "gradients": np.array([*dual.sums[:2], *dual.sharp[:2], *cells.loss, *cells.limit]),
        "unknown": np.array(cells[2:]),
        "bank": np.array(state.oracle_budget),
        **{name: np.asarray(each, dtype=float) for name, each in accounts._asdict().items()},
        **{f"adviser {i}": resolve_told(own) for i, own in enumerate(state.advisers)},
    }


def resolve_told(own):
    """What an adviser that re-solves remembers, as one array."""
    rounds_seen = own.recent.rounds
    seen = [(r.number, *r.loss.values(own.x), *r.limit.values(own.x)) for r in rounds_seen]
    numbers = [own.drops.counted, own.upcoming, own.lag, own.decided_lag]
    return np.concatenate([numbers, own.drops.mean2, own.x, np.ravel(seen)])


class Dozing(tw.experts.Season):
    """A context that is unknown in every fifth round."""

    def features(self, info, number):
        return None if number % 5 == 0 else super().features(info, number)


ENSEMBLES = {
    "plain": {},
    "few calls": {"calls_per_round": 0.5, "step_scales": (1.0, 0.1)},
    "calls enough": {"calls_per_round": 30.0, "tolerance": 0.5},
    "season": {"experts": [tw.experts.Season(7, cells=3), tw.experts.Restarts(5, 3)]},
    "dozing": {"experts": [Dozing(7, cells=3)], "horizon": 1, "caution": 0.1},
}
RESOLVING = {
    "re-solving": {
        "experts": [tw.experts.Season(6, cells=2), tw.experts.Restarts(4, 3), tw.experts.Resolve()]
    },
    "two that re-solve": {"experts": [tw.experts.Resolve(5, (2.0, 0.0)), tw.experts.Resolve()]},
}


@thinned(2, name=SOME, kind=("capacities", "affine", "mostly across"), options=ENSEMBLES)
def test_an_ensemble_in_the_kernel_is_the_one_without(name, kind, options):
    """A whole run, round by round, and rounds one at a time."""
    assert_both_ways(SETS[name], kind, options)


RESOLVED = [("simplex", "capacities"), ("flow", "capacities"), ("capped", "affine")]


@pytest.mark.parametrize("options", RESOLVING.values(), ids=RESOLVING)
@pytest.mark.parametrize(("name", "kind"), RESOLVED)
def test_an_ensemble_that_re_solves_in_the_kernel_is_the_one_without(name, kind, options):
    """Capacities are re-solved in the same pass, other limits between two rounds."""
    assert_both_ways(SETS[name], kind, options)


def assert_both_ways(K, kind, options, tolerance=1e-7):
    played = stream(K, kind, 40, seed=9)
    own, naive = tw.Ensemble(K, **options), uncompiled(tw.Ensemble(K, **options))
    assert own.compiled is not None
    ours, theirs = recorded(own, played), recorded(naive, played)
    for part in ("losses", "violations", "calls", "distances", "solves", "measures"):
        one, other = np.array(getattr(ours, part)), np.array(getattr(theirs, part))
        np.testing.assert_allclose(one, other, atol=0.1 * tolerance, err_msg=part)
    assert_alike(ensemble_told(ours.state), ensemble_told(theirs.state), tolerance, 1.0)
    *_, ended = tw.play(own, played)
    assert_alike(ensemble_told(ended.state), ensemble_told(theirs.state), tolerance, 1.0)


@pytest.mark.parametrize("name", ["simplex", "flow"])
@pytest.mark.parametrize("kind", ["plain", "season", "two that re-solve", "re-solving"])
def test_live_rounds_of_an_ensemble_are_those_of_a_run(name, kind):
    """Whatever is asked in between; to go back and play again changes nothing, nor does it change
    what another session does from there.
    """
    K, options = SETS[name], (ENSEMBLES | RESOLVING)[kind]
    played = stream(K, "capacities", 30, seed=5)
    whole = [one.x for one in tw.play(uncompiled(tw.Ensemble(K, **options)), played)]
    costs, limits = played.losses.C, played.constraints.c
    session, other, t = tw.Session(tw.Ensemble(K, **options)), None, 0
    for step in range(38):
        np.testing.assert_allclose(session.play(), whole[t], atol=1e-9 * K.radius)
        if step in (7, 20):
            shown = session.play().copy()
            assert session.explain().round == t
            np.testing.assert_array_equal(session.play(), shown)  # the same bits, however made
        session.observe(costs=costs[t], capacities=limits[t])
        t += 1
        if step == 16:
            other = copy.deepcopy(session)
            session.rollback(t := t - 8)
        if step == 25:
            for s in range(17, 27):
                np.testing.assert_allclose(other.play(), whole[s], atol=1e-9 * K.radius)
                other.observe(costs=costs[s], capacities=limits[s])
    assert session.rounds == t == 30


@pytest.mark.parametrize("kind", ["plain", "season", "two that re-solve"])
def test_a_session_in_memory_has_the_bits_of_one_in_a_file(kind, tmp_path):
    """The first keeps the arrays of the kernel, the other a state for every round."""
    K, options = SETS["flow"], (ENSEMBLES | RESOLVING)[kind]
    played = stream(K, "capacities", 40, seed=8)
    memory = tw.Session(tw.Ensemble(K, **options))
    with tw.Session.open(tmp_path / "session.db", tw.Ensemble(K, **options)) as file:
        for costs, limits in zip(played.losses.C, played.constraints.c, strict=True):
            np.testing.assert_array_equal(memory.play(), file.play())
            for session in (memory, file):
                session.observe(costs=costs, capacities=limits)
        assert memory.learner.save(memory.state) == file.learner.save(file.state)


def test_asking_between_rounds_gives_the_bits_of_re_solving_in_the_kernel(monkeypatch):
    """As it is done if a round in between has other functions."""
    K, options = SETS["flow"], RESOLVING["two that re-solve"]
    played = stream(K, "capacities", 30, seed=1)
    one = recorded(tw.Ensemble(K, **options), played)
    monkeypatch.setattr(compiled_rounds.Resolving, "of", lambda *given: None)
    other = recorded(tw.Ensemble(K, **options), played)
    for part in ("losses", "violations", "calls", "solves"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert one.learner.save(one.state) == other.learner.save(other.state)


def test_memory_is_used_again_only_if_no_part_of_a_state_is_left(monkeypatch):
    monkeypatch.setattr(compiled_rounds, "MANY", 1)
    K, places = SETS["simplex"], set()
    given, plain = stream(K, "capacities", 30), uncompiled(tw.LyapunovDescent(K))
    due = [told(played.state) for played in tw.play(plain, given)]
    kept, points = [], []
    for t, played in enumerate(tw.play(tw.LyapunovDescent(K), given)):
        places.add(played.state.dual.sums.loss.__array_interface__["data"][0])
        points.append(played.x.copy())
        if t % 7 < 3:
            kept.append((t, played.state))
    assert len(places) < 30
    for t, state in kept:
        assert_alike(told(state), due[t], 1e-12, 1.0)
    np.testing.assert_allclose(points[1:], [each["x"] for each in due[:-1]], atol=1e-12)


def test_rounds_from_one_state_do_not_see_each_other():
    """Though states share rows of functions, and the table of vertices."""
    K, played = SETS["flow"], stream(SETS["flow"], "capacities", 12, seed=6)
    learner = tw.Ensemble(K, **RESOLVING["two that re-solve"])
    kernel = learner.compiled

    def after(start, rounds, sign):
        for t in rounds:
            costs, limits = sign * played.losses.C[t : t + 1], played.constraints.c[t : t + 1]
            for row in (costs, limits):
                row.setflags(write=False)
            start = kernel.play(start, kernel_functions.Functions.costs(costs, limits), 0, 1).after
        return start

    begun, again = (after(kernel.begin(learner.start()), range(6), 1.0) for _ in range(2))
    alone, other = after(begun, range(6, 12), -1.0).x, after(again, range(6, 12), 1.0).x
    assert not np.allclose(alone, other, atol=1e-6 * K.radius)
    np.testing.assert_array_equal(after(again, range(6, 12), -1.0).x, alone)
    np.testing.assert_array_equal(after(again, range(6, 12), 1.0).x, other)


@pytest.mark.parametrize("kind", ["capacities", "affine"])
@pytest.mark.parametrize("name", ["simplex", "capped", "flow", "box", "product"])
def test_short_runs_are_interpreted_and_the_same(name, kind, monkeypatch):
    """By a rule on rounds and entries, whatever is compiled already."""
    sets = {"box": tw.sets.Box(np.zeros(5), np.ones(5)), "product": tw.sets.SimplexProduct([3, 4])}
    K = (SETS | sets)[name]
    played, own = stream(K, kind, 25, seed=4), {"experts": [tw.experts.Resolve()]}
    for make, options in ((tw.LyapunovDescent, {}), (tw.Ensemble, {}), (tw.Ensemble, own)):
        compiled = recorded(make(K, **options), played)
        with monkeypatch.context() as patch:
            patch.setattr(recording, "SHORT", 25 * K.shape[0])
            patch.setattr(jit.Kernel, "compiled", property(lambda kernel: pytest.fail("compiled")))
            interpreted = recorded(make(K, **options), played)
            assert interpreted.state.t == 25  # with the point of the next round
        for part in ("losses", "violations", "calls", "distances", "solves"):
            one, other = np.array(getattr(compiled, part)), np.array(getattr(interpreted, part))
            np.testing.assert_allclose(one, other, atol=1e-9, err_msg=part)


@pytest.mark.parametrize("name", SETS)
def test_a_search_in_python_has_the_bits_of_machine_code(name, monkeypatch):
    """So that it may begin in Python, and go on in machine code."""
    ends = []
    for enough in (-1, 10**9):
        monkeypatch.setattr(jit, "ENOUGH", enough)
        rng, active = np.random.default_rng(2), ActiveSet.start(SETS[name])
        for _ in range(30):
            y = active.x + SETS[name].radius * rng.normal(size=len(active.x))
            active = active.nearest(SETS[name], y, 1e-6, 5).active
        ends += [active.x.tobytes() + active.weights.tobytes()]
    assert ends[0] == ends[1]


def test_an_ensemble_counts_in_units_that_grow():
    """Exponents go past 256 and all sums are in their units."""
    K, options = Simplex(3), {"experts": [tw.experts.Season(6, cells=2)], "caution": 2.0}
    given, ends = stream(K, "affine", 40, seed=3), []
    for learner in (tw.Ensemble(K, **options), uncompiled(tw.Ensemble(K, **options))):
        *_, begun = tw.play(learner, given[:10])
        dual = begun.state.dual._replace(violation=1e4)
        small = [  # steps that are small in the old units
            own._replace(sums=own.sums._replace(inverse_steps=np.array([1e76])))
            for own in begun.state.descents
        ]
        state = begun.state._replace(dual=dual, descents=tuple(small))
        *_, ended = tw.play(learner, given[10:], state)
        ends.append(ensemble_told(ended.state))
    assert ended.state.dual.exponent >= 256
    assert_alike(*ends, 1e-7, 1.0)
    np.testing.assert_allclose(*(told_of["steps"] for told_of in ends), rtol=1e-6)


def test_rounds_are_compiled_once_for_all_sets():
    """Runs, loops and live rounds, one descent and many: arrays of one kind."""
    cases = [(SETS["flow"], RESOLVING["re-solving"])]
    cases += [(K, options) for K in SETS.values() for options in (None, {}, ENSEMBLES["season"])]
    for K, options in cases:
        played = stream(K, "capacities", 12, seed=2)
        learner = tw.LyapunovDescent(K) if options is None else tw.Ensemble(K, **options)
        recorded(learner, played)
        list(tw.play(learner, played))
        session = tw.Session(learner)
        for t in range(12):
            session.observe(costs=played.losses.C[t], capacities=played.constraints.c[t])
    for one in (rounds.rounds, active_set.nearest_member):
        assert len(one.compiled.signatures) <= 1


def test_the_parts_of_a_state_cover_its_numbers_once():
    kernel = tw.Ensemble(SETS["flow"], experts=[tw.experts.Season(3)]).compiled
    numbers = np.zeros(kernel.size)
    for one in kernel.arrays(numbers):
        one += 1.0
    assert (numbers == 1.0).all()
