"""Feedback that comes late, or of other points than were decided: streams, the loop, bounds, and
the sums of bounds written plainly.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from streams import together
from tidewolf import loop
from tidewolf.core import batch, errors
from tidewolf.core.feedback import Arrival, FullInformation, Instead, first_order
from tidewolf.evaluation.formatting import applying
from tidewolf.evaluation.metrics import TABLE
from tidewolf.methods.capabilities import feedback_read
from tidewolf.methods.late import next_round
from tidewolf.methods.steps import lyapunov
from tidewolf.testing.learners import hostile_stream, late_stream

seeds = st.integers(0, 10_000)
PLAIN = (tw.sets.Simplex(4), tw.sets.L1Ball(3))
"""No products: one step for all entries."""
COSTS = tw.functions.Linear([[1.0, 2.0], [0.0, 3.0], [2.0, 1.0]])


def late(stream, arrives, played=None):
    return tw.Stream(stream.losses, stream.constraints, arrives=arrives, played=played)


# --- streams --------------------------------------------------------------------------------------


def test_a_slice_keeps_what_arrives_relative_to_its_first_round():
    stream = tw.Stream(COSTS, arrives=[2, 1, 7])
    assert stream.arrives.tolist() == [2, 1, batch.NEVER]
    assert stream[1:].arrives.tolist() == [0, batch.NEVER]
    assert stream[:2].arrives.tolist() == [2, 1]  # pending at its end, not lost
    assert stream[1:][1:].arrives.tolist() == [batch.NEVER]
    assert [part.untold for part in (stream, stream[:2], stream[1:2], stream[:0])] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("arrives", "error"),
    [
        ([0, 0, 2], errors.InvalidInput),
        ([0, 1], errors.WrongShape),
        ([0.0, 1.0, 2.0], errors.WrongShape),
        ([[0], [1, 2]], errors.WrongShape),
        ([True, True, True], errors.WrongShape),
    ],
)
def test_what_cannot_arrive_is_refused(arrives, error):
    with pytest.raises(error, match="round"):
        tw.Stream(COSTS, arrives=arrives)


def test_what_was_played_is_a_member_or_is_refused():
    K, stream, outside = tw.sets.Simplex(2), tw.Stream(COSTS), np.full((3, 2), np.nan)
    outside[1] = (0.9, 0.9)
    with pytest.raises(errors.InvalidInput, match="What was played in round 1 is no member"):
        tw.run(tw.LyapunovDescent(K), late(stream, None, outside))
    with pytest.raises(errors.WrongShape, match="played of a stream"):
        tw.Stream(COSTS, played=outside[:2])


def test_learners_that_take_feedback_in_order_refuse_at_once():
    learner = tw.BanditPrimalDual(tw.sets.Simplex(2), horizon=9)
    with pytest.raises(errors.NotSupported, match="takes feedback in order"):
        tw.play(learner, tw.Stream(COSTS, arrives=[1, 1, 2]))
    tw.run(learner, tw.Stream(COSTS, arrives=[0, 1, 2]))


# --- the loop -------------------------------------------------------------------------------------


@given(seed=seeds, learner=st.sampled_from(["descent", "ensemble", "resolve"]))
@settings(max_examples=8)
def test_the_loop_is_decided_and_arrived_written_by_hand(seed, learner):
    K = tw.sets.Simplex(3)
    learner = {
        "descent": tw.LyapunovDescent(K, max_move=0.3),
        "ensemble": tw.Ensemble(K, experts=[tw.experts.Season(5), tw.experts.Resolve()]),
        "resolve": tw.baselines.Resolve(K, headroom=1.0),
    }[learner]
    rng, plain, T = np.random.default_rng(seed), hostile_stream(K, 14, seed), 14
    arrives = np.arange(T) + rng.choice([0, 1, 3, 99], T)
    played = np.where(rng.random((T, 1)) < 0.3, np.eye(3)[rng.integers(3, size=T)], np.nan)
    stream, state, decisions = late(plain, arrives, played), learner.start(), {}
    for t, ours in enumerate(tw.play(learner, stream)):
        decisions[t] = learner.act(state)
        x = decisions[t] if np.isnan(played[t]).any() else played[t]
        assert ours.x.tolist() == x.tolist()
        assert ours.losses.tolist() == plain.losses[t : t + 1].values(x).tolist()
        if arrives[t] > t:
            state = learner.defer(state)
        if arrives[t] >= T:
            state = learner.drop(state, [t])
        told = []
        for s in np.flatnonzero(arrives == t).tolist():
            f, g = plain.losses[s : s + 1], plain.constraints[s : s + 1]
            own, there = decisions[s], None if np.isnan(played[s]).any() else played[s]
            seen = FullInformation(f, g)
            if feedback_read(learner, f) is not FullInformation:
                seen = first_order(f, g, own, g.values(own))
            values = [
                float(max(h.values(z)[0], c))
                for z in (own if there is None else there, own)
                for h, c in ((f, -math.inf), (g, 0.0))
            ]
            told.append(Arrival(s, seen, there, None if there is None else Instead(*values)))
        if told:
            state = learner.on_feedback(state, told[::-1])
        assert ours.seen is bool(told)
        assert (learner.save(ours.state), next_round(state)) == (learner.save(state), t + 1)


def test_rounds_that_are_not_seen_do_not_exist_for_late_feedback_either():
    K = tw.sets.Simplex(3)
    stream, seen = hostile_stream(K, 12, 3), np.arange(12) % 4 != 1
    arrives = np.minimum(np.arange(12) + 2, 11)
    whole = tw.Stream(stream.losses, stream.constraints, seen, arrives=arrives)
    run = tw.run(tw.Ensemble(K), whole)
    assert (run.unseen, run.pending, run.final_state.t) == (3, 0, 9)
    assert run.bound.regret is None


def test_memory_is_that_of_the_rounds_that_wait():
    K, learner = tw.sets.Simplex(3), tw.Ensemble(tw.sets.Simplex(3))
    stream = hostile_stream(K, 80, 0)
    lost = late(stream, np.where(np.arange(80) % 2, np.arange(80), batch.NEVER))
    assert all(len(played.state.pending) == 0 for played in tw.play(learner, lost))
    five = late(stream, np.arange(80) + 5)
    assert max(len(played.state.pending) for played in tw.play(learner, five)) == 5


# --- bounds ---------------------------------------------------------------------------------------


def test_a_round_that_nobody_tells_of_adds_its_slope_times_the_diameter():
    K = tw.sets.Simplex(3)
    stream, arrives = hostile_stream(K, 20, 1), np.arange(20)
    arrives[7] = 99
    learner = tw.LyapunovDescent(K)
    run = tw.run(learner, tw.Stream(stream.losses, arrives=arrives))
    own, all_points = learner.bound(run), [played.x for played in tw.play(learner, run.stream)]
    gradient = K.tangent(stream.losses[7:8].subgradient(all_points[7], np.ones(1)))
    added = K.diameter * float(np.linalg.norm(gradient))
    assert run.bound.regret == pytest.approx(own.regret + added)
    assert (run.late, run.pending) == (0, 1)
    assert "lacks feedback (1 in all)" in run.notes[-1]


def test_nothing_is_promised_beforehand_for_what_comes_late_or_is_held_back():
    K = tw.sets.Box([0.0, 0.0], [1.0, 1.0])
    given_ = {"horizon": 30, "loss_lipschitz": 1e3, "constraint_lipschitz": 10.0}
    stream = hostile_stream(K, 30, 1)
    for maker in (tw.LyapunovDescent, tw.Ensemble):
        assert maker(K, **given_).guarantee().regret is not None
        assert "max_move" in maker(K, max_move=0.1, **given_).guarantee().reason
        run = tw.run(maker(K, **given_), late(stream, np.arange(30) + 1))
        assert run.certificate.regret.guarantee is None
        assert "feedback in order" in str(run.certificate)
        assert run.certificate.holds is not False


def test_the_table_of_a_run_counts_what_was_late_where_something_was():
    K = tw.sets.Simplex(3)
    stream = hostile_stream(K, 20, 2)
    run = tw.run(tw.LyapunovDescent(K), late(stream, np.arange(20) + 3))
    assert (run.late, run.pending, run.summary()["late"]) == (17, 3, 17)
    in_time = tw.run(tw.LyapunovDescent(K), stream)
    assert (in_time.late, in_time.pending, in_time.overrides.rounds) == (0, 0, 0)
    late_only = {"late rounds", "pending rounds"}
    assert late_only <= {metric.title for metric in applying(TABLE, [run])}
    assert not late_only & {metric.title for metric in applying(TABLE, [in_time])}


# --- the sums of bounds, written plainly ----------------------------------------------------------


class Told:
    """A round as it waits: what was decided for it."""

    def __init__(self, learner, state):
        if isinstance(learner, tw.Ensemble):
            own = state.upcoming
            self.x, self.mix, self.points, self.shares = own.x, own.mix, own.points, own.shares
            self.require_mixed(learner, state)
        else:
            self.x, self.mix, self.points = learner.act(state), state.point.x, ()
            self.shares = np.zeros(0)

    def require_mixed(self, learner, state):
        """Descents and contexts are at the points of their pool, and all are mixed by weight."""
        count = len(learner.step_scales)
        cells = [state.pool.x(count + j) for j in range(len(self.shares))]
        own = [state.pool.x(i) for i in range(count)]
        if self.shares.any():
            own.append(sum(share * x for share, x in zip(self.shares, cells, strict=True)))
        for point, x in zip(self.points, own, strict=False):
            assert point == pytest.approx(x)
        weighed = zip(state.upcoming.p, self.points, strict=True)
        assert self.mix == pytest.approx(sum(p * z for p, z in weighed if z is not None))


class Sums:
    """The sums of methods/certificate.py, A_i and the price of overriding from the gradients at the
    points that were played alone, and what these lost by their values, in units of the loss.
    """

    def __init__(self, learner):
        self.learner, self.K = learner, learner.K
        self.mixed = isinstance(learner, tw.Ensemble)
        n = learner.K.shape[0]
        self.cells = learner.context.cells if self.mixed and learner.context is not None else 0
        self.F, self.W = np.zeros((2, 1 + self.cells, n))
        self.at = np.zeros(2)
        self.A, self.lost = np.zeros((2, len(learner.names) if self.mixed else 0))
        self.price = 0.0
        self.weights = lyapunov.LyapunovWeights(self.K, learner.caution, learner.horizon)

    def arrive(self, state, told):
        """`told`: pairs of what was decided and the functions, with what was played."""
        blocks = [first_order(f, g, x, g.values(x)) for _, (f, g), x in told]
        weighed = self.weights.weigh(state.dual, together(blocks), told[0][2])
        V = 1.0 / self.learner.caution
        w = math.ldexp(weighed.penalty_weight, weighed.dual.exponent)
        for (own, (losses, limits), x), block in zip(told, blocks, strict=True):
            f = self.K.tangent(block.loss_gradient)
            g = w * self.K.tangent(block.constraint_gradient)
            shares = np.array([1.0, *own.shares])[:, None]
            self.F, self.W = self.F + shares * f, self.W + shares * g
            self.at += [f @ (x - self.K.center), g @ (x - self.K.center)]
            self.price += float((V * f + g) @ (x - own.mix)) / V
            values = [
                V * float(losses.values(z)[0]) + w * max(0.0, float(limits.values(z)[0]))
                for z in (x if z is None else z for z in (x, *own.points))
            ]
            self.lost += values[0] - np.array(values[1:])
            for i, z in enumerate(own.points):
                self.A[i] += 0.0 if z is None else float((V * f + g) @ (x - z))


def followed(learner, stream, valued=True):
    """The plain sums of a run, and where it ended; `valued`: the learner is told of its decisions
    where others were played, else of these.
    """
    sums, state, decided = Sums(learner), learner.start(), {}
    arrives = np.arange(len(stream)) if stream.arrives is None else stream.arrives
    for t, played in enumerate(tw.play(learner, stream)):
        if (known := stream.info(t)) is not None:
            state = learner.with_info(state, known)
        decided[t] = Told(learner, state)
        if arrives[t] > t:
            state = learner.defer(state)
        due, told = np.flatnonzero(arrives == t).tolist(), []
        for s in due:
            x, part, own = stream.override(s), stream[s : s + 1], decided.pop(s)
            x = own.x if x is None or valued else x
            told.append((own, (part.losses, part.constraints), x))
        if told:
            sums.arrive(state, told)
        state = played.state
    return sums, state


SETTINGS = {
    "descent": (tw.LyapunovDescent, {"step_scale": 0.7}, "any"),
    "capped": (tw.LyapunovDescent, {"max_move": 0.05}, "any"),
    "ensemble": (tw.Ensemble, {}, "any"),
    "resolving": (tw.Ensemble, {"experts": [tw.experts.Resolve()], "max_move": 0.1}, "any"),
    "season": (tw.Ensemble, {"experts": [tw.experts.Season(6, cells=3)]}, "one by one"),
}


@pytest.mark.parametrize("kind", SETTINGS)
@given(seed=seeds, K=st.sampled_from(PLAIN), stride=st.booleans(), valued=st.booleans())
@settings(max_examples=6)
def test_the_sums_of_a_certificate_are_those_of_what_was_played(kind, seed, K, stride, valued):
    """With delays, batches, overrides and rounds that never arrive; also where the ledger's units
    change all the time.
    """
    maker, given_, delays = SETTINGS[kind]
    if kind == "resolving":
        K = PLAIN[0]
    with pytest.MonkeyPatch.context() as patch:
        if stride:
            patch.setattr(lyapunov, "_STRIDE", 1)
            patch.setattr(lyapunov, "THETA", 4.0)
            patch.setattr(maker, "compiled", None)  # a kernel has the constants of its own
        if not valued:
            patch.setattr(loop.feedback, "compared", lambda *_: None)
        learner = maker(K, **given_)
        stream = late_stream(learner, hostile_stream(K, 26, seed), seed)
        if delays == "one by one":
            stream = late(stream, np.arange(26) + 4, stream.played)
        sums, state = followed(learner, stream, valued)
        unit = math.ldexp(1.0, state.dual.exponent)
    found, size = state.dual.sums, np.abs(sums.F).max() + np.abs(sums.W).max() + 1e-9
    cells = state.cells if sums.cells else None
    each = [(1 + j, cells.loss[j], cells.limit[j]) for j in range(sums.cells)]
    for at, F, W in [(0, found.loss, found.limit), *each]:
        assert pytest.approx(sums.F[at], abs=1e-9 * size) == F
        assert unit * W == pytest.approx(sums.W[at], abs=1e-9 * size)
    size *= len(stream)
    assert [found.loss_at, unit * found.limit_at] == pytest.approx(sums.at, abs=1e-9 * size)
    price = state.overrides.price
    assert price == pytest.approx(sums.price, abs=1e-9 * size * learner.caution)
    assert price == 0.0 or not valued or learner.max_move is not None
    if sums.mixed:
        guard = unit * state.accounts.guard
        assert guard == pytest.approx(sums.A, abs=1e-9 * (size + np.abs(sums.A).max()))


# --- advice ---------------------------------------------------------------------------------------


def told(costs, room):
    K = tw.sets.Simplex(2)
    loss, limit = tw.functions.Linear.one(costs), tw.functions.Capacity([[room, 1.0]])
    return K, FullInformation(loss, limit)


def test_resolving_goes_by_the_numbers_of_rounds_and_not_by_when_they_come():
    adviser = tw.experts.Resolve(headroom=0)
    K, early = told([0.0, 1.0], 0.3)
    _, newer = told([0.0, 1.0], 0.7)
    state = adviser.observe_round(K, adviser.start(K), newer, K.center, 5)
    state = adviser.observe_round(K, state, early, K.center, 2)
    (x,) = adviser.propose(K, state, None, 8, 0, ()).points
    assert x == pytest.approx([0.7, 0.3])
    period = tw.experts.Resolve(3, headroom=0)
    state = period.observe_round(K, period.start(K), newer, K.center, 5)
    state = period.observe_round(K, state, early, K.center, 4)
    points = [period.propose(K, state, None, t, 0, ()).points[0] for t in (7, 8, 9)]
    assert [None if x is None else x[0].round(2) for x in points] == [0.3, 0.7, None]


def test_headroom_is_the_usual_drop_over_as_many_rounds_as_the_data_is_old():
    """Room falls by 0.01 a round; data that is 3 rounds old lacks 0.03."""
    adviser, K = tw.experts.Resolve(headroom=(0, 1)), tw.sets.Simplex(2)
    state = adviser.start(K)
    for t in range(12):
        state = adviser.propose(K, state, None, t, 0, ()).state
        if t >= 2:
            _, seen = told([0.0, 1.0], 0.7 - 0.01 * (t - 2))
            state = adviser.observe_round(K, state, seen, K.center, t - 2)
    bare, roomy = adviser.propose(K, state, None, 12, 0, ()).points
    assert (bare[0], bare[0] - roomy[0]) == (pytest.approx(0.7 - 0.09), pytest.approx(0.03))
    assert len(state.recent) <= 4


def test_a_duration_finds_rounds_by_their_time_though_they_come_late():
    adviser = tw.experts.Resolve("3h", headroom=0)
    learner = tw.baselines.Resolve(tw.sets.Simplex(2), data="3h")
    rooms = np.linspace(0.2, 0.9, 12)
    limits = tw.functions.Capacity(np.stack([rooms, np.ones(12)], axis=1))
    when = {"time": 3600.0 * np.arange(12), "arrives": np.arange(12) + 2}
    stream = tw.Stream(tw.functions.Linear([[0.0, 1.0]] * 12), limits, **when)
    assert [played.x[0] for played in tw.play(learner, stream)][6:] == pytest.approx(rooms[3:9])
    assert adviser.waits
