"""Advice: proposals are members, best for the data they are made of, and never of the round itself.

The naive twin of re-solving is a program in the weights of all vertices of a small polytope, by
SciPy, without scaling, warm starts or headroom of its own.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tidewolf as tw
from covering import thinned
from polytopes import vertices_of
from tidewolf.core.errors import InvalidInput, NotFinite, NotSupported, WrongShape, WrongType
from tidewolf.core.feedback import FullInformation
from tidewolf.experts import recent, resolve
from tidewolf.functions import Affine, Capacity, Chain, Custom, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.boxed_model import BoxedBasis, BoxedModel
from tidewolf.sets import base, highs
from tidewolf.testing.learners import hostile_stream

DIAMOND = tw.sets.FlowPolytope.examples()[0]
HULL = tw.sets.VertexHull(np.random.default_rng(0).standard_normal((7, 3)))
DESCRIBED = [
    tw.sets.Simplex(4), tw.sets.Box([-1.0, 0.0], [1.0, 3.0]), tw.sets.CappedSimplex(5, 0.5),
    DIAMOND, HULL,
    tw.sets.Translated(tw.sets.Simplex(3, total=2.0), np.array([1.0, 0.0, -5.0])),
    tw.sets.Shrunk(HULL, 0.4), tw.sets.Simplex(1),
]  # fmt: skip
CURVED, seeds = [tw.sets.L2Ball(3), tw.sets.Spectraplex(2)], st.integers(0, 2**32 - 1)


def one(stream, t):
    return FullInformation(stream.losses[t : t + 1], stream.constraints[t : t + 1])


def played(adviser, K, stream, x=None, known=None, budget=1, vertices=()):
    """What is proposed for every round, and the states; the first proposal is played."""
    state, every = adviser.start(K), []
    for t in range(len(stream)):
        told = stream.info(t) if known is None else known(t)
        found = adviser.propose(K, state, told, t, budget, vertices)
        every.append(found)
        play = found.points[0] if x is None and found.points[0] is not None else K.center
        state = adviser.observe(K, found.state, one(stream, t), play)
    return every


def random_stream(K, rounds, seed, kind, room=0.3):
    """Rounds whose limits some members keep, unless `room` is below 0."""
    rng, c, spread = np.random.default_rng(seed), K.center, room * K.radius
    losses = Linear(rng.standard_normal((rounds, *K.shape)))
    if kind == "capacity":
        return tw.Stream(losses, Capacity(c + spread * rng.uniform(0.2, 1.0, (rounds, *K.shape))))
    A = rng.standard_normal((rounds, 3, *K.shape))
    at = (A * c).reshape(rounds, 3, -1).sum(axis=2)
    limits = MaxAffine(A, at + spread * rng.uniform(0.2, 1.0, (rounds, 3)))
    if kind == "maxima":
        D = rng.standard_normal((rounds, 4, *K.shape))
        return tw.Stream(MaxAffine(D, rng.standard_normal((rounds, 4))), limits)
    return tw.Stream(losses, limits)


def naive(K, losses, limits, room=0.0):
    """The least worst breach beyond `room`, and the least loss at it, over all vertices."""
    V = vertices_of(K)
    m, spaces, pieces = len(V), limits.halfspaces(), losses.epigraph()
    flat = V.reshape(m, -1).T
    A, b = (spaces.A @ flat).reshape(len(spaces.b), m), spaces.b - room
    D, rounds = (pieces.A @ flat).reshape(len(pieces.b), m), len(losses)
    which = -np.eye(rounds)[pieces.rounds]
    ones, free = np.append(np.ones(m), np.zeros(rounds))[None], [(None, None)] * rounds
    A = np.hstack([A, np.zeros((len(b), rounds))])
    costs, soft = np.append(np.zeros(m + rounds), 1.0), np.hstack([A, -np.ones((len(b), 1))])
    bounds, sums = [(0, None)] * m + free, np.append(ones, [[0.0]], axis=1)
    breach = linprog(costs, soft, b, sums, [1.0], [*bounds, (0, None)]).fun
    rows, sides = np.vstack([A, np.hstack([D, which])]), np.append(b + breach + 1e-9, pieces.b)
    best = linprog(np.append(np.zeros(m), np.ones(rounds)), rows, sides, ones, [1.0], bounds).fun
    return breach, best


def assert_best(K, x, losses, limits, room=0.0, tol=1e-6):
    breach, best = naive(K, losses, limits, room)
    spaces = limits.halfspaces()
    mine = max(0.0, float((spaces.A @ x.reshape(-1) - spaces.b + room).max()))
    assert mine == pytest.approx(breach, abs=tol)
    assert float(losses.values(x).sum()) == pytest.approx(best, abs=tol)


# --- what is proposed -----------------------------------------------------------------------------


@thinned(
    2,
    K={f"{i}-{K!r}": K for i, K in enumerate(DESCRIBED)},
    kind=("capacity", "rows", "maxima"),
    room={"-0.5": -0.5, "0.3": 0.3},
)
def test_the_last_round_is_solved_as_all_vertices_say(K, kind, room):
    stream = random_stream(K, 4, 1, kind, room)
    for t, found in enumerate(played(tw.experts.Resolve(headroom=0), K, stream)):
        (x,) = found.points
        if t == 0:
            assert x is None
            continue
        assert K.infeasibility(x) <= base.membership_tolerance(x, K.radius)
        assert found.solves in (1, 3)
        assert_best(K, x, stream.losses[t - 1 : t], stream.constraints[t - 1 : t])


FLOWS = [*tw.sets.FlowPolytope.examples(), *tw.sets.CapacitatedFlow.examples()]


@pytest.mark.parametrize("K", FLOWS, ids=repr)
@pytest.mark.parametrize("room", [-0.4, 0.3])
def test_large_flows_are_those_of_programs(monkeypatch, K, room):
    """By the network simplex, to which a set of this size would not go."""
    stream = random_stream(K, 6, 4, "capacity", room)
    boxed = played(tw.experts.Resolve(), K, stream, x="center")
    monkeypatch.setattr(BoxedModel, "of", lambda K: None)
    monkeypatch.setattr(highs.WarmModel, "__call__", None)
    flows = played(tw.experts.Resolve(), K, stream, x="center")
    for t in range(1, 6):
        c, cap = stream.losses.C[t - 1], stream.constraints.c[t - 1]
        for x, y in zip(flows[t].points, boxed[t].points, strict=True):
            assert K.infeasibility(x) <= base.membership_tolerance(x, K.radius)
            assert c @ x == pytest.approx(c @ y, abs=1e-7)
            assert max(x - cap) == pytest.approx(max(y - cap), abs=1e-7) or max(x - cap) < 0.0


@pytest.mark.parametrize("kind", ["capacity", "rows", "maxima"])
def test_the_most_even_of_all_best_points(kind):
    """As good as any other, and none is nearer to the center; ties are split evenly."""
    K = tw.sets.CappedSimplex(5, 0.5)
    stream = random_stream(K, 5, 3, kind, 0.2)
    plain, even = (played(tw.experts.Resolve(even=e), K, stream, x="center") for e in (False, True))
    for t in range(1, 5):
        f, g = stream.losses[t - 1 : t], stream.constraints[t - 1 : t]
        x, z = plain[t].points[0], even[t].points[0]
        assert K.infeasibility(z) <= base.membership_tolerance(z, K.radius)
        assert float(f.values(z)[0]) == pytest.approx(float(f.values(x)[0]), abs=1e-6)
        assert float(g.values(z)[0]) <= max(0.0, float(g.values(x)[0])) + 1e-6
        assert np.linalg.norm(z - K.center) <= np.linalg.norm(x - K.center) + 1e-6
    tied = tw.Stream(Linear(np.tile([1.0, 0.0, 0.0, 0.0, 5.0], (2, 1))))
    (z,) = played(tw.experts.Resolve(headroom=0, even=True), K, tied)[1].points
    np.testing.assert_allclose(z, [0.0, 1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-4)


@pytest.mark.parametrize("K", [*DESCRIBED[:5], *CURVED], ids=repr)
@settings(max_examples=2)
@given(seed=seeds)
def test_every_proposal_is_a_member_whatever_the_functions(K, seed):
    stream = hostile_stream(K, 10, seed)
    for columns in (False, True):
        for found in played(tw.experts.Resolve(columns=columns, window=2), K, stream):
            for x in found.points:
                if x is not None:
                    assert K.infeasibility(x) <= base.membership_tolerance(x, K.radius)
                    assert not x.flags.writeable


def test_what_makes_no_program_is_linearised_where_it_was_played():
    K, x, rng = tw.sets.Simplex(3), np.array([0.2, 0.3, 0.5]), np.random.default_rng(3)
    loss, limit = (Quadratic(np.eye(3), rng.standard_normal((1, 3))) for _ in range(2))
    adviser = tw.experts.Resolve(headroom=0)
    state = adviser.observe(K, adviser.start(K), FullInformation(loss, limit), x)
    (z,) = adviser.propose(K, state, None, 1, 0, ()).points
    c, a = loss.gradients(x), limit.gradients(x)
    assert_best(K, z, *FullInformation(Linear(c), Affine(a, a @ x - limit.values(x))))


@pytest.mark.parametrize("K", [tw.sets.Simplex(4), DIAMOND], ids=repr)
def test_a_window_counts_all_its_losses_and_limits(K):
    for kind in ("rows", "capacity", "maxima"):
        stream = random_stream(K, 8, 5, kind)
        every = played(tw.experts.Resolve(headroom=0, window=3), K, stream)
        for t in (2, 3, 7):
            rounds = slice(max(0, t - 3), t)
            assert_best(K, every[t].points[0], stream.losses[rounds], stream.constraints[rounds])


def test_a_program_that_is_not_solved_is_no_advice(monkeypatch):
    stream = random_stream(HULL, 4, 0, "capacity")
    every = played(tw.experts.Resolve(), HULL, stream)
    monkeypatch.setattr(highs.WarmModel, "__call__", lambda model, *question: None)
    for columns in (False, True):
        adviser = tw.experts.Resolve(columns=columns)
        state = adviser.observe(HULL, adviser.start(HULL), one(stream, 2), HULL.center)
        found = adviser.propose(HULL, state, None, 3, 1, ())
        assert (found.points, found.solves) == ((None,) * 4, 0)
    baseline = tw.baselines.Resolve(HULL)
    np.testing.assert_array_equal(baseline.update(baseline.start(), one(stream, 0)).x, HULL.center)
    assert every[-1].points[0] is not None


# --- headroom -------------------------------------------------------------------------------------


def naive_drops(stream, points):
    """The usual drop before each round, by the formula as it is written."""
    m, n, usual = 0.0, 0, []
    for t in range(len(stream)):
        if t:
            now, before = (stream.constraints[s : s + 1].pieces(points[t])[0] for s in (t, t - 1))
            m = (1 - recent.FORGETTING) * m + recent.FORGETTING * np.maximum(now - before, 0.0) ** 2
            n += 1
        usual.append(np.sqrt(m / (1 - (1 - recent.FORGETTING) ** n)) if n else 0.0)
    return usual


@pytest.mark.parametrize("K", [tw.sets.Simplex(4), DIAMOND, HULL], ids=repr)
@pytest.mark.parametrize("kind", ["capacity", "rows"])
def test_each_limit_is_kept_with_its_own_usual_drop_to_spare(K, kind):
    stream, kappas = random_stream(K, 9, 2, kind, room=3.0), (0.0, 0.3, 1.0, 4.0)
    every = played(tw.experts.Resolve(headroom=kappas), K, stream)
    usual = naive_drops(stream, [K.center if f.points[0] is None else f.points[0] for f in every])
    for t in (2, 4, 8):
        for kappa, x in zip(kappas, every[t].points, strict=True):
            room = kappa * usual[t - 1]
            assert_best(K, x, stream.losses[t - 1 : t], stream.constraints[t - 1 : t], room)
    assert any((u > 0).any() for u in usual[1:])


# --- which round ----------------------------------------------------------------------------------


def test_other_limits_begin_anew():
    """The drops of the limits before say nothing of them."""
    K, adviser = tw.sets.Simplex(2), tw.experts.Resolve(headroom=1.0)
    state, loss = adviser.start(K), Linear.one([1.0, 0.0])
    for c in ([0.9, 0.9], [0.9, 0.7]):
        state = adviser.observe(K, state, FullInformation(loss, Capacity.one(c)), K.center)
    (x,) = adviser.propose(K, state, None, 2, 0, ()).points
    np.testing.assert_allclose(x, [0.5, 0.5], atol=1e-9)  # 0.7 - 0.2
    state = adviser.observe(K, state, FullInformation(loss, Affine.one([1.0, 0.0], 0.9)), K.center)
    assert len(state.drops.usual()) == 0
    assert adviser.propose(K, state, None, 4, 0, ()).points[0] is not None


@pytest.mark.parametrize("data", ["last", 1, 3, 5])
@pytest.mark.parametrize("columns", [False, True])
def test_advice_depends_on_no_round_that_was_not_shown(data, columns):
    """Rounds from t on are others: what is proposed up to t stays the same, to the bit, and it is
    the best point of the round that was asked for.
    """
    K = DIAMOND
    stream, other = (random_stream(K, 12, seed, "capacity") for seed in (7, 8))
    adviser = tw.experts.Resolve(data, columns=columns)
    plain = played(adviser, K, stream)
    back = 1 if data == "last" else data
    for t in (0, 1, 4, 11):
        mixed = tw.Stream(
            Chain((stream.losses[:t], other.losses[t:])) if t else other.losses,
            Chain((stream.constraints[:t], other.constraints[t:])) if t else other.constraints,
        )
        again = played(adviser, K, mixed)
        for s in range(t + 1):
            for x, y in zip(again[s].points, plain[s].points, strict=True):
                assert x is y is None or x.tobytes() == y.tobytes()
        if t < back:
            assert plain[t].points[0] is None
        elif not columns:
            assert_best(K, plain[t].points[0], *one(stream, t - back))
    if t + 1 < len(stream):
        assert again[t + 1].points[0].tobytes() != plain[t + 1].points[0].tobytes()


def test_a_duration_follows_the_clock_and_lost_rounds_are_absent():
    K, adviser = tw.sets.Simplex(3), tw.experts.Resolve("1d", headroom=0)
    hours = np.array([0.0, 6.0, 12.0, 18.0, 24.0, 30.1, 42.0, 48.0, 54.0, 60.0, 66.0])
    stream = random_stream(K, len(hours), 9, "rows")
    every = played(adviser, K, tw.Stream(stream.losses, stream.constraints, time=3600.0 * hours))
    a_day_ago = {4: 0, 5: 1, 6: 3, 7: 4, 8: 5, 10: 6}  # 36 h were lost, and 60 h has nobody
    for t, found in enumerate(every):
        s = a_day_ago.get(t)
        assert (found.points[0] is None) == (s is None)
        if s is not None:
            assert_best(K, found.points[0], stream.losses[s : s + 1], stream.constraints[s : s + 1])
    assert every[0].state.time == 0.0
    assert adviser.waits
    assert all(f.points == (None,) for f in played(adviser, K, stream))  # nobody knows the time


def test_experts_without_weight_are_solved_for_in_every_tenth_round(monkeypatch):
    """Costs come again after two rounds: the last round is the wrong one to solve with."""
    T, rng = 250, np.random.default_rng(1)
    costs = rng.standard_normal((2, 3))[np.arange(T) % 2] + 0.1 * rng.standard_normal((T, 3))
    stream = tw.Stream(Linear(costs), Affine(np.tile([1.0, 0.0, 0.0], (T, 1)), np.full(T, 0.5)))
    experts = [tw.experts.Resolve(headroom=(0, 1)), tw.experts.Resolve(2, headroom=0)]
    learner = tw.Ensemble(HULL, experts=experts)
    run = tw.run(learner, stream)
    assert run.certificate.holds, run.certificate.verdict
    states = [each.state for each in tw.play(learner, stream)]
    absent = [state.upcoming.points[-3] is None for state in states[:-1]]
    skipped = 1 + np.flatnonzero(absent)
    assert skipped.min() > resolve.LONG
    assert (skipped % resolve.RARELY != 0).all()
    assert len(skipped) > 0.8 * (T - 2 * resolve.LONG)
    last, roomy, two_ago = run.experts[-3:]
    assert (last.rounds, roomy.rounds) == (T - 1 - len(skipped),) * 2
    assert two_ago.rounds == T - 2
    *_, resumed = tw.play(learner, stream[100:], learner.load(learner.save(states[99])))
    session = tw.Session(learner)
    for t in range(T):
        session.observe(one(stream, t))
    for state in (resumed.state, session.state, run.final_state):
        for own, due in zip(state.advisers, states[-1].advisers, strict=True):
            assert own.light == due.light
        np.testing.assert_allclose(learner.act(state), learner.act(states[-1]), atol=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(resolve, "LONG", T)
        always = tw.run(learner, stream)
    assert run.solves < 0.75 * always.solves
    assert run.losses.sum() <= always.losses.sum() + 2e-3 * abs(always.losses.sum())


@pytest.mark.parametrize("K", [HULL, DIAMOND])
def test_an_expert_with_weight_again_is_solved_for_again(K):
    adviser, stream = tw.experts.Resolve(headroom=(0, 1)), random_stream(K, 1, 0, "rows")
    state, present = adviser.observe(K, adviser.start(K), one(stream, 0), K.center), []
    for t in range(1, 160):
        weights = np.array([1e-5 if t < 130 else 2e-4, 0.5])
        for _ in range(2):  # as it is if entries turn out to be unavailable
            state = adviser.weighed(K, state, weights, t, lambda: 0.0)
            found = adviser.propose(K, state, None, t, 0, ())
            state = found.state
        assert found.points[1] is not None
        present.append(found.points[0] is not None)
    skipped = 1 + np.flatnonzero(np.logical_not(present))
    due = [t for t in range(resolve.LONG, 130) if t % resolve.RARELY]
    assert skipped.tolist() == (due if K is HULL else [])


def test_rounds_are_kept_as_long_as_they_are_needed():
    K, stream = tw.sets.Simplex(3), random_stream(tw.sets.Simplex(3), 60, 9, "rows")
    timed = tw.Stream(stream.losses, stream.constraints, time=3600.0 * np.arange(60))
    for data, window, most in (("last", 1, 1), ("last", 4, 4), (7, 2, 8), ("10h", 1, 13)):
        every = played(tw.experts.Resolve(data, headroom=0, window=window), K, timed)
        assert max([len(found.state.recent) for found in every]) <= most
        assert every[-1].points[0] is not None


def test_a_forecast_is_solved_and_without_one_there_is_no_advice():
    K, adviser = DIAMOND, tw.experts.Resolve("forecast", headroom=0)
    stream = random_stream(K, 5, 3, "capacity")
    told = played(adviser, K, stream, known=lambda t: tw.RoundInfo(forecast=one(stream, t)))
    wide = tw.experts.Resolve("forecast", headroom=0, window=4)
    more = played(wide, K, stream, known=lambda t: tw.RoundInfo(forecast=one(stream, t)))
    for t in range(5):
        s, window = slice(t, t + 1), slice(max(0, t - 3), t + 1)
        assert_best(K, told[t].points[0], stream.losses[s], stream.constraints[s])
        assert_best(K, more[t].points[0], stream.losses[window], stream.constraints[window])
    assert played(adviser, K, stream)[3].points == (None,)
    wrong = tw.RoundInfo(forecast=(Linear.one([1.0]), Capacity.one([1.0])))
    with pytest.raises(WrongShape, match="must be 1 rounds on points of shape"):
        adviser.propose(K, adviser.start(K), wrong, 0, 0, ())


# --- units, bits, solvers -------------------------------------------------------------------------


@thinned(
    2,
    kind={kind: kind for kind in ("capacity", "rows", "maxima")},
    columns={"described": False, "columns": True},
    units={"powers of 2": (2.0**20, 2.0**-30, 2.0**9), "any": (1e-6, 1e7, 1e-5)},
)
def test_units_of_points_losses_and_limits_do_not_matter(kind, columns, units):
    size, f, g = units
    points = np.random.default_rng(5).standard_normal((9, 3))
    K, scaled = tw.sets.VertexHull(points), tw.sets.VertexHull(size * points)
    stream = random_stream(K, 7, 6, kind, room=0.2)
    losses, limits = stream.losses, stream.constraints
    if kind == "capacity":
        other = Capacity(size * limits.c)
    else:
        other = MaxAffine(g * limits.A, g * size * limits.b)
    if kind == "maxima":
        losses = MaxAffine(f * losses.A, f * size * losses.b)
    else:
        losses = Linear(f * losses.C)
    plain = played(tw.experts.Resolve(columns=columns), K, stream)
    again = played(tw.experts.Resolve(columns=columns), scaled, tw.Stream(losses, other))
    for a, b in zip(plain, again, strict=True):
        for x, y in zip(a.points, b.points, strict=True):
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_allclose(y / size, x, atol=1e-6)


@pytest.mark.parametrize("columns", [False, True])
def test_a_program_without_an_end_is_solved_from_nothing(monkeypatch, columns):
    stream = random_stream(DIAMOND, 6, 3, "rows", room=0.1)
    warm = played(tw.experts.Resolve(columns=columns), DIAMOND, stream)
    run, ends = highs.WarmModel._run, itertools.cycle(["kUnknown", None])
    monkeypatch.setattr(highs.WarmModel, "_run", lambda model, how: next(ends) or run(model, how))
    cold = played(tw.experts.Resolve(columns=columns), DIAMOND, stream)
    for t in range(1, 6):
        f, g = stream.losses[t - 1 : t], stream.constraints[t - 1 : t]
        for x, y in zip(warm[t].points, cold[t].points, strict=True):
            assert float(f.values(x)[0]) == pytest.approx(float(f.values(y)[0]), abs=1e-7)
            assert float(g.values(x)[0]) == pytest.approx(float(g.values(y)[0]), abs=1e-7)


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_a_set_may_write_its_rows_in_any_units(size):
    A, b = np.array([[1.0, 2.0, 0.5], [1.0, -1.0, 3.0]]), np.array([1.0, 2.0])
    sizes, limits = np.array([size, 1.0]), Capacity.one([0.2, 0.9, 0.9])
    seen, points = FullInformation(Linear.one([-1.0, -1.5, -1.0]), limits), []
    for rows in ((A, b), (sizes[:, None] * A, sizes * b)):
        K = tw.sets.Polytope(*rows, bounds=(0.0, 1.0))
        adviser = tw.experts.Resolve(headroom=0)
        state = adviser.observe(K, adviser.start(K), seen, K.center)
        points.append(adviser.propose(K, state, None, 1, 0, ()).points[0])
    np.testing.assert_allclose(points[1], points[0], atol=1e-7)


def test_a_model_answers_by_question_and_basis_alone():
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    F, none, high = csr_array(rng.uniform(0.5, 1.0, (3, 6))), np.zeros(6), np.ones(3)
    model, basis, upper = highs.WarmModel(F, high, high), None, np.ones(6)
    costs = np.zeros(6)
    for t in range(40):
        A = csr_array(rng.standard_normal((2 + t % 3, 6)))
        rows = None if t % 5 == 4 else highs.HalfSpaces(A, rng.uniform(0.0, 1.0, A.shape[0]))
        if t % 3 != 2:  # in place: what the caller does with its arrays later is its own affair
            costs[:] = rng.standard_normal(6)
        if t % 4 == 1:
            upper[:] = rng.uniform(0.5, 1.0, 6)
        question = (costs, none, upper, rows, basis)
        kept = None if basis is None else highs.Basis.restored(basis.parts())
        found = model(*question)
        alone = highs.WarmModel(F, high, high)(*question[:4], kept)
        assert (found is None) == (alone is None)
        if found is not None:
            assert found.v.tobytes() == alone.v.tobytes()
            assert found.multipliers.tobytes() == alone.multipliers.tobytes()
            assert (found.basis.statuses == alone.basis.statuses).all()
            assert (found.multipliers <= 1e-9).all()
            basis = found.basis


WARM = {"columns": 1, "statuses": np.zeros(2, dtype=np.int8)}
BOXED = {"columns": 4, "basis": np.array([0, 3]), "inverse": np.eye(2), "age": 3}


@pytest.mark.parametrize(
    ("kind", "good", "wrong"),
    [
        (highs.Basis, WARM, {"statuses": np.array([9], dtype=np.int8)}),
        (highs.Basis, WARM, {"columns": 3}),
        (highs.Basis, WARM, {"statuses": np.zeros(2)}),
        (highs.Basis, WARM, {"columns": None}),
        (BoxedBasis, BOXED, {"basis": np.array([0, 0])}),
        (BoxedBasis, BOXED, {"basis": np.array([0, 7])}),
        (BoxedBasis, BOXED, {"basis": np.array([0.0, 1.0])}),
        (BoxedBasis, BOXED, {"inverse": np.zeros((1, 2))}),
        (BoxedBasis, BOXED, {"inverse": np.full((2, 2), np.nan)}),
        (BoxedBasis, BOXED, {"age": -1}),
    ],
)
def test_a_basis_that_is_none_is_refused(kind, good, wrong):
    assert str(kind.restored(good).parts()) == str(good)
    with pytest.raises(ValueError, match="a basis has"):
        kind.restored(good | wrong)


class OwnLimit(Affine):
    """A limit of a kind that files do not know."""


def test_functions_of_python_cannot_be_saved_and_say_so():
    K, learner = tw.sets.Simplex(2), tw.Ensemble(tw.sets.Simplex(2), experts=[tw.experts.Resolve()])
    curved = Custom(lambda t, x: x @ x, lambda t, x: 2 * x, (2,), rounds=1)

    state = learner.update(learner.start(), FullInformation(curved, tw.functions.Unlimited.one(2)))
    assert learner.save(state)  # linearised: numbers alone
    adviser = tw.experts.Resolve()
    seen = FullInformation(Linear.one([1.0, 0.0]), OwnLimit.one([1.0, 0.0], 0.5))
    kept = adviser.observe(K, adviser.start(K), seen, K.center)
    with pytest.raises(NotSupported, match=r"remembers OwnLimit functions, which cannot be saved"):
        kept.recent.parts()


# --- column generation ----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_round_takes_one_call_at_most_and_none_without_a_budget(monkeypatch, budget):
    asked, answer = [], tw.sets.FlowPolytope.answer
    counted = lambda K, *given: asked.append(1) or answer(K, *given)  # noqa: E731
    monkeypatch.setattr(tw.sets.FlowPolytope, "answer", counted)
    stream = random_stream(DIAMOND, 30, 3, "rows", room=-0.1)
    every = played(tw.experts.Resolve(columns=True), DIAMOND, stream, budget=budget)
    calls = [found.calls for found in every]
    assert (max(calls), sum(calls)) == (min(1, budget), len(asked))


@thinned(
    2,
    K={type(K).__name__: K for K in (DIAMOND, tw.sets.CappedSimplex(5, 0.5), HULL)},
    kind={kind: kind for kind in ("capacity", "rows", "maxima")},
    room={"-0.5": -0.5, "0.2": 0.2},
)
def test_columns_reach_the_program_itself_where_rounds_repeat(K, kind, room):
    first = random_stream(K, 1, 11, kind, room)
    stream = tw.Stream(Chain((first.losses,) * 30), Chain((first.constraints,) * 30))
    every = played(tw.experts.Resolve(columns=True, headroom=(0.0, 1.0)), K, stream)
    for x in every[-1].points:
        assert_best(K, x, first.losses, first.constraints, tol=1e-6)
    calls = [found.calls for found in every]
    assert sum(calls[-12:]) <= 3  # in vain: it asks ever less often
    assert sum(len(found.found) for found in every) == len(every[-1].state.pool.vertices) - 1


def test_vertices_of_others_are_used_without_a_call():
    K = DIAMOND
    stream = random_stream(K, 3, 3, "capacity", room=2.0)
    others = tuple(K.atom(v) for v in vertices_of(K))
    adviser = tw.experts.Resolve(columns=True, headroom=0)
    every = played(adviser, K, stream, budget=0, vertices=(*others, *others))
    assert len(every[-1].state.pool.vertices) == len(others) + 1
    for t in (1, 2):
        assert_best(K, every[t].points[0], stream.losses[t - 1 : t], stream.constraints[t - 1 : t])


def test_vertices_that_nobody_uses_go(monkeypatch):
    monkeypatch.setattr(resolve, "IDLE_ROUNDS", 10)
    K, adviser = tw.sets.L2Ball(3), tw.experts.Resolve(columns=True, headroom=0)
    stream = random_stream(K, 80, 3, "rows")  # every direction has a vertex of its own
    every = played(adviser, K, stream)
    for t, found in enumerate(every):
        pool = found.state.pool
        assert len(pool.vertices) == len(pool.last_used)
        assert t - min(pool.last_used) <= 10
    assert len(pool.vertices) < sum(len(found.found) for found in every) - 20


def test_where_a_set_has_no_description_columns_are_the_way():
    adviser, K = tw.experts.Resolve(headroom=0), tw.sets.L2Ball(3)
    stream = tw.Stream(Linear(np.tile([3.0, 4.0, 0.0], (60, 1))))
    found = played(adviser, K, stream)[-1]
    np.testing.assert_allclose(found.points[0], [-0.6, -0.8, 0.0], atol=1e-9)
    with pytest.raises(NotSupported, match="linear programs"):
        tw.baselines.Resolve(K)
    run = tw.run(tw.baselines.Resolve(K, columns=True), stream)
    assert run.oracle_calls == run.final_state.calls > 0
    assert any("weights of vertices" in note for note in run.notes)


# --- points by name -------------------------------------------------------------------------------


def proposed(K, z, budget=0, state=None, name="boss"):
    adviser, known = tw.experts.Named("boss"), tw.RoundInfo(advice={name: z})
    return adviser.propose(K, state or adviser.start(K), known, 0, budget, ())


@pytest.mark.parametrize("K", [DIAMOND, tw.sets.Simplex(3), tw.sets.L2Ball(2)], ids=repr)
def test_members_stay_as_they_are_and_others_are_brought_in(K):
    rng = np.random.default_rng(0)
    x = K.lmo(rng.standard_normal(K.shape))
    found = proposed(K, x)
    np.testing.assert_array_equal(found.points[0], x)
    assert found.calls == tw.experts.Named("boss").outside(found.state) == 0
    y = x + 0.3 * K.radius * rng.standard_normal(K.shape)
    far = proposed(K, y, budget=50)
    (z,) = far.points
    assert K.infeasibility(z) <= base.membership_tolerance(z, K.radius)
    outside = tw.experts.Named("boss").outside(far.state)
    assert outside == pytest.approx(np.linalg.norm(z - y))
    assert len(far.found) <= far.calls
    assert float((z - y) @ (z - K.lmo(z - y))) <= 1e-2 * K.radius**2  # near the projection
    none = proposed(K, y)
    assert none.calls == 0
    for point in (point for point in none.points if point is not None):
        assert K.infeasibility(point) <= base.membership_tolerance(point, K.radius)
    assert proposed(K, y, budget=50, state=far.state).calls <= min(1, far.calls)
    nearer = proposed(K, y * 1e-3 + (1 - 1e-3) * z, budget=5, state=far.state)
    assert tw.experts.Named("boss").outside(nearer.state) == outside


# --- settings -------------------------------------------------------------------------------------


def test_what_is_absent_is_no_advice_and_what_is_no_point_is_refused():
    K, adviser = tw.sets.Simplex(3), tw.experts.Named("boss")
    for known in (None, tw.RoundInfo(time=0.0)):
        assert adviser.propose(K, adviser.start(K), known, 0, 5, ()).points == (None,)
    assert proposed(K, [0.2, 0.3, 0.5], name="other").points == (None,)
    for absent in (None, [0.2, np.nan, 0.5]):
        assert proposed(K, absent).points == (None,)
    infinite = np.array([0.5, np.inf, 0.5])
    for z, error in (([0.5, 0.5], WrongShape), (infinite, NotFinite), ("x_1 = 1", WrongType)):
        known = tw.RoundInfo()._replace(advice={"boss": z})
        with pytest.raises(error, match="'boss'"):
            adviser.propose(K, adviser.start(K), known, 0, 1, ())


def test_points_near_the_set_take_no_call_and_those_far_outside_are_absent_without():
    K, rng = tw.sets.CappedSimplex(8, 0.4), np.random.default_rng(0)
    for cost in rng.random((20, 8)):
        z = np.array(K.lmo(cost)).astype(np.float32).astype(float) * (1.0 + 2e-7)
        found = proposed(K, z)
        [point] = found.points
        assert found.calls == 0
        assert K.infeasibility(point) <= base.membership_tolerance(point, K.radius)
        assert np.abs(point - z).max() < 1e-5
    far = 0.5 * np.arange(8.0)
    assert proposed(K, far).points == (None,)
    found = proposed(K, far, budget=50)
    assert found.points[0] is not None
    assert tw.experts.Named("boss").reserves(found.state) == 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"data": "soon"}, InvalidInput),
        ({"data": 0}, InvalidInput),
        ({"data": None}, WrongType),
        ({"headroom": ()}, InvalidInput),
        ({"headroom": (-1.0,)}, InvalidInput),
        ({"window": 0}, InvalidInput),
        ({"columns": 1}, WrongType),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, error):
    (name,) = given
    with pytest.raises(error, match=name):
        tw.experts.Resolve(**given)


def test_a_caller_may_fill_the_same_arrays_every_round():
    K, adviser = tw.sets.Simplex(3), tw.experts.Resolve(headroom=0)
    costs, capacities = np.array([[1.0, 2.0, 3.0]]), np.array([[0.6, 0.3, 0.9]])
    seen = FullInformation(Linear._unchecked(C=costs), Capacity._unchecked(c=capacities))
    state = adviser.observe(K, adviser.start(K), seen, K.center)
    costs[:], capacities[:] = costs[:, ::-1].copy(), 0.5
    x = adviser.propose(K, state, None, 1, 0, ()).points[0]
    np.testing.assert_allclose(x, [0.6, 0.3, 0.1], atol=1e-12)


def test_places_of_entries_that_are_remembered_stay_whole_numbers():
    problem = tw.problems.completion(rounds=4)
    run = tw.run(tw.Ensemble(problem.K, experts=[tw.experts.Resolve(headroom=0)]), problem.stream)
    (kept,) = run.final_state.advisers
    assert kept.recent.rounds[-1].limit.places.dtype == np.int64
