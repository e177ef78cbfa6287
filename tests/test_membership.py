"""Every played point is proved to be a member: by its excess, through a combination, or partly."""

import numpy as np
import pytest

import tidewolf as tw
from covering import thinned
from tidewolf.core.vertices import Sparse
from tidewolf.evaluation import certificate, recording, tracking
from tidewolf.functions import Affine, Linear
from tidewolf.projection import ActiveSet
from tidewolf.sets import BoundedPSD, Product, Scaled, Shrunk, Simplex, SpanningTrees, Translated
from tidewolf.sets.base import CostlyMembership, membership_tolerance


def graph(nodes, more, seed=0):
    rng = np.random.default_rng(seed)
    ring = [(i, (i + 1) % nodes) for i in range(nodes)]
    return SpanningTrees([*ring, *map(tuple, rng.integers(nodes, size=(more, 2)).tolist())])


def stream(K, rounds, seed=0):
    slopes = np.random.default_rng(seed).random((rounds, *K.shape))
    return tw.Stream(Linear(slopes), Affine(slopes[::-1].copy(), slopes @ K.center))


@pytest.fixture
def asked(monkeypatch):
    """Every point whose excess over spanning trees is computed."""
    points, right = [], SpanningTrees.infeasibility
    counted = lambda self, x: points.append(x) or right(self, x)  # noqa: E731
    monkeypatch.setattr(SpanningTrees, "infeasibility", counted)
    return points


COMBINED = [tw.LyapunovDescent, tw.PrimalDual, tw.DriftPlusPenalty]
MADE = {
    "trees": lambda K: K,
    "moved": lambda K: Translated(K, np.linspace(-1.0, 3.0, K.shape[0])),
    "scaled": lambda K: Scaled(K, 3.0),
    "shrunk": lambda K: Shrunk(K, 0.5),
    "beside": lambda K: Product(Simplex(3), K),
}


@thinned(2, make=[*MADE], kind=COMBINED)
def test_where_excess_is_dear_the_combination_proves_every_point(kind, make, asked):
    K, T = MADE[make](graph(8, 12)), 40
    found = tw.run(kind(K, horizon=T), stream(K, T))
    assert isinstance(K, CostlyMembership)
    check = found.certificate.checks[0]
    assert asked == []
    assert check.holds
    assert check.how == tracking.COMBINATION
    assert f"membership {tracking.COMBINATION}" in str(found)
    assert found.summary()["certificate"]["checks"]["membership"]["how"] == check.how
    worst = max(K.infeasibility(played.x) for played in tw.play(kind(K, horizon=T), stream(K, T)))
    assert worst <= membership_tolerance(K.center, K.radius)


def test_without_a_combination_stated_points_are_asked(asked):
    K, T = graph(6, 5), 40
    found = tw.run(tw.LyapunovFrankWolfe(K, horizon=T), stream(K, T))
    played = [p.x for p in tw.play(found.learner, found.stream)]
    stated = [played[i].tolist() for i in (0, 1, 3, 7, 15, 31, 39)]
    check = found.certificate.checks[0]
    assert "7 of 40 points" in check.how
    assert [np.asarray(x).tolist() for x in asked] == stated
    assert check.law.startswith("the 1st, 2nd, 4th")
    assert check.holds
    simplex = tw.run(tw.LyapunovDescent(Simplex(4)), stream(Simplex(4), 20))
    assert simplex.certificate.checks[0].how == tracking.EVERY_POINT


@pytest.mark.parametrize(("n", "count"), [(8, 20), (tracking.SMALL + 1, 6)])
def test_large_matrices_are_decomposed_at_stated_points_alone(n, count, monkeypatch):
    K, right, asked = BoundedPSD(n, 1.0), BoundedPSD.infeasibility, []
    monkeypatch.setattr(BoundedPSD, "infeasibility", lambda K, x: asked.append(x) or right(K, x))
    slopes = np.random.default_rng(0).standard_normal((20, n, n))
    found = tw.run(tw.LyapunovDescent(K), tw.Stream(Linear(slopes)))
    assert len(asked) == count
    assert found.certificate.checks[0].holds


class State(tuple):
    """A state that holds an active set."""


def proved(K, x, active):
    found = tracking.Membership(K)
    found.see(x[None], State((1, active)))
    return found.worst, found.how


def combined(K, weights, seed=0):
    rng, active = np.random.default_rng(seed), ActiveSet.start(K)
    atoms = active.atoms
    for count in range(1, len(weights)):
        atoms = atoms.append(K.answer(rng.normal(size=K.shape)).vertex, count)
    found = np.array(weights)
    return ActiveSet(atoms, found, atoms.combine(found, K.center))


def test_a_combination_that_is_none_proves_nothing():
    K = graph(6, 6)
    good = combined(K, [0.25, 0.25, 0.5])
    assert proved(K, good.x, good) == (pytest.approx(0.0, abs=1e-13), tracking.COMBINATION)
    away = np.array(good.x)
    away[:2] += 0.1
    assert proved(K, away, good) == (K.infeasibility(away), tracking.EVERY_POINT)
    for weights in ([0.5, -0.25, 0.75], [0.5, 0.5, 0.5], [0.5, 0.0, 0.5 - 1e-6]):
        bad = combined(K, weights)
        assert proved(K, bad.x, bad) == (K.infeasibility(bad.x), tracking.EVERY_POINT)


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ([0, 1, 2, 3], [1.0] * 4),  # a cycle
        ([0, 1, 3], [1.0] * 3),  # too short
        ([0, 1, 3, 3], [1.0] * 4),  # a link twice
        ([0, 1, 3, 4], [1.0, 1.0, 1.0, 1.0 + 1e-6]),  # just outside
    ],
)
def test_a_vertex_that_is_no_tree_is_found_out(indices, values):
    K = SpanningTrees([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 0)])
    vertex = Sparse(K.shape, np.array(indices, dtype=np.int32), np.array(values))
    assert K.vertex_infeasibility(vertex) >= K.infeasibility(vertex.dense(K.center)) > 1e-7
    atoms, weights = ActiveSet.start(K).atoms.append(vertex, 1), np.array([0.5, 0.5])
    x = atoms.combine(weights, K.center)
    assert proved(K, x, ActiveSet(atoms, weights, x)) == (K.infeasibility(x), tracking.EVERY_POINT)


def test_a_recording_that_was_saved_knows_as_much_as_one_that_was_not():
    K = graph(6, 5)
    for learner in (tw.LyapunovDescent(K, horizon=50), tw.LyapunovFrankWolfe(K, horizon=50)):
        whole, half = tw.run(learner, stream(K, 50)), recording.Recording(learner, stream(K, 50))
        next(t for t in half.advance() if t >= 20)
        again = recording.Recording.load(half.save(), learner, stream(K, 50), "half")
        list(again.advance())
        end = recording.Recording.load(again.save(), learner, stream(K, 50), "whole").membership
        assert (end.worst, end.how) == (whole.max_infeasibility, whole.membership.how)


def test_a_learner_that_leaves_the_set_is_found_out():
    K, T = graph(6, 6), 30

    class Leaving(tw.LyapunovDescent):
        needs = tw.LyapunovDescent.needs

        def act(self, state):
            x = super().act(state)
            return x if state.t != 17 else x + 0.01

    found = tw.run(Leaving(K, horizon=T), stream(K, T))
    assert found.max_infeasibility == pytest.approx(0.01 * len(K.edges), rel=1e-6)
    check = certificate.certify(found).checks[0]
    assert check.holds is False
    assert "1 of 30 points" in check.how
