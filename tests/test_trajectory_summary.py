"""Where a run went, and how far decisions moved: against the plain formulas on the played points,
in memory that does not grow.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation import tracking

blocks = st.lists(st.integers(1, 90), min_size=1, max_size=12)


@given(blocks, st.integers(0, 2**16), st.booleans())
def test_parts_are_the_means_of_their_rounds(lengths, seed, one_each):
    rng, rounds = np.random.default_rng(seed), sum(lengths)
    kept, played = tracking.TrajectorySummary(rounds, (2, 3)), []
    for length in lengths:
        points = rng.normal(size=(length if one_each else 1, 2, 3))
        before = points.copy()
        kept.see(points, length)
        assert (points == before).all()
        played += list(np.broadcast_to(points, (length, 2, 3)))
    assert len(kept.edges) - 1 == len(kept.means) == min(rounds, tracking.MAX_PARTS)
    assert kept.edges[-1] == rounds
    assert np.ptp(np.diff(kept.edges)) <= 1
    for (begin, end), mean in zip(pairwise(kept.edges), kept.means, strict=True):
        assert mean == pytest.approx(np.mean(played[begin:end], axis=0), abs=1e-12)
    assert kept.mean == pytest.approx(np.mean(played, axis=0), abs=1e-12)


def test_large_points_have_fewer_parts_and_never_none(monkeypatch):
    monkeypatch.setattr(tracking, "MAX_NUMBERS", 100)
    assert tracking.TrajectorySummary(1000, (5, 5)).means.shape == (4, 5, 5)
    assert tracking.TrajectorySummary(1000, (7, 101)).means.shape == (1, 7, 101)
    assert tracking.TrajectorySummary(0, (3,)).means.shape == (0, 3)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_points_stay_in_their_library_until_a_part_ends(library):
    xp = pytest.importorskip(library, reason=f"{library} is not installed")
    kept = tracking.TrajectorySummary(6, (2,))
    kept.see(xp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=xp.float64), 2)
    kept.see(xp.asarray([[5.0, 6.0]], dtype=xp.float64), 4)
    assert kept.means.tolist() == [[1.0, 2.0], [3.0, 4.0], *[[5.0, 6.0]] * 4]


# --- how far decisions moved ----------------------------------------------------------------------


def moved(points):
    """The formula, on all points at once."""
    flat = points.reshape(len(points), -1)
    return np.array([0.0, *(np.abs(x - before).sum() / 2 for before, x in pairwise(flat))])


def test_rounds_that_were_not_seen_move_nothing():
    problem, seen = tw.problems.routing(rounds=40), np.ones(40, dtype=bool)
    seen[10:20] = False
    stream = tw.Stream(problem.stream.losses, problem.stream.constraints, seen=seen)
    run = tw.run(tw.LyapunovDescent(problem.K), stream)
    assert (run.churn[11:21] == 0.0).all()
    assert run.churn[9] > 0.0


@given(
    data=st.data(),
    entries=st.integers(1, 4),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_any_cut_into_updates_and_files_measures_the_same(data, entries, counts):
    """One point for several rounds or one each, saved and restored between any two updates."""
    movement, churn, points = tracking.Movement(), [], []
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    for count in counts:
        each = data.draw(st.booleans())
        drawn = rng.integers(-4, 5, (count if each else 1, entries)) / 4.0
        churn += movement.see(drawn if each else drawn[0], count, each=each).tolist()
        points += list(drawn) if each else [drawn[0]] * count
        if data.draw(st.booleans()):
            kept, movement = movement.parts(), tracking.Movement()
            movement.restore(kept)
    np.testing.assert_allclose(churn, moved(np.array(points)), rtol=1e-12, atol=1e-12)
