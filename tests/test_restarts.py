"""Descents that begin anew: when, what they forget, what is lost to each over its life."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from streams import hostile
from tidewolf.core.feedback import Arrival, FirstOrder
from tidewolf.experts.restarts import SCALE

FLOW = tw.problems.routing(rounds=1).K


@given(every=st.integers(1, 9), before=st.integers(0, 500), rounds=st.integers(1, 500))
def test_births_are_the_odd_multiples_of_each_place_however_rounds_come(every, before, rounds):
    restarts, born = tw.experts.Restarts(every, 6), {}
    for t in range(before, before + rounds):
        for k, j in restarts.births(t, t + 1):
            assert k * every == t + 1
            assert k % (2 << j) == 1 << j
            assert restarts.present(t) >= min(j, 6)
            born[j] = k
    assert {j: k for k, j in restarts.births(before, before + rounds)} == born


@given(end=st.integers(2, 4000), share=st.floats(0.0, 1.0))
def test_in_every_interval_a_descent_is_as_old_as_an_eighth_of_it(end, share):
    length = 2 + math.floor(share * (end - 2))
    born = [k for k, _ in tw.experts.Restarts(1, 12).births(0, end)]
    assert any(end - length <= k <= end - length / 8 for k in born)


def lives(learner, stream):
    """The states after each round, and (i, birth, end) of each life, in rounds."""
    learner.__dict__["compiled"] = None
    states, born, found = [learner.start()], {}, []
    for one in tw.play(learner, stream):
        states.append(one.state)
        t = len(states) - 1
        for i, _ in learner.births(t - 1, t):
            found += [(i, born[i], t)] if i in born else []
            born[i] = t
    return states, found + [(i, b, len(stream)) for i, b in born.items()]


@pytest.mark.parametrize("K", [tw.sets.Simplex(4), FLOW], ids=["simplex", "flow"])
@pytest.mark.parametrize("kind", ["switching", "random signs", "rare and huge", "losses that grow"])
def test_what_is_lost_to_a_descent_over_its_life_is_bounded(K, kind):
    """By the mixer's bound, and by that of a descent whose sums begin with its life."""
    every, kept, losses = 3, 4, hostile(kind, K, 70, 5).losses
    learner = tw.Ensemble(K, experts=[tw.experts.Restarts(every, kept)])
    states, found = lives(learner, tw.Stream(losses))
    D, m = K.diameter, len(learner.names)
    vertices = [K.lmo(c) for c in np.random.default_rng(0).normal(size=(9, *K.shape))]
    assert {i for i, *_ in found} == set(range(4, 4 + kept))
    for i, b, e in found:
        A = float(states[e].accounts.guard[i] - states[b].accounts.guard[i])
        gap, spread = states[e].mixer.gap, 1.0 + 2.0 * math.log1p(e // every / m) / math.log(m)
        assert spread * (2.0 * gap - states[b].mixer.gap) >= A - 1e-9 * gap
        sums = [state.dual.sums.loss for state in states[b : e + 1]]
        grads = [(g - f) / learner.caution for f, g in pairwise(sums)]
        S = sum(float(np.vdot(g, g)) for g in grads)
        price = math.sqrt(S) * (K.radius**2 / (math.sqrt(2.0) * SCALE * D) + (SCALE + 3.42) * D)
        own = [(state.pool.x(i), state.descents[i].y) for state in states[b:e]]
        gaps = [float(np.vdot(z - y, z - K.lmo(z - y))) for z, y in own]
        price += float(np.dot([np.linalg.norm(g) for g in grads], np.sqrt(np.maximum(gaps, 0.0))))
        for u in vertices:
            lost = sum(float(np.vdot(g, z - u)) for g, (z, _) in zip(grads, own, strict=True))
            assert lost <= price * (1.0 + 1e-9)


def test_a_newcomer_has_its_share_of_the_trust_and_the_others_keep_theirs():
    rng = np.random.default_rng(1)
    mixer = tw.Ensemble(FLOW, experts=[tw.experts.Restarts(1, 2)]).start().mixer
    there = np.array([True] * 5 + [False])
    for _ in range(5):
        mixer = mixer.updated(np.append(rng.normal(size=4), [0.0, 0.0]))
    before = mixer.weights(~np.isinf(mixer.totals))
    p = mixer.with_newcomer(4, 0.1).weights(there)
    np.testing.assert_allclose(p, np.append(0.9 * before[:4], [0.1, 0.0]), atol=1e-12)


def test_what_waits_is_not_charged_to_the_descent_that_comes_after():
    learner = tw.Ensemble(FLOW, experts=[tw.experts.Restarts(1, 1)])
    seen = FirstOrder(np.cos(FLOW.center), 0.0, 0.0 * FLOW.center, 9.0, 0.0, 1)
    state = learner.defer(learner.on_feedback(learner.start(), [Arrival(0, seen)]))
    assert state.pending[0].points[4] is not None
    state = learner.on_feedback(learner.on_feedback(state, [Arrival(2, seen)]), [Arrival(3, seen)])
    assert state.pending[0].points[4] is None
    assert learner.on_feedback(state, [Arrival(1, seen)]).accounts.available[4] == 2


def test_restarts_may_be_added_to_a_session_and_taken_out():
    stream = hostile("switching", FLOW, 40, 3)
    plain, late = tw.Ensemble(FLOW), tw.Ensemble(FLOW, experts=[tw.experts.Restarts(2, 5)])
    state = tw.run(plain, stream[:9]).final_state
    other = late.migrated(state, plain)
    assert np.isinf(other.mixer.totals).tolist() == [False] * 7 + [True] * 2
    np.testing.assert_allclose(other.descents[3].y, state.descents[3].y)
    other = late.load(late.save(other))
    *_, last = tw.play(late, stream, other, 9)
    again = plain.migrated(last.state, late)
    assert np.isfinite(again.mixer.totals).all()
    assert plain.K.infeasibility(plain.act(again)) < 1e-9


def test_after_a_change_less_than_four_tenths_is_lost():
    C, gaps = np.random.default_rng(7).uniform(size=(2, 2000, 10)), np.linspace(0.0, 0.4, 10)
    C += np.stack([gaps, gaps[::-1]])[:, None]
    stream, K = tw.Stream(tw.functions.Linear(C.reshape(4000, 10))), tw.sets.Simplex(10)
    runs = [tw.run(tw.Ensemble(K, experts=e), stream) for e in ((), (tw.experts.Restarts(),))]
    before, after = np.array([run.losses.reshape(2, -1).sum(axis=1) for run in runs]).T
    plain, ours = after - C[1].sum(axis=0).min()
    assert ours < 0.4 * plain
    assert before[1] < 1.01 * before[0]
