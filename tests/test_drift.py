"""Drift-plus-penalty: laws, bounds on every interval, units, blocks, the frozen regime, and what is
kept while a block is open.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theorems
import tidewolf as tw
from tidewolf.baselines import ProximalPenalty
from tidewolf.core import errors
from tidewolf.core.feedback import FullInformation
from tidewolf.functions import Affine, Capacity, Custom, Linear, MaxAffine, Quadratic
from tidewolf.functions.combined import Limits
from tidewolf.learners.drift_plus_penalty import DriftPlusPenalty
from tidewolf.methods.paper import ProjectedPoint
from tidewolf.methods.steps.drift import DRIFT_ACCURACY, DriftBlock, Tally, drift
from tidewolf.methods.steps.penalty import solve_penalty
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, VertexHull

DIAMOND = FlowPolytope.examples()[0]
HULL = VertexHull(np.random.default_rng(0).standard_normal((9, 3)))
FIELDS = Tally._fields


def opposed(K, rounds, seed, turns=4):
    """Losses that turn round and limits that oppose them; what keeps the limits of one turn breaks
    those of the next.
    """
    rng, phase = np.random.default_rng(seed), np.arange(rounds) * turns // rounds
    vertices = np.array([K.lmo(rng.standard_normal(K.shape)) for _ in range(turns)])
    stars = (0.5 * K.center + 0.5 * vertices)[phase]
    sign = np.where(phase % 2, -1.0, 1.0)[:, None]
    C = sign * rng.standard_normal(K.shape) + 0.3 * rng.standard_normal((rounds, *K.shape))
    A = np.stack([-C, C], axis=1) + 0.2 * rng.standard_normal((rounds, 2, *K.shape))
    return tw.Stream(Linear(C), MaxAffine(A, np.einsum("tpi,ti->tp", A, stars)))


# --- every interval -------------------------------------------------------------------------------


FEW = {"block": 4, "calls_per_round": 0.5, "horizon": 20}


@pytest.mark.parametrize("options", [{"block": 3}, FEW, {"block": 1}], ids=str)
@pytest.mark.soak_examples(8)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=2)
def test_regret_and_violation_of_every_interval_are_below_their_bounds(options, seed):
    K, T = (Simplex(4), Box(-np.ones(3), np.ones(3)), CappedSimplex(5, 0.5), DIAMOND)[seed % 4], 36
    stream = opposed(K, T, seed)
    learner = DriftPlusPenalty(K, **{"horizon": T, **options})
    run, looked_at = tw.run(learner, stream), 0
    for start in range(0, T, 3):
        for stop in range(start + 1, T + 1, 4):
            best = tw.best_in_hindsight(K, stream, start, stop)
            if best.feasible:
                bound = learner.bound_between(run, start, stop)
                room = 1e-9 * (1.0 + abs(bound.regret))
                assert run.losses[start:stop].sum() - best.lower <= bound.regret + room
                assert run.violations[start:stop].sum() <= bound.violation + room
                looked_at += 1
    assert looked_at > 20


def test_the_whole_run_is_an_interval():
    learner = DriftPlusPenalty(DIAMOND, horizon=40, block=6)
    for rounds in (40, 38, 36, 75):
        run = tw.run(learner, opposed(DIAMOND, rounds, 1))
        whole = learner.bound_between(run, 0, rounds)
        assert whole.regret == pytest.approx(learner.bound(run).regret)
        assert whole.violation == pytest.approx(learner.bound(run).violation)


def test_an_interval_without_a_whole_block_costs_slopes_times_diameter():
    learner = DriftPlusPenalty(DIAMOND, horizon=40, block=10)
    run = tw.run(learner, opposed(DIAMOND, 40, 2))
    slopes = run.final_state.slopes
    steepest = slopes.steepest_loss, slopes.steepest_constraint
    most = tuple(7 * s * DIAMOND.diameter for s in steepest)
    assert learner.bound_between(run, 12, 19)[:2] == pytest.approx(most)


@pytest.mark.parametrize("looks", [1, 2, 60])
@pytest.mark.parametrize("K", [Simplex(4), HULL], ids=lambda K: type(K).__name__)
def test_bounds_are_those_of_the_file_written_plainly(K, looks, monkeypatch):
    """Three stretches, slopes that grow, steps from rough to exact: what each block costs, and what
    a factor that grows costs.
    """
    answers = []

    def seen(task, accuracy, budget):
        found = solve_penalty(task, accuracy, looks)
        if len(answers) % 2:  # as though it were not known how far off the answer is
            found = found._replace(off=1e3)
        answers.append((task, found))
        return found

    monkeypatch.setattr("tidewolf.methods.steps.drift.solve_penalty", seen)
    T, growth = 100, np.logspace(-1.0, 0.5, 100)
    stream = opposed(K, T, 4)
    A = stream.constraints.A * growth[:, None, None]
    b = stream.constraints.b * growth[:, None] + 0.02
    stream = tw.Stream(Linear(growth[:, None] * stream.losses.C), MaxAffine(A, b))
    learner = DriftPlusPenalty(K, horizon=16, block=3, calls_per_round=0.5)
    run = tw.run(learner, stream)
    answers.clear()
    played = list(tw.play(learner, stream))
    R, D, before, epochs = K.radius, K.diameter, learner.start(), [16, 48, 112]
    t, G_f, steps = 0, 0.0, iter(answers)
    price = growths = need = climbs = apart = spread = last_weight = last_hold = 0.0
    deltas = []
    for p in played:
        n = len(p.losses)
        if t in epochs:
            before, last_weight = before._replace(point=ProjectedPoint.of(before.point.active)), 0.0
            last_hold = 0.0
        x, y, block = before.point.x, before.point.y, stream[t : t + n]
        if p.state.open.rounds:  # a block that was not finished
            break
        g, d = block.constraints.values(x), K.tangent(block.losses.C.sum(0)) / n
        G_f = max(G_f, np.linalg.norm(d))
        s = sum(np.linalg.norm(K.tangent(slope)) for slope in block.constraints.gradients(x)[g > 0])
        task, (z, breach, gap, off, _) = next(steps)
        alpha, delta, d = task.alpha, task.delta, d / G_f
        np.testing.assert_allclose(task.d, d, atol=1e-12)
        m, reach = np.linalg.norm(z - y), R if t == 0 else min(2.0 * R, D + np.linalg.norm(x - y))
        slop = gap + min(reach + m, 2.0 * R) * min(alpha * off, math.sqrt(2.0 * alpha * gap))
        price += block.losses.values(x).sum() - block.losses.values(y).sum()
        price += n * G_f * (d @ (y - z) - alpha * m**2 / 2.0 - delta * breach + slop)
        growths += max(0.0, n * G_f * alpha / 2.0 - last_weight) * reach**2
        need += R * np.linalg.norm(d) - d @ (z - K.center) + slop
        climbs += max(0.0, alpha / 2.0 - last_hold) * reach**2
        apart, spread = apart + s * np.linalg.norm(x - y), spread + s**2 / alpha
        last_weight, last_hold = n * G_f * alpha / 2.0, alpha / 2.0
        deltas.append(delta)
        before, t = p.state, t + n
    E = need + climbs
    both = (stream.losses.C, _breached_slopes(played, stream))
    steepest = [max(np.linalg.norm(K.tangent(row)) for row in rows) for rows in both]
    regret = price + growths + (T - t) * steepest[0] * D
    violation = E / min(deltas) + apart + math.sqrt(2.0 * E * spread) + (T - t) * steepest[1] * D
    assert t > 48
    assert looks == 60 or max(answer.gap for _, answer in answers) > 1e-3 * task.alpha * R**2
    assert learner.bound(run)[:2] == pytest.approx((regret, violation), rel=1e-9)


def test_factors_that_grow_cost_their_growth_and_those_that_fall_nothing():
    K, rng = Simplex(4), np.random.default_rng(1)
    limits, d = Affine(rng.standard_normal((2, 4)), np.zeros(2)), K.tangent(rng.standard_normal(4))
    block = DriftBlock(2.0 * d, 2, 0.0, 0.0, Limits((limits,)))
    tally, weight, hold = Tally(), 0.0, 0.0
    for loss_slope, alpha in ((1.0, 2.0), (1.5, 2.5), (1.2, 2.0), (4.0, 2.4)):
        now = 2 * loss_slope * alpha / 2.0 * 0.81, alpha / 2.0 * 0.81
        before, factors = tally, (loss_slope, alpha, 3.0, tally)
        _, tally = drift(K, block, d, K.center, 0.0, 0.9, *factors)
        assert tally.growth - before.growth == pytest.approx(max(0.0, now[0] - weight))
        assert tally.climb - before.climb == pytest.approx(max(0.0, now[1] - hold))
        weight, hold = now


def _breached_slopes(played, stream):
    """Gradients of the limits that were broken, at the points played."""
    slopes, t = [], 0
    for p in played:
        block = stream.constraints[t : t + len(p.losses)]
        slopes += list(block.gradients(p.x)[block.values(p.x) > 0])
        t += len(p.losses)
    return slopes


# --- an open block --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    [
        DriftPlusPenalty(Simplex(3), horizon=30, block=3),
        ProximalPenalty(Simplex(3), horizon=30),
        tw.baselines.Resolve(Simplex(3), data=2),
        tw.Ensemble(Simplex(3), experts=[tw.experts.Resolve(2), tw.experts.Resolve(columns=True)]),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_what_a_caller_does_to_its_arrays_later_changes_nothing(learner):
    costs, caps, kept, reused = np.zeros(3), np.zeros(3), tw.Session(learner), tw.Session(learner)
    rng = np.random.default_rng(2)
    for _ in range(9):
        costs[:], caps[:] = rng.standard_normal(3), rng.uniform(0.2, 0.6, 3)
        kept.observe(loss=Linear.one(costs.copy()), constraint=Capacity.one(caps.copy()))
        reused.observe(loss=Linear.one(costs), constraint=Capacity.one(caps))
        assert learner.save(kept.state) == learner.save(reused.state)


def test_rounds_of_several_kinds_share_a_block_and_survive_a_file(tmp_path):
    learner = DriftPlusPenalty(Simplex(3), horizon=30, block=6)
    kinds = [
        Capacity.one([0.5, 0.4, 0.6]),
        Capacity.one([0.4, 0.4, 0.6]),
        Affine.one([1.0, -1.0, 0.0], 0.1),
        Quadratic.one(np.eye(3), [0.0, 0.0, 0.0], -0.2),
        MaxAffine.one([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.3, 0.3]),
    ]
    session = tw.Session(learner)
    for kind in kinds:
        session.observe(loss=Linear.one([1.0, 2.0, 0.0]), constraint=kind)
    session.save(tmp_path / "open")
    loaded = tw.Session.load(tmp_path / "open", learner)
    for s in (session, loaded):
        s.observe(loss=Linear.one([1.0, 2.0, 0.0]), constraint=Capacity.one([0.3, 0.5, 0.5]))
    assert learner.save(session.state) == learner.save(loaded.state)
    assert session.play().tobytes() != Simplex(3).center.tobytes()


def test_callables_cannot_be_saved_in_an_open_block_and_can_after_it():
    learner = DriftPlusPenalty(Simplex(4), horizon=30, block=2)
    session, bowl = tw.Session(learner), Custom(lambda t, x: x @ x - 0.1, lambda t, x: 2.0 * x, 4)
    session.observe(loss=Linear.one(np.ones(4)), constraint=bowl)
    with pytest.raises(errors.NotSupported, match="holds Custom functions, which cannot be saved"):
        learner.save(session.state)
    session.observe(loss=Linear.one(np.ones(4)), constraint=bowl)
    assert learner.load(learner.save(session.state)).t == 2


def test_curved_limits_stop_where_rounding_ends():
    """A gap that has stopped to fall ends the step before its budget does: what is left are cuts of
    the size of rounding.
    """
    n, T, rng = 12, 40, np.random.default_rng(0)
    centers, C = 0.14 * rng.standard_normal((T, n)), rng.standard_normal((T, n))

    def over(t, x):
        return float(np.linalg.norm(x - centers[t])) - 0.7

    balls = Custom(over, lambda t, x: (x - centers[t]) / (over(t, x) + 0.7), n, rounds=T)
    run = tw.run(DriftPlusPenalty(Simplex(n), horizon=T), tw.Stream(Linear(C), balls)[:17])
    assert run.measures[0, FIELDS.index("looks")] < 50
    assert run.measures[0, FIELDS.index("gap")] < 1e-6


ONE = Linear.one([1.0, 0.0])


@pytest.mark.parametrize(
    ("seen", "error", "named"),
    [
        ((Linear.one([5.0, 0.0]), ONE), errors.InvalidInput, "loss_lipschitz = 1"),
        ((ONE, Affine.one([5.0, 0.0], -1.0)), errors.InvalidInput, "constraint_lipschitz = 1"),
        ((Linear([[1.0, 0.0], [0.0, 0.0]]), ONE), errors.WrongShape, "constraints"),
        ((ONE, np.ones(2)), errors.WrongType, "FullInformation"),
        ((Linear.one([1e200, 0.0]), Linear.one([1e200, -1e200])), errors.NotFinite, r"1e\+200"),
    ],
)
def test_bad_feedback_is_refused(seen, error, named):
    slopes = {"loss_lipschitz": 1.0, "constraint_lipschitz": 1.0}
    learner = DriftPlusPenalty(Simplex(2), horizon=30, block=2, **slopes)
    with pytest.raises(error, match=named):
        learner.update(learner.start(), FullInformation(*seen))


def test_subgradients_that_contradict_their_values_are_named():
    steep = Custom(lambda t, x: float(abs(x[0])), lambda t, x: np.array([-50.0, 0.0]), 2, rounds=4)
    learner = DriftPlusPenalty(Box([-1.0, -1.0], [1.0, 1.0]), horizon=4, block=2)
    with pytest.raises(errors.NotConvex, match="they are not convex, or a subgradient is wrong"):
        list(tw.play(learner, tw.Stream(Linear(np.array([[1.0, 0.0]] * 4)), steep)))


def test_the_slopes_of_an_open_block_count():
    C = 1e-3 * np.random.default_rng(0).standard_normal((100, 3))
    C[90:] = [1.0, -1.0, 0.0]
    stream = tw.Stream(Linear(C), Affine(np.zeros((100, 3)), np.ones(100)))
    K = Simplex(3)
    for learner in (DriftPlusPenalty(K, horizon=1000), tw.PrimalDual(K, horizon=9000)):
        run = tw.run(learner, stream)
        assert run.regret[0] <= run.certificate.regret.trivial


# --- the theorem ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DriftPlusPenalty, ProximalPenalty])
def test_functions_defined_on_the_set_alone_are_refused_by_name(kind):
    fenced = Linear.one([1.0, 0.0])
    object.__setattr__(fenced, "domain", "points whose entries are all positive")
    learner = kind(Simplex(2), horizon=30)
    with pytest.raises(errors.NotSupported, match="Linear is only defined on points whose"):
        learner.update(learner.start(), FullInformation(ONE, fenced))


def test_the_settings_are_the_theorems():
    learner = theorems.drift_plus_penalty(L2Ball(2, 2.0), 10_000, 3.0, 5.0)
    assert (learner.block, learner.alpha, learner.delta) == pytest.approx((100, 15.0, 100.0))
    assert learner.eps == pytest.approx(61 * 4.0 * math.log(10_000) / 100.0)
    assert [3.0 * w for w in learner.weights(10_000, 3.0, 5.0)] == pytest.approx([15.0, 100.0])


@pytest.mark.parametrize("pieces", [1, 2])
def test_equal_rounds_of_a_block_are_solved_as_one(pieces, monkeypatch):
    """The same point as with rows that differ by 1e-12, of which each round has its own."""
    K, T, rng = Simplex(5), 60, np.random.default_rng(0)
    A = rng.standard_normal((3, pieces, 5))[rng.integers(3, size=T)]
    b = np.tile(A.mean(axis=2).min(axis=0) - 0.05, (T, 1))
    losses, looked = Linear(rng.standard_normal((T, 5))), []
    gradients = MaxAffine.gradients

    def seen(self, x):
        looked.append(len(self))
        return gradients(self, x)

    monkeypatch.setattr(MaxAffine, "gradients", seen)
    learner, ends, sizes = DriftPlusPenalty(K, horizon=2 * T, block=T), [], []
    for own in (0.0, 1e-12):
        near = MaxAffine(A * (1.0 + own * rng.standard_normal(A.shape)), b)
        ends.append(learner.act(tw.run(learner, tw.Stream(losses, near)).final_state))
        sizes.append(min(looked))  # other looks are at all rounds
        looked.clear()
    assert sizes == [3, T]
    assert np.linalg.norm(ends[0] - K.center) > 0.1
    # each of two answers is within sqrt(2 DRIFT_ACCURACY) R of the best
    most = 3.0 * math.sqrt(DRIFT_ACCURACY) * K.radius
    assert np.linalg.norm(ends[0] - ends[1]) <= most
