"""How far decisions moved, measured without keeping them: against the plain formula on the points
themselves, over blocks, single rounds, exploring learners and files.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.trajectory_summary import Movement

T = 40
PROBLEM = tw.problems.routing(rounds=T)
LEARNERS = {
    "every round": tw.LyapunovDescent(PROBLEM.K),
    "blocks": tw.PrimalDual(PROBLEM.K, horizon=T),
    "whole functions": tw.DriftPlusPenalty(PROBLEM.K, horizon=T),
    "exploring": tw.BanditPrimalDual(PROBLEM.K, horizon=T),
}


def moved(points: np.ndarray) -> np.ndarray:
    """The formula, on all points at once."""
    flat = points.reshape(len(points), -1)
    return np.array([0.0, *(np.abs(x - before).sum() / 2 for before, x in pairwise(flat))])


def played_points(learner, stream) -> np.ndarray:
    points = []
    for played in tw.play(learner, stream):
        k, explores = len(played.losses), played.x.ndim > len(learner.hard_set.shape)
        points += list(played.x) if explores else [played.x] * k
    return np.array(points)


@pytest.mark.parametrize("name", LEARNERS)
def test_churn_is_half_of_what_entries_change_by(name):
    learner = LEARNERS[name]
    run = tw.run(learner, PROBLEM.stream)
    np.testing.assert_allclose(
        run.churn, moved(played_points(learner, PROBLEM.stream)), rtol=1e-12, atol=1e-15
    )
    assert run.churn.shape == (T,)
    assert run.churn[0] == 0.0


def test_rounds_that_were_not_seen_move_nothing():
    seen = np.ones(T, dtype=bool)
    seen[10:20] = False
    stream = tw.Stream(PROBLEM.stream.losses, PROBLEM.stream.constraints, seen=seen)
    run = tw.run(LEARNERS["every round"], stream)
    assert (run.churn[11:21] == 0.0).all()
    assert run.churn[9] > 0.0


@given(
    data=st.data(),
    entries=st.integers(1, 4),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_any_cut_into_updates_and_files_measures_the_same(data, entries, counts):
    """One point for several rounds or one each, saved and restored between any two updates."""
    rounds = sum(counts)
    movement, points, t = Movement(rounds), [], 0
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    for count in counts:
        each = data.draw(st.booleans())
        drawn = rng.integers(-4, 5, (count if each else 1, entries)) / 4.0
        movement.see(drawn if each else drawn[0], count, each=each)
        points += list(drawn) if each else [drawn[0]] * count
        t += count
        if data.draw(st.booleans()):
            kept, movement = movement.parts(), Movement(rounds)
            movement.restore(t, kept, np.empty(0))
    np.testing.assert_allclose(movement.churn, moved(np.array(points)), rtol=1e-12, atol=1e-12)
