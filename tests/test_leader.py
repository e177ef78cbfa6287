"""The leader: members, best for the rounds it saw, even where points tie, and the same after a
save.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core import conforming, feedback
from tidewolf.experts import leader as module
from tidewolf.experts.leader import Blocks, strata, with_worst
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.leader import RIDGE

seeds = st.integers(0, 2**32 - 1)


def maxima(rounds, n, seed, pieces=3):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rounds, pieces, n))
    return MaxAffine(A, rng.standard_normal((rounds, pieces)))


def fitted(adviser, K, stream, vertices=(), price=0.0):
    """The points after all rounds, and the state."""
    state = adviser.start(K)
    for t in range(len(stream)):
        rounds = feedback.FullInformation(stream.losses[t : t + 1], stream.constraints[t : t + 1])
        state = adviser.observe_round(K, state, rounds, K.center, t)
    state = state._replace(due=len(stream), price=price)
    found = adviser.propose(K, state, None, len(stream), 0, vertices)
    return found.state.fit.found(), found.state


@pytest.mark.parametrize("K", [tw.sets.Simplex(4), tw.sets.Box([-1.0] * 4, [2.0] * 4)])
def test_without_constraints_it_is_the_best_fixed_point_of_the_past(K):
    stream = tw.Stream(maxima(60, 4, 0))
    found, _ = fitted(tw.experts.Leader(), K, stream)
    best = tw.best_in_hindsight(K, stream)
    slopes = float(stream.losses.slopes(K.center).sum())
    assert found.points[1] is None
    assert conforming.is_member(K, found.points[0])
    # the ridge costs at most RIDGE/2 |x - center|^2/R^2 of the slopes times R
    assert stream.losses.values(found.points[0]).sum() <= best.upper + RIDGE * slopes * K.radius


def test_violations_are_priced_and_more_so_for_the_careful_one():
    """min x with x >= b_s, b_s = s/20: the price P of a violation leaves a share 1/P of b above."""
    K, T = tw.sets.Box([0.0, 0.0], [1.0, 1.0]), 20
    losses = Linear(np.tile([1.0, 0.0], (T, 1)))
    limits = Affine(np.tile([-1.0, 0.0], (T, 1)), -np.arange(1, T + 1) / T)
    found, _ = fitted(tw.experts.Leader(), K, tw.Stream(losses, limits), price=4.0)
    assert found.points[0][0] == pytest.approx(0.75, abs=1.0 / T + 1e-3)
    assert found.points[1][0] == pytest.approx(0.9, abs=1.0 / T + 1e-3)


def test_of_points_that_tie_it_takes_the_most_even_one():
    stream = tw.Stream(Linear(np.tile([1.0, 1.0, 2.0], (10, 1))))
    found, _ = fitted(tw.experts.Leader(), tw.sets.Simplex(3), stream)
    np.testing.assert_allclose(found.points[0], [0.5, 0.5, 0.0], atol=1e-6)
    # all points with x_1 <= 0.4 tie, and a solver alone would stop away from that bound
    flat = MaxAffine(np.tile([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], (10, 1, 1)), [[0.4, 0.0]] * 10)
    found, _ = fitted(tw.experts.Leader(), tw.sets.Simplex(3), tw.Stream(flat))
    np.testing.assert_allclose(found.points[0], np.full(3, 1.0 / 3.0), atol=1e-3)


def test_curved_losses_and_sets_without_a_description():
    """The best combination of the vertices that are known, here by calculus."""
    K, target = tw.sets.L2Ball(2), np.array([0.25, 0.0])
    losses = Quadratic(np.tile(np.eye(2), (30, 1, 1)), np.tile(-target, (30, 1)))
    vertices = tuple(K.answer(np.array(d)).vertex for d in ([-1.0, 0.0], [1.0, 0.0]))
    found, _ = fitted(tw.experts.Leader(), K, tw.Stream(losses), vertices)
    assert conforming.is_member(K, found.points[0])
    value = float(losses[:1].values(found.points[0])[0])
    assert value <= float(losses[:1].values(target)[0]) + 1e-3
    assert fitted(tw.experts.Leader(), K, tw.Stream(losses))[0].points == (None, None)


@given(seeds, st.integers(1, 300), st.integers(4, 40))
@settings(max_examples=30, deadline=None)
def test_a_sample_has_one_row_of_each_stratum_and_weighs_every_round(seed, n, rows):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, n)
    S = strata(counts, rows - rows // 4, rng)
    assert (np.searchsorted(S.starts, S.rows, side="right") - 1 == np.arange(len(S.rows))).all()
    worst = rng.permutation(n)[: rows // 4]
    more = with_worst(S, counts, worst, rng)
    for sample in (S, more):
        assert sample.weights.sum() == pytest.approx(counts.sum())
        assert len(sample.rows) <= min(rows, n)
        assert len(set(sample.rows.tolist())) == len(sample.rows)
    assert (more.weights[len(more.rows) - len(worst) :] == counts[worst]).all()


def test_what_is_stored_is_thinned_and_still_stands_for_all_rounds(monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 8 * 4 * 3 * 150)
    K, T = tw.sets.Simplex(3), 1000
    _, state = fitted(tw.experts.Leader(), K, tw.Stream(maxima(T, 3, 1)))
    counts = np.concatenate([block.counts for block in state.blocks.blocks])
    assert state.blocks.size <= module.MOST_BYTES
    assert counts.sum() == T - len(state.recent)
    again = Blocks.restored(state.blocks.parts())
    assert [len(block.numbers) for block in again.blocks] == [
        len(block.numbers) for block in state.blocks.blocks
    ]


def test_rounds_of_later_numbers_and_before_the_window_are_not_used():
    K, adviser = tw.sets.Simplex(2), tw.experts.Leader(window=10)
    state = adviser.start(K)
    for t in (*range(30), 40, 41):  # the last ten before round 30 prefer the second entry
        loss = Linear.one([1.0, 0.0] if 20 <= t < 30 else [0.0, 5.0])
        rounds = feedback.FullInformation(loss, tw.Stream(loss).constraints)
        state = adviser.observe_round(K, state, rounds, K.center, t)
    found = adviser.propose(K, state._replace(due=30), None, 30, 0, ())
    np.testing.assert_allclose(found.state.fit.found().points[0], [0.0, 1.0], atol=1e-6)


def test_it_is_off_where_only_gradients_are_seen():
    K, adviser = tw.sets.Simplex(2), tw.experts.Leader(every=1)
    stream = tw.Stream(Linear([[1.0, 0.0]]))
    block = feedback.first_order(stream.losses, stream.constraints, K.center, -np.ones(1))
    state = adviser.observe_round(K, adviser.start(K), block, K.center, 0)
    assert adviser.propose(K, state, None, 5, 0, ()).state.fit.found().points == (None, None)


def stream_with_limits(T=260):
    rng = np.random.default_rng(3)
    limits = Capacity(rng.uniform(0.35, 0.7, (T, 4)))
    return tw.Stream(Linear(rng.uniform(size=(T, 4)) + 0.1 * np.arange(4)), limits)


def learner():
    return tw.Ensemble(tw.sets.Simplex(4), experts=[tw.experts.Leader(every=20, rows=60)])


def test_the_guard_inequality_holds_and_runs_repeat():
    stream = stream_with_limits()
    runs = [tw.run(learner(), stream) for _ in range(2)]
    assert (runs[0].losses == runs[1].losses).all()
    guards = runs[0].learner.guards(runs[0].final_state)
    assert {guard.name for guard in guards} >= {"leader", "leader, careful"}
    for guard in guards:
        assert guard.left <= guard.right + 1e-9 * (1.0 + abs(guard.right))
    assert all(expert.rounds > 200 for expert in runs[0].experts if "leader" in expert.name)


@pytest.mark.parametrize("saved_after", [21, 150])  # the first while a fit is not used yet
def test_a_saved_session_decides_the_same(tmp_path, saved_after):
    stream = stream_with_limits()
    whole, session = tw.Session(learner()), tw.Session(learner())
    for t in range(len(stream)):
        x, y = whole.play(), session.play()
        assert (x == y).all()
        for one in (whole, session):
            one.observe(loss=stream.losses[t : t + 1], constraint=stream.constraints[t : t + 1])
        if t + 1 == saved_after:
            session.save(tmp_path / "state")
            session = tw.Session.load(tmp_path / "state", learner())
