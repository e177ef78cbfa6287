"""Decisions kept: the very points that were played, with the caller's times and names."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.core import errors, feedback
from tidewolf.core.arrays import to_numpy
from tidewolf.evaluation.tracking import entry_names, time_texts

PROBLEM = tw.problems.adversarial(rounds=23, kind="moving")
LEARNERS = {
    "every round": tw.LyapunovDescent(PROBLEM.K, horizon=23),
    "blocks": tw.PrimalDual(PROBLEM.K, horizon=23),
    "a point each": tw.BanditPrimalDual(PROBLEM.K, horizon=23, block=4),
    "whole functions": tw.DriftPlusPenalty(PROBLEM.K, horizon=23),
}


def played(learner, stream):
    """Every round's point, one by one from the loop itself."""
    rows = []
    for move in tw.play(learner, stream):
        each = learner.needs is feedback.Bandit
        rows += list(to_numpy(move.x)) if each else [to_numpy(move.x)] * len(move.losses)
    return np.array(rows)


def moved(points):
    """Half the L1 change from round to round, on all points at once."""
    return 0.5 * np.abs(np.diff(points, axis=0, prepend=points[:1])).sum(axis=1)


@pytest.mark.parametrize("every", [1, 5, 24])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_keeps_the_points_that_were_played_their_means_and_their_moves(name, every):
    learner = LEARNERS[name]
    run = tw.run(learner, PROBLEM.stream, decisions=True, every=every)
    found, points = run.decisions, played(learner, PROBLEM.stream)
    np.testing.assert_array_equal(found.points, points[::every])
    np.testing.assert_array_equal(found.rounds, np.arange(0, 23, every))
    assert (len(found), found.times) == (len(points[::every]), None)
    losses = [PROBLEM.stream.losses[t : t + 1].values(points[t])[0] for t in range(23)]
    np.testing.assert_allclose(run.losses, losses, atol=1e-12)
    np.testing.assert_allclose(run.churn, moved(points), rtol=1e-12, atol=1e-15)
    last = points[run.trajectory.edges[-2] :].mean(axis=0)
    np.testing.assert_allclose(run.trajectory.mean, points.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(run.trajectory.means[-1], last, atol=1e-12)


def test_nothing_is_kept_unless_it_is_asked_for():
    learner = LEARNERS["every round"]
    plain, asked = (tw.run(learner, PROBLEM.stream, decisions=x) for x in (False, True))
    assert plain.decisions is None
    np.testing.assert_array_equal(asked.losses, plain.losses)
    found = tw.run(learner, PROBLEM.stream[:0], decisions=True).decisions
    assert (len(found), found.points.shape) == (0, (0, *PROBLEM.K.shape))
    assert found.to_pandas().empty
    for given in ({"every": 0}, {"every": 1.5}, {"decisions": "yes"}):
        with pytest.raises((errors.InvalidInput, errors.WrongType), match=next(iter(given))):
            tw.run(learner, PROBLEM.stream, **{"decisions": True} | given)


def test_what_was_played_in_place_of_a_decision_is_what_is_kept():
    K = tw.sets.Simplex(2)
    stream = tw.Stream(
        tw.functions.Linear([[1.0, 2.0]] * 3), played=[[np.nan] * 2, [0.25, 0.75], [np.nan] * 2]
    )
    found = tw.run(tw.LyapunovDescent(K), stream, decisions=True).decisions
    np.testing.assert_array_equal(found.points[1], [0.25, 0.75])


# names


LINKS = [("a", "b"), ("a", "c"), ("b", "c")]
FLOWS = tw.sets.FlowPolytope.from_edges(LINKS, source="a", target="c")


def test_entries_are_called_by_labels_then_as_the_set_has_them_then_by_places():
    assert entry_names(FLOWS) == entry_names(FLOWS, ["1", "2"]) == ("a > b", "a > c", "b > c")
    assert entry_names(FLOWS, ["fibre", "radio", "7"]) == ("fibre", "radio", "7")
    simplex = tw.sets.Simplex(2)
    for labels in ((), ("day", "day"), ("one",)):
        assert entry_names(simplex, labels) == ("entry 1", "entry 2")
    square = ("entry 1, 1", "entry 1, 2", "entry 2, 1", "entry 2, 2")
    assert entry_names(tw.sets.BoundedPSD(2, 1.0)) == square


# times

COSTS = tw.functions.Linear([[1.0, 2.0]] * 3)
NANOSECONDS = [1772366400000000001 + i for i in range(3)]
HOURS = [datetime(2026, 3, 1, 10 + i, tzinfo=timezone(timedelta(hours=2))) for i in range(3)]


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        (["2026-03-01", "2026-03-02", "2026-03-03"], ["2026-03-01", "2026-03-02", "2026-03-03"]),
        (["2026-03-01", "2026-03-01T06:00", None], ["2026-03-01T00:00", "2026-03-01T06:00", ""]),
        (HOURS, [f"2026-03-01T{hour:02}:00" for hour in (8, 9, 10)]),
        ([0, 60, 120], ["0", "60", "120"]),
        ([0.5, 1.0, np.nan], ["0.5", "1", ""]),
        (np.array(NANOSECONDS), [str(each) for each in NANOSECONDS]),
    ],
)
def test_times_are_those_that_were_given(given, texts):
    stream = tw.Stream(COSTS, time=given)
    assert time_texts(stream.stamps) == texts
    np.testing.assert_array_equal(stream[1:].stamps, stream.stamps[1:])
    found = tw.run(tw.LyapunovDescent(tw.sets.Simplex(2)), stream, decisions=True, every=2)
    np.testing.assert_array_equal(found.decisions.times, stream.stamps[::2])


# as a table


def test_a_table_has_a_column_an_entry_under_the_round_or_its_time():
    learner, costs = tw.LyapunovDescent(FLOWS), tw.functions.Linear([[1.0, 2.0, 3.0]] * 3)
    plain = tw.run(learner, tw.Stream(costs), decisions=True).decisions.to_pandas()
    assert list(plain.columns) == ["a > b", "a > c", "b > c"]
    assert (plain.index.name, plain.index.tolist()) == ("round", [0, 1, 2])
    days = ["2026-03-01", "2026-03-02", "2026-03-03"]
    dated = tw.run(learner, tw.Stream(costs, time=days), decisions=True, every=2)
    frame = dated.decisions.to_pandas()
    assert (frame.index.name, frame.index.strftime("%d").tolist()) == ("time", ["01", "03"])
    np.testing.assert_array_equal(frame.to_numpy(), plain.to_numpy()[::2])


def test_what_is_printed_is_short():
    stream = tw.Stream(tw.functions.Linear(np.ones((300, 40))))
    found = tw.run(tw.LyapunovDescent(tw.sets.Simplex(40)), stream, decisions=True).decisions
    lines = repr(found).splitlines()
    assert len(lines) == 9
    assert max(map(len, lines)) <= 80
