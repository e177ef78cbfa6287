"""Whom a learner mixed, what a run says of them, and the guard inequality in its certificate."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.metrics import Experts, weight_text
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


@pytest.mark.parametrize(
    ("left", "holds"), [(0.5, True), (0.5 + 1e-13, True), (0.5001, False), (math.nan, False)]
)
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
    json.dumps(several.plain(), allow_nan=False)


@given(shares)
def test_a_weight_is_never_shown_as_nothing_unless_it_is(weight):
    assert (weight_text(weight) == "0 %") == (weight == 0.0)
    assert weight_text(0.1234) == "12.3 %"
