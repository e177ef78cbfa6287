"""Which experts a learner mixed, what a run says of them, the guard inequality in its certificate,
and the experts Static and Leader.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core import conforming, feedback
from tidewolf.evaluation.formatting import plain
from tidewolf.evaluation.metrics import Experts, weight_text
from tidewolf.experts import leader as module
from tidewolf.experts.leader import Blocks, strata, with_worst
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.cutting_planes import RIDGE
from tidewolf.methods.capabilities import Expert, Guard

T = 60
PROBLEM = tw.problems.routing(rounds=T)


@pytest.fixture(scope="module")
def run():
    learner = tw.Ensemble(PROBLEM.K, experts=[tw.experts.Season(24), "theirs"])
    points = np.repeat(PROBLEM.K.center[None, :], T, axis=0)
    points[:5] = np.nan  # absent at first
    stream = tw.Stream(PROBLEM.stream.losses, PROBLEM.stream.constraints, advice={"theirs": points})
    return tw.run(learner, stream)


@pytest.fixture(scope="module")
def seeing():
    return tw.run(tw.Ensemble(PROBLEM.K, experts=[tw.experts.Resolve(headroom=0)]), PROBLEM.stream)


def test_members_are_those_of_the_learner_with_the_weights_they_were_played_with(run):
    assert isinstance(run.experts, tuple)
    assert [m.name for m in run.experts][-2:] == ["season", "theirs"]
    assert {m.kind for m in run.experts} == {"descent", "context", "advice"}
    np.testing.assert_allclose(run.measures.sum(axis=1), 1.0)
    np.testing.assert_allclose([m.weight for m in run.experts], run.measures[-1])
    np.testing.assert_allclose([m.mean_weight for m in run.experts], run.measures.mean(axis=0))
    # advice that comes with a round counts in that round
    assert (run.measures[:5, -1] == 0.0).all()
    assert (run.measures[5:, -1] > 0.0).all()
    assert run.experts[-1].rounds == T - 5


def test_members_are_plain_data_and_a_printed_run_begins_with_those_it_trusted_most(seeing):
    told = json.loads(json.dumps(seeing.summary(), allow_nan=False))
    assert [each["name"] for each in told["experts"]] == [m.name for m in seeing.experts]
    assert set(told["experts"][0]) == set(Expert._fields)
    assert seeing.solves == told["solves"] == seeing.round_solves.sum() > 0
    assert seeing.solves == seeing.final_state.solves
    alone = tw.run(tw.baselines.Resolve(PROBLEM.K), PROBLEM.stream)
    assert alone.solves == alone.round_solves.sum() == T
    assert f"LP solves {seeing.solves}" in repr(seeing)
    lines = str(seeing).splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:1] == ["expert"])
    most = max(seeing.experts, key=lambda member: member.mean_weight)
    assert lines[head + 1].strip().startswith(most.name)


def test_a_learner_that_holds_one_point_has_no_members():
    run = tw.run(tw.LyapunovDescent(PROBLEM.K), PROBLEM.stream)
    assert run.experts == tuple(run.summary()["experts"]) == ()
    assert repr(run.experts) == "no members"
    assert run.certificate.guards == ()


# --- the guard inequality -------------------------------------------------------------------------


def test_guards_hold_where_the_functions_were_seen(seeing):
    guards = {guard.name: guard for guard in seeing.certificate.guards}
    assert set(guards) == {m.name for m in seeing.experts}
    loss = float(seeing.losses.sum())
    for member in seeing.experts:
        guard = guards[member.name]
        assert guard.left <= guard.right + 1e-9 * abs(loss)
        assert guard.right == pytest.approx(member.guard)
    (check,) = (c for c in seeing.certificate.checks if c.name == "guards")
    assert check.holds
    assert seeing.summary()["certificate"]["checks"]["guards"]["holds"]


def test_guards_are_shown_and_not_judged_where_only_gradients_were(run):
    assert {guard.left for guard in run.certificate.guards} == {None}
    assert "guards" not in {check.name for check in run.certificate.checks}
    assert {each["left"] for each in run.summary()["certificate"]["guards"]} == {None}


GUARDS = {0.5: True, 0.5 + 1e-13: True, 0.5001: False, math.nan: False}


@pytest.mark.parametrize(("left", "holds"), GUARDS.items())
def test_a_guard_that_is_passed_fails_the_certificate(seeing, monkeypatch, left, holds):
    guards = (Guard("quiet", -1.0, 2.0), Guard("blind", None, 0.0), Guard("loud", left, 0.5))
    monkeypatch.setattr(type(seeing.learner), "guards", lambda self, state: guards)
    certificate = replace(seeing, seconds=1.0).certificate
    (check,) = (c for c in certificate.checks if c.name == "guards")
    assert check.holds is holds
    assert certificate.holds is (seeing.certificate.holds and holds)
    assert any("loud" in sentence for sentence in certificate.failures) is not holds
    json.dumps(certificate.summary(), allow_nan=False)


# --- tables ---------------------------------------------------------------------------------------

shares = st.floats(0.0, 1.0)
members = st.builds(
    Expert,
    name=st.text("ab<&", min_size=1, max_size=8),
    kind=st.just("advice"),
    weight=shares,
    mean_weight=shares,
    guard=st.floats(-1e6, 1e6) | st.just(math.inf),
    loss=st.none() | st.floats(-1e6, 1e6),
    violation=st.none() | st.floats(0.0, 1e6),
    rounds=st.integers(0, 10**6),
    solves=st.integers(0, 10**6),
    calls=st.integers(0, 10**6),
    outside=st.floats(0.0, 1e3),
)


@given(st.lists(members, max_size=14), st.integers(1, 6))
def test_any_members_are_a_table_of_even_lines(given_members, most):
    several = Experts(given_members)
    lines = several.lines(most)
    if not several:
        assert lines == []
        return
    shown = min(most, len(several))
    head, *rows = lines[: shown + 1]
    assert {len(row) for row in rows} == {len(head)}
    assert len(rows) == shown
    assert (f"and {len(several) - shown} more in run.experts" in lines) == (shown < len(several))
    assert ("LP solves" in head) == any(m.solves for m in several)
    assert ("outside" in head) == any(m.outside for m in several)
    json.dumps(plain(several), allow_nan=False)


@given(shares)
def test_a_weight_is_never_shown_as_nothing_unless_it_is(weight):
    assert (weight_text(weight) == "0 %") == (weight == 0.0)
    assert weight_text(0.1234) == "12.3 %"


# --- Static ---------------------------------------------------------------------------------------


def reverting(days, stocks, seed):
    rng, level = np.random.default_rng(seed), np.zeros((days + 1, stocks))
    for t in range(days):
        level[t + 1] = 0.9 * level[t] + 0.05 * rng.standard_normal(stocks)
    return tw.functions.LogWealth(np.exp(np.diff(level, axis=0)))


@pytest.mark.parametrize("experts", [(), (tw.experts.Static(),), ("mine", tw.experts.Static())])
def test_a_run_loses_to_each_expert_at_most_what_its_prior_says(experts):
    learner = tw.Ensemble(tw.sets.Simplex(5), experts=experts)
    run = tw.run(learner, tw.Stream(reverting(250, 5, 0)))
    assert learner.prior.sum() == pytest.approx(1.0)
    for expert, prior in zip(run.experts, learner.prior, strict=True):
        assert expert.guard <= np.log(1.0 / prior) + 1e-9


def test_the_prior_is_on_staying_and_small_steps_and_advice_keeps_its_share():
    staying = tw.Ensemble(tw.sets.Simplex(2), experts=("mine", tw.experts.Static())).prior
    assert staying[4] == pytest.approx(1.0 / 6.0)
    assert staying[5] == pytest.approx(0.9 * 5.0 / 6.0)
    assert (np.diff(staying[:4]) < 0.0).all()  # of the steps 0.03, 0.1, 0.3 and 1


def test_losses_without_curvature_have_no_prior():
    learner = tw.Ensemble(tw.sets.Simplex(2), experts=(tw.experts.Static(),))
    run = tw.run(learner, tw.Stream(tw.functions.Linear([[1.0, 1.0]])))  # all experts lose as much
    assert not run.final_state.mixer.totals.any()


def test_it_stays_where_the_first_round_was_played():
    learner = tw.Ensemble(tw.sets.Simplex(2), start=[0.2, 0.8], experts=(tw.experts.Static(),))
    session = tw.Session(learner)
    for _ in range(3):
        session.play()
        session.observe(costs=[0.0, 1.0])
    assert (session.learner.proposals(session.state)[-1].point == [0.2, 0.8]).all()


# --- Leader ---------------------------------------------------------------------------------------


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
    sizes = ([len(block.numbers) for block in each.blocks] for each in (again, state.blocks))
    assert next(sizes) == next(sizes)


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
