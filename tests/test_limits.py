"""A weight for each limit: weights against their formulas written plainly, a bound for every limit
on hostile streams, limits in units of their own, feedback that is late, saved states.
"""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import tidewolf as tw
from tidewolf.core import errors
from tidewolf.core.feedback import FirstOrder, first_order, limits_at, played_at
from tidewolf.evaluation.metrics import broken_limits
from tidewolf.evaluation.tracking import Breach, Breaches
from tidewolf.functions import Affine, Capacity, Chain, Linear, Max, MaxAffine, MaxUtilization
from tidewolf.functions.combined import limit_names
from tidewolf.methods.certificate import paid_at_most
from tidewolf.methods.steps import lyapunov, saddle
from tidewolf.methods.steps.lyapunov import LyapunovWeights
from tidewolf.report.page import limits_context
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, Simplex, SimplexProduct

seeds, DIAMOND = st.integers(0, 2**32), FlowPolytope.examples()[0]
LINKS = [("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "NYC")]
TRIANGLE = FlowPolytope.from_edges(LINKS, source="SEA", target="NYC")
SETS = [Simplex(4), DIAMOND, CappedSimplex(6, 0.5), SimplexProduct([2, 3]), Box([-1, 0], [1, 3])]


def turning(K, rounds, seed, limits=3):
    """A stream of several limits a round, in units of their own, that one point keeps; losses turn
    round, and limits oppose them.
    """
    rng, n = np.random.default_rng(seed), math.prod(K.shape)
    star = 0.7 * K.center + 0.3 * K.lmo(rng.standard_normal(K.shape))
    turns = np.where(np.arange(rounds) // 5 % 2, -1.0, 1.0)[:, None]
    C = turns * rng.standard_normal(n) + 0.3 * rng.standard_normal((rounds, n))
    A = -C[:, None, :] + 0.5 * rng.standard_normal((rounds, limits, n))
    A *= 10.0 ** rng.uniform(-3.0, 3.0, (limits, 1))
    limit = MaxAffine(A.reshape(rounds, limits, *K.shape), A @ star.reshape(-1))
    return tw.Stream(Linear(C.reshape(rounds, *K.shape)), limit)


# --- feedback -------------------------------------------------------------------------------------

SPLITS = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [[4.0, 1.0], [2.0, 3.0]]
PATHS = MaxUtilization(*SPLITS, [2.0, 4.0], [0, 0, 1], 0.3)
SPARSE = csr_array(np.arange(12.0).reshape(6, 2) - 5.0)
BATCHES = [
    *Capacity.examples(), *MaxAffine.examples(), MaxAffine(SPARSE, np.ones((4, 6))), PATHS,
    *Max.examples(), Max(Affine([[1.0, 0.0, 2.0]] * 2, [0.1, 0.2]), PATHS, Max(PATHS)),
    Affine([[1.0, 2.0], [0.0, 3.0]], [1.0, 2.0]),
]  # fmt: skip


@pytest.mark.parametrize("batch", BATCHES, ids=[f"{i}" for i in range(len(BATCHES))])
def test_the_gradient_of_each_limit_is_one(batch):
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, z = rng.standard_normal((2, *batch.shape))
        values = [batch.values(at)[:, None] for at in (x, z)]
        pieces = [batch.pieces(at) for at in (x, z)]
        here, there = (v if p is None else p for v, p in zip(values, pieces, strict=True))
        rounds, limits = (each.reshape(-1) for each in np.indices(here.shape))
        slopes = batch.piece_gradients(x, rounds, limits).reshape(len(rounds), -1)
        assert slopes.shape == (here.size, math.prod(batch.shape))
        least = here.reshape(-1) + slopes @ (z - x).reshape(-1)
        assert (there.reshape(-1) >= least - 1e-9).all()
        assert batch.piece_gradients(x, rounds[:0], limits[:0]).shape == (0, *batch.shape)


@given(seed=seeds)
@settings(max_examples=10)
def test_feedback_adds_up_each_limit_over_the_rounds_in_which_it_is_broken(seed):
    rng = np.random.default_rng(seed)
    T, k, n = (int(rng.integers(1, 6)) for _ in range(3))
    A, b = rng.standard_normal((T, k, n)), rng.standard_normal((T, k))
    x, y = rng.standard_normal((2, n))
    batch = MaxAffine(A, b)
    found, table = limits_at(batch, x, batch.values(x)), A @ x - b
    broken = table > 0.0
    assert found.in_all == k
    assert found.which.tolist() == np.flatnonzero(broken.any(axis=0)).tolist()
    for row, i in enumerate(found.which):
        mine = broken[:, i]
        assert found.violations[row] == pytest.approx(table[mine, i].sum())
        assert found.gradients[row] == pytest.approx(A[mine, i].sum(axis=0))
        assert found.slopes[row] == pytest.approx(np.linalg.norm(A[mine, i], axis=1).max())
    seen = first_order(Linear(A[:, 0]), batch, x, batch.values(x), per_constraint=True)
    each = (slice(t, t + 1) for t in range(T))
    parts = [first_order(Linear(A[s, 0]), batch[s], x, batch.values(x)[s], True) for s in each]
    sums = parts[0]
    for part in parts[1:]:
        sums = tw.methods.clock.add_sums(sums, part)
    for mine, other in zip(sums.limits, seen.limits, strict=True):
        assert mine == pytest.approx(other)
    assert played_at(seen, x, y).limits.offsets == pytest.approx(found.gradients @ (x - y))


def bad_limits(good):
    long = good.limits
    yield errors.WrongType, good._replace(limits="three")
    yield errors.WrongShape, good._replace(limits=long._replace(which=long.which[::-1]))
    yield errors.WrongShape, good._replace(limits=long._replace(violations=long.violations[:1]))
    yield errors.NotFinite, good._replace(limits=long._replace(violations=-long.violations))
    yield errors.NotFinite, good._replace(limits=long._replace(gradients=long.gradients + math.inf))


def three(values):
    """Feedback on a round with three limits."""
    limits, x = MaxAffine([np.eye(3)], [-np.asarray(values, dtype=float)]), np.zeros(3)
    return first_order(Linear([[1.0, -1.0, 0.5]]), limits, x, limits.values(x), per_constraint=True)


@pytest.mark.parametrize("block", [1, 3])
def test_bad_limits_and_another_number_of_them_are_refused(block):
    learner = tw.LyapunovDescent(Simplex(3), per_constraint=True, block=block)
    state = learner.update(learner.start(), three([0.1, 0.2, -0.1]))
    before = learner.save(state)
    for error, seen in bad_limits(three([0.1, 0.2, 0.3])):
        with pytest.raises(error):
            learner.update(state, seen)
    one = FirstOrder(np.ones(3), 0.1, np.array([1.0, 0.0, 0.0]), 1.0, 1.0, 1)
    with pytest.raises(errors.WrongShape, match="A round with 1 limit was given after one with 3"):
        learner.update(state, one)
    assert learner.save(state) == before


def test_limits_that_tell_no_gradients_apart_are_refused_with_a_sentence():
    batch = Affine([[1.0, 0.0]], [0.1])
    assert batch.pieces(np.zeros(2)) is None
    pieces = type("Told", (Chain,), {"pieces": lambda self, x: np.ones((1, 2))})
    with pytest.raises(errors.NotSupported, match="define `piece_gradients`"):
        limits_at(pieces([batch]), np.zeros(2), np.ones(1))


# --- the weights, written plainly -----------------------------------------------------------------


class Plainly:
    """The formulas of methods/steps/lyapunov.py, limit by limit, without units."""

    def __init__(self, K, caution, limits):
        self.K, self.V, self.k = K, 1.0 / caution, limits
        self.t, self.G_f = 0, 0.0
        self.Q, self.G, self.paid = np.zeros((3, limits))
        self.rho = np.full(limits, math.inf)
        self.a = 1.0 if limits == 1 else lyapunov.SHARE

    def growth(self):
        return lyapunov.THETA * max(self.t, 16) ** -0.5

    def seen(self, grad_f, values, gradients):
        self.t += 1
        grad_f = self.K.tangent(grad_f)
        self.G_f = max(self.G_f, float(np.linalg.norm(grad_f)))
        s, w, D = self.V * grad_f, np.zeros(self.k), self.K.diameter
        for i in range(self.k):
            if values[i] > 0.0:
                gradient = self.K.tangent(gradients[i])
                self.G[i] = max(self.G[i], float(np.linalg.norm(gradient)))
                self.Q[i] += min(values[i], self.G[i] * D)
            if self.G[i] == 0.0:
                continue
            ratio = self.a * (self.G_f / self.G[i] if self.G_f > 0.0 else 1.0)
            q = self.Q[i] / (2.0 * self.G[i] * D)
            w[i] = lyapunov.THETA * ratio * math.exp(self.growth() * q)
            if values[i] > 0.0:
                self.rho[i] = min(self.rho[i], ratio)
                self.paid[i] += w[i] * min(values[i], self.G[i] * D)
                s = s + w[i] * gradient
        return s, w

    def at_most(self, i, most):
        unit, others = 2.0 * self.G[i] * self.K.diameter, self.paid.sum() - self.paid[i]
        e = self.growth()
        return unit / e * math.log1p(e * (most - others) / (self.rho[i] * lyapunov.THETA * unit))


@given(seed=seeds, limits=st.integers(1, 4), stride=st.booleans())
@settings(max_examples=15)
def test_weights_are_those_of_the_file_written_plainly(seed, limits, stride):
    """Also where the units of the ledger change all the time."""
    with pytest.MonkeyPatch.context() as patch:
        if stride:
            patch.setattr(lyapunov, "_STRIDE", 1)
            patch.setattr(lyapunov, "THETA", 4.0)
        rng, K = np.random.default_rng(seed), Simplex(4)
        weights, plain = LyapunovWeights(K, 3.0, per_constraint=True), Plainly(K, 3.0, limits)
        dual, x = weights.start(), np.zeros(4)
        for _ in range(20):
            A = rng.standard_normal((1, limits, 4)) * 10.0 ** np.arange(limits)[:, None]
            b = rng.standard_normal((1, limits)) * 10.0 ** np.arange(limits)
            c, g = rng.choice([0.0, 1.0]) * rng.standard_normal(4), MaxAffine(A, b)
            block = first_order(Linear([c]), g, x, g.values(x), per_constraint=True)
            y = rng.standard_normal(4)
            block = played_at(block, x, y)
            weighed = weights.weigh(dual, block, y)
            before = plain.paid.sum()
            s, w = plain.seen(c, -b[0], A[0])
            dual, size = weighed.dual, math.ldexp(1.0, weighed.dual.exponent)
            assert size * weighed.grad.g == pytest.approx(s, rel=1e-9, abs=1e-12)
            found = size * weighed.penalty_weight * weighed.shares
            assert found == pytest.approx(w, rel=1e-9)
            owed = float(w @ np.maximum(-b[0], 0.0))
            largest = size * weighed.penalty_weight
            assert largest * weighed.breach(g, x) == pytest.approx(owed, rel=1e-9)
            gradient, violation = weighed.limits_of(block)
            assert largest * violation == pytest.approx(owed, rel=1e-9)
            grad = (w * (b[0] < 0.0)) @ A[0]
            assert largest * gradient == pytest.approx(grad, rel=1e-9, abs=1e-12)
            apart = float(grad @ (x - y))
            there = size * weighed.grad.penalty_value + apart  # as it counts, at x
            assert there == pytest.approx(plain.paid.sum() - before, rel=1e-9, abs=1e-9)
        assert size * dual.each.paid == pytest.approx(plain.paid, rel=1e-9)
        most = size * paid_at_most(K, dual.sums)
        if not dual.impossible and most >= plain.paid.sum():
            bounds = [limit.bound for limit in weights.limit_rows(dual, ())]
            due = [plain.at_most(i, most) if plain.Q[i] else 0.0 for i in range(limits)]
            assert bounds == pytest.approx(due, rel=1e-6)
            bound = weights.bound(dual)  # sharp weights may prove that no point keeps every limit
            assert bound.reason == saddle.HOPELESS or bound.violation <= sum(due) * (1 + 1e-9)


# --- bounds on hostile streams --------------------------------------------------------------------


@given(seed=seeds)
@settings(max_examples=5)
def test_bounds_and_guards_hold_where_losses_are_mixed_by_their_values(seed):
    rng, T = np.random.default_rng(seed), 40
    A = rng.standard_normal((T, 2, 4))
    limits = MaxAffine(A, A @ np.full(4, 0.25) + 0.01)
    stream = tw.Stream(tw.functions.LogWealth(np.exp(0.05 * rng.standard_normal((T, 4)))), limits)
    run = tw.run(tw.Ensemble(Simplex(4), per_constraint=True), stream)
    assert run.certificate.holds, run.certificate.verdict
    assert {"guards", "limits"} <= {check.name for check in run.certificate.checks}
    for guard in run.certificate.guards:
        assert guard.left == pytest.approx(guard.right, abs=1e-9)


@pytest.mark.parametrize("maker", [tw.LyapunovDescent, tw.Ensemble])
def test_the_bound_of_each_constraint_counts_what_was_played_instead(maker):
    K, T = Simplex(2), 20
    both = MaxAffine([[[1.0, 0.0], [0.0, 1.0]]] * T, [[0.5, 2.0]] * T)
    for constraints, violations in ((Affine([[1.0, 0.0]] * T, [0.5] * T), [10.0]), (both, [10, 0])):
        stream = tw.Stream(Linear([[1.0, 0.0]] * T), constraints, played=[[1.0, 0.0]] * T)
        run = tw.run(maker(K, per_constraint=True), stream)
        assert [one.violation for one in run.limits] == pytest.approx(violations)
        for one in run.limits:  # the decisions violate nothing: all is due to what was played
            assert one.bound == pytest.approx(one.violation)
        assert run.certificate.holds, run.certificate.verdict


def test_that_no_point_keeps_every_limit_is_proved_by_all_of_them_together():
    """x_1 <= 0.2 and x_2 <= 0.2 on the segment: each limit alone can be kept."""
    T = 200
    limits = MaxAffine(np.tile(np.eye(2), (T, 1, 1)), np.full((T, 2), 0.2))
    stream = tw.Stream(Linear(np.zeros((T, 2))), limits)
    run = tw.run(tw.LyapunovDescent(Simplex(2), per_constraint=True), stream)
    bound = run.learner.bound(run)
    assert bound.violation is None
    assert (bound.reason, [one.bound for one in run.limits]) == (saddle.HOPELESS, [None, None])
    assert run.certificate.holds


ONES = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}


@pytest.mark.parametrize("k", [1, 3])
def test_what_is_measured_stays_below_what_was_promised_for_so_many_limits(k):
    K, T, rng = Simplex(5), 60, np.random.default_rng(k)
    C, A = rng.normal(size=(T, 5)), rng.normal(size=(T, k, 5))
    C, A = (rows / np.linalg.norm(rows, axis=-1, keepdims=True) for rows in (C, A))
    known = {"horizon": T, "tolerance": 1e-2, "calls_per_round": 804.0, "caution": 1.0, **ONES}
    learner = tw.LyapunovDescent(K, per_constraint=True, **known)
    guarantee = learner.guarantee(limits=k)
    run = tw.run(learner, tw.Stream(Linear(C), MaxAffine(A, A.mean(axis=2))))
    assert run.certificate.holds
    assert run.certificate.violation.guarantee == guarantee.violation
    assert run.bound.regret <= guarantee.regret
    assert run.bound.violation <= guarantee.violation
    assert "as in guarantee(limits=3)" in learner.guarantee().reason


# --- one limit, and units -------------------------------------------------------------------------


@given(seed=seeds, K=st.sampled_from(SETS))
@settings(max_examples=2)
def test_with_one_limit_the_weight_is_the_plain_one(seed, K):
    stream = turning(K, 40, seed, limits=1)
    limits = stream.constraints
    single = tw.Stream(stream.losses, Affine(limits.A[:, 0], limits.b[:, 0]))
    seasonal = partial(tw.Ensemble, K, experts=[tw.experts.Season(5, cells=2)])
    for make in (partial(tw.LyapunovDescent, K), seasonal):
        plain = tw.run(make(), stream)
        for other in (stream, single):
            run = tw.run(make(per_constraint=True), other)
            assert run.losses == pytest.approx(plain.losses, rel=1e-7, abs=1e-9)
            assert run.bound[:2] == pytest.approx(plain.bound[:2], rel=1e-6)
            assert len(run.limits) == 1
            assert run.limits[0].bound >= (1.0 - 1e-6) * plain.bound.violation  # sharp ones, too


@given(seed=seeds, K=st.sampled_from(SETS[:3]), size=st.sampled_from([1e3, 2.0**-20]))
@settings(max_examples=3)
def test_the_units_of_one_limit_change_no_decision(seed, K, size):
    stream = turning(K, 40, seed)
    A, b = stream.constraints.A.copy(), stream.constraints.b.copy()
    A[:, 1], b[:, 1] = size * A[:, 1], size * b[:, 1]
    other = tw.Stream(stream.losses, MaxAffine(A, b))
    for maker in (tw.LyapunovDescent, tw.Ensemble):
        learner = maker(K, per_constraint=True)
        one, two = (tw.run(learner, each) for each in (stream, other))
        assert one.losses == pytest.approx(two.losses, rel=1e-7, abs=1e-9)
        for i, share in enumerate((1.0, size, 1.0)):
            broken = pytest.approx(two.limits[i].violation, rel=1e-6, abs=1e-9 * share)
            assert share * one.limits[i].violation == broken
            assert share * one.limits[i].bound == pytest.approx(two.limits[i].bound, rel=1e-6)


# --- states, names, words -------------------------------------------------------------------------


def test_a_forged_ledger_is_refused():
    K = Simplex(3)
    for maker in (tw.LyapunovDescent, tw.Ensemble):
        learner = maker(K, per_constraint=True)
        state = learner.update(learner.start(), three([0.1, 0.2, -0.1]))
        each = state.dual.each
        forged = each._replace(violations=each.violations * math.nan)
        bad = state._replace(dual=state.dual._replace(each=forged))
        with pytest.raises(errors.BrokenFile):
            learner.load(learner.save(bad))


def test_limits_have_the_names_of_the_sets_entries():
    K = TRIANGLE
    capacities, budget = Capacity(np.full((40, 3), 0.4)), Affine(np.ones((40, 3)), np.ones(40))
    assert limit_names(K, capacities) == ("SEA > DEN", "DEN > NYC", "SEA > NYC")
    both = Max(budget, capacities)
    assert limit_names(K, both) == ("limit 1", "SEA > DEN", "DEN > NYC", "SEA > NYC")
    assert limit_names(Simplex(3), capacities) == ("limit 1", "limit 2", "limit 3")
    assert limit_names(K, budget) == ("limit 1",)
    assert limit_names(K, budget[:0]) == ()
    stream = tw.Stream(Linear(np.tile([1.0, 1.0, 0.5], (40, 1))), Capacity(np.full((40, 3), 0.6)))
    run = tw.run(tw.Ensemble(K, per_constraint=True), stream)
    assert "SEA > NYC: " in str(run)
    assert run.summary()["limits"][2]["name"] == "SEA > NYC"
    assert "limits" in run.summary()["certificate"]["checks"]
    plain = tw.run(tw.Ensemble(K), stream)
    assert plain.limits == ()
    assert plain.summary()["limits"] == []
    shown = limits_context([run, plain])["table"]
    assert (shown.titles[-1], shown.groups[0].rows[0][0].text) == ("theory allows", "SEA > NYC")


def test_a_session_takes_the_value_and_gradient_of_each_limit(tmp_path):
    K, learner = Simplex(3), tw.LyapunovDescent(Simplex(3), per_constraint=True)
    A, b = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([0.1, 2.0])
    loss = {"loss_gradient": [1.0, 0.5, 0.0]}
    with tw.Session.open(tmp_path / "kept.tidewolf", learner) as kept:
        told, seen = tw.Session(learner), tw.Session(learner)
        for _ in range(5):
            values = A @ told.play() - b
            for session in (told, kept):
                session.play()
                session.observe(**loss, constraint_value=values, constraint_gradient=A)
            seen.observe(loss=Linear.one([1.0, 0.5, 0.0]), constraint=MaxAffine.one(A, b))
        assert (told.play() == seen.play()).all()
        assert (told.play() == kept.play()).all()
    with tw.Session.open(tmp_path / "kept.tidewolf", learner) as again:
        assert (again.play() == told.play()).all()
    assert K.infeasibility(told.play()) <= 1e-9
    told.observe(**loss, constraint_value=[-1.0, -0.1])
    with pytest.raises(errors.InvalidInput, match="needs constraint_gradient, one per limit"):
        told.observe(**loss, constraint_value=[-1.0, 0.1])
    with pytest.raises(errors.WrongShape, match=r"shape \(2, 3\), not \(3,\)"):
        told.observe(**loss, constraint_value=[0.1, 0.1], constraint_gradient=A[0])


# --- when limits were broken ----------------------------------------------------------------------


@given(seeds, st.integers(1, 40), st.integers(1, 4))
def test_breaches_are_counted_as_they_would_be_by_hand(seed, rounds, limits):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(-0.3, 1.0, (rounds, limits)), 1)
    found, start = Breaches(limits), 0
    while start < rounds:  # in blocks of any length, through a file in between
        stop = start + int(rng.integers(1, 6))
        found.see(start, values[start:stop])
        parts, found = found.parts(), Breaches(limits)
        found.restore(parts)
        start = stop
    for i in range(limits):
        broken = np.flatnonzero(values[:, i] > 0.0)
        if not len(broken):
            assert found.of(i) == Breach(0, 0.0, -1, -1, -1)
            continue
        worst = int(values[:, i].argmax())
        expected = Breach(len(broken), values[worst, i], worst, int(broken[0]), int(broken[-1]))
        assert found.of(i) == expected


def test_rounding_is_no_breach():
    found = Breaches(2)
    found.see(0, np.array([[1e-12, -5.0], [1e-12, 1e-3]]))
    assert found.when[0].tolist() == [0, 1]


def test_what_was_broken_is_said_by_name_the_most_broken_first():
    K, capacities = TRIANGLE, np.full((30, 3), 0.6)
    capacities[7, 2] = 0.0
    stream = tw.Stream(Linear(np.tile([1.0, 1.0, 0.5], (30, 1))), Capacity(capacities))
    run = tw.run(tw.LyapunovDescent(K), stream, decisions=True)
    over = np.maximum(run.decisions.points - capacities, 0.0)
    name, total, breach, _ = broken_limits(run)[0]
    assert (name, total) == ("SEA > NYC", pytest.approx(over[:, 2].sum()))
    assert breach.worst_round == int(over[:, 2].argmax()) == 7
    assert breach.worst == pytest.approx(over[7, 2])
    assert breach.rounds == int((over[:, 2] > 1e-9).sum())
    totals = [total for _, total, *_ in broken_limits(run)]
    assert totals == sorted(totals, reverse=True)
    half = Affine(np.ones((30, 3)), np.full(30, 0.5))
    single = tw.run(tw.LyapunovDescent(K), tw.Stream(stream.losses, half))
    ((name, total, breach, _),) = broken_limits(single)
    assert (name, total) == ("the limit", pytest.approx(single.violations.sum()))
    assert breach.worst_round == int(single.violations.argmax())
