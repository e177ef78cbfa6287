"""Costs of which some entries were not seen, and the least shares that keep every entry in use."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import InvalidInput, OtherContent

NAMES = ("a", "b", "c", "d")
K = tw.sets.SimplexProduct([4], labels=NAMES, least=0.02)

row = st.dictionaries(st.sampled_from(NAMES), st.integers(-4, 9).map(float), min_size=1)


def imputed(rows):
    """Cell by cell: the last number of an entry, before any the mean of those in its row."""
    last, out = {}, []
    for seen in rows:
        last |= seen
        mean = sum(seen.values()) / len(seen)
        out.append([last.get(name, mean) for name in NAMES])
    return np.array(out)


@pytest.mark.parametrize("learner", [tw.LyapunovDescent(K), tw.Ensemble(K)], ids=["one", "many"])
@given(rows=st.lists(row, min_size=1, max_size=12))
def test_costs_that_were_not_seen_are_the_last_ones_that_were(learner, rows):
    """Decisions, bounds and counts are those of the imputed costs, given whole."""
    partly, whole = tw.Session(learner), tw.Session(learner)
    for seen, costs in zip(rows, imputed(rows), strict=True):
        partly.observe(costs=seen)
        whole.observe(costs=costs)
        np.testing.assert_allclose(partly.play(), whole.play(), atol=1e-9)
    assert partly.imputed_costs == sum(len(NAMES) - len(seen) for seen in rows)
    assert whole.imputed_costs == 0
    told, plain = partly.certificate(), whole.certificate()
    assert told.regret == pytest.approx(plain.regret, abs=1e-9)
    assert ("imputed losses" in told.reason) is (partly.imputed_costs > 0)


@pytest.mark.parametrize("at", [0, 2, 5])
def test_what_was_seen_last_survives_files_and_going_back(at, tmp_path):
    folder, learner = tmp_path, tw.Ensemble(K)
    rows = [{"a": 2.0}, {"b": 1.0, "c": 0.0}, {"a": 5.0, "d": -1.0}, {"c": 3.0}, {"a": 0.0}]
    whole = tw.Session(learner)
    for seen in rows:
        whole.observe(costs=seen)
    first = tw.Session(learner)
    for seen in rows[:at]:
        first.observe(costs=seen)
    first.save(folder / "saved")
    session = tw.Session.load(folder / "saved", learner)
    for number, seen in enumerate(rows):
        with tw.Session.open(folder / "kept.db", learner) as durable:
            durable.observe(round=number, costs=seen)
            durable.observe(round=number, costs=seen)  # the same again counts once
        if number >= at:
            session.observe(costs=seen)
    session.observe(costs={"a": 50.0})
    session.rollback(len(rows))
    with tw.Session.open(folder / "kept.db", learner) as durable:
        for other in (session, durable):
            np.testing.assert_array_equal(other.play(), whole.play())
            assert other.imputed_costs == whole.imputed_costs
            np.testing.assert_array_equal(other.state.costs.values, whole.state.costs.values)


def test_full_arrays_before_the_first_missing_cost_are_remembered():
    session = tw.Session(tw.Ensemble(K))
    session.observe(costs=np.array([4.0, 3.0, 2.0, 1.0]))
    session.observe(costs={"a": 0.0})
    assert session.last_functions[0].C.tolist() == [[0.0, 3.0, 2.0, 1.0]]
    session.observe(costs=np.array([7.0, 7.0, 7.0, 7.0]))
    session.observe(costs={"a": 0.0})
    assert session.last_functions[0].C.tolist() == [[0.0, 7.0, 7.0, 7.0]]


def test_what_was_seen_last_moves_with_the_names_of_a_set():
    session = tw.Session(tw.Ensemble(K))
    session.observe(costs={"a": 4.0, "b": 3.0, "c": 2.0})
    wider = tw.sets.SimplexProduct([5], labels=("e", *NAMES), least=0.02)
    session.migrate(tw.Ensemble(wider))
    session.observe(costs={"a": 6.0})
    assert session.last_functions[0].C.tolist() == [[6.0, 6.0, 3.0, 2.0, 6.0]]


@pytest.mark.parametrize("costs", [{"q": 1.0}, {}, {"a": math.nan}, {"a": 1.0, "A": 2.0}])
def test_unknown_names_and_no_numbers_are_refused(costs):
    session = tw.Session(tw.Ensemble(K))
    with pytest.raises(InvalidInput, match="costs"):
        session.observe(costs=costs)
    assert session.rounds == 0


def test_late_costs_sent_again_are_known_by_what_was_given():
    session = tw.Session(tw.Ensemble(K))
    session.play(round=2)
    session.observe(round=1, costs={"a": 1.0})
    session.observe(round=2, costs={"b": 5.0})
    session.observe(round=1, costs={"a": 1.0})
    assert session.rounds == 2
    with pytest.raises(OtherContent):
        session.observe(round=1, costs={"a": 1.0, "b": 1.0})


def test_a_least_share_finds_an_entry_that_became_cheap():
    """What carries nothing is not seen: without a least share its old cost stands for ever."""
    last = {}
    for least in (0.0, 0.02):
        session = tw.Session(tw.Ensemble(tw.sets.SimplexProduct([2], ("a", "b"), least=least)))
        for t in range(400):
            cost, x = ({"a": 1.0, "b": 2.0} if t < 100 else {"a": 1.0, "b": 0.0}), session.play()
            carried = {name: cost[name] for name, of in zip("ab", x, strict=True) if of > 1e-9}
            session.observe(costs=carried if t else cost)
        last[least] = session.play()
    assert last[0.0][1] < 0.05
    assert last[0.02][1] > 0.9
    assert last[0.02][0] >= 0.02


@pytest.mark.parametrize(
    "make",
    [
        lambda: tw.sets.Simplex(4, least=0.25),
        lambda: tw.sets.Simplex(2, least=-0.1),
        lambda: tw.sets.SimplexProduct([2, 4], least=0.3),
    ],
)
def test_least_shares_that_leave_nothing_are_refused(make):
    with refused(InvalidInput, "least"):
        make()
