"""Where a run went: the means of the parts of its rounds are those of the played points, in memory
that does not grow.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation import trajectory_summary
from tidewolf.evaluation.trajectory_summary import TrajectorySummary

blocks = st.lists(st.integers(1, 90), min_size=1, max_size=12)


@given(blocks, st.integers(0, 2**16), st.booleans())
def test_parts_are_the_means_of_their_rounds(lengths, seed, one_each):
    rng, rounds = np.random.default_rng(seed), sum(lengths)
    kept, played = TrajectorySummary(rounds, (2, 3)), []
    for length in lengths:
        points = rng.normal(size=(length if one_each else 1, 2, 3))
        before = points.copy()
        kept.see(points, length)
        assert (points == before).all()
        played += list(np.broadcast_to(points, (length, 2, 3)))
    assert len(kept.ends) == len(kept.means) == min(rounds, trajectory_summary.MAX_PARTS)
    assert kept.ends[-1] == rounds
    assert np.ptp(kept.ends - kept.begins) <= 1
    for begin, end, mean in zip(kept.begins, kept.ends, kept.means, strict=True):
        assert mean == pytest.approx(np.mean(played[begin:end], axis=0), abs=1e-12)
    assert kept.mean == pytest.approx(np.mean(played, axis=0), abs=1e-12)


def test_large_points_have_fewer_parts_and_never_none(monkeypatch):
    monkeypatch.setattr(trajectory_summary, "MAX_NUMBERS", 100)
    assert TrajectorySummary(1000, (5, 5)).means.shape == (4, 5, 5)
    assert TrajectorySummary(1000, (7, 101)).means.shape == (1, 7, 101)
    assert TrajectorySummary(0, (3,)).means.shape == (0, 3)


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.BanditPrimalDual])
def test_a_run_keeps_the_trail_of_the_points_it_plays(learner):
    problem = tw.problems.portfolio(rounds=150, seed=2)
    made = next(iter(learner.examples(problem.K, 150)))
    run = tw.run(made, problem.stream)
    played = []
    for each in tw.play(made, problem.stream):
        played += list(np.broadcast_to(each.x, (len(each.losses), *problem.shape)))
    last = np.mean(played[run.trajectory.begins[-1] :], axis=0)
    assert run.trajectory.mean == pytest.approx(np.mean(played, axis=0), abs=1e-12)
    assert run.trajectory.means[-1] == pytest.approx(last, abs=1e-12)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_points_stay_in_their_library_until_a_part_ends(library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    kept = TrajectorySummary(6, (2,))
    kept.see(xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float64), 2)
    kept.see(xp.asarray([[5.0, 6.0]], dtype=xp.float64), 4)
    assert kept.means.tolist() == [[1.0, 2.0], [3.0, 4.0], *[[5.0, 6.0]] * 4]
