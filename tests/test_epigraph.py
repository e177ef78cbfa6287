"""Losses that are maxima of affine pieces: the best point as a linear program, its bracket proved
by the oracle, whatever the multipliers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.functions import Affine, Capacity, MaxAffine, MaxUtilization, Sum, Unlimited
from tidewolf.hindsight import cutting_planes
from tidewolf.hindsight.lp import LinearProgramming
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets import Box, FlowPolytope, Simplex, SimplexProduct

seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, T: int, n: int) -> tw.Stream:
    rng = np.random.default_rng(seed)
    losses = MaxAffine(rng.normal(size=(T, 3, n)), rng.normal(size=(T, 3)))
    return tw.Stream(losses, Capacity(1.5 / n + 0.3 * rng.random((T, n))))


@settings(max_examples=25, deadline=None)
@given(seed=seeds, T=st.integers(1, 8), n=st.integers(1, 4), unit=st.sampled_from([1.0, 1e6, 1e-6]))
def test_the_bracket_holds_and_closes(seed, T, n, unit):
    K, stream = Simplex(n), drawn(seed, T, n)
    stream = tw.Stream(Sum(stream.losses, weights=[unit]), stream.constraints)
    best = tw.best_in_hindsight(K, stream)
    assert best.feasible
    assert best.method == LinearProgramming.name
    assert best.upper == pytest.approx(float(stream.losses.values(best.point).sum()))
    assert best.upper - best.lower <= 1e-8 * (unit + abs(best.upper))
    rng = np.random.default_rng(seed)
    for x in rng.dirichlet(np.ones(n), 40):
        if stream.constraints.values(x).max() <= 0.0:
            assert stream.losses.values(x).sum() >= best.lower - 1e-9 * unit


@settings(max_examples=25, deadline=None)
@given(seed=seeds, zero=st.booleans())
def test_any_multipliers_prove_a_lower_bound(seed, zero):
    K, stream = Simplex(3), drawn(seed, 4, 3)
    task = Task.of(K, stream.losses, stream.constraints)
    best = tw.best_in_hindsight(K, stream)
    rng = np.random.default_rng(seed)
    lam, mu = (
        rng.exponential(size=k) * (rng.random(k) < 0.5) * (not zero) for k in (len(task.b), 12)
    )
    below = task.below_pieces(mu)
    assert task.lower_bound(Solution(None, lam, below=below)) <= best.upper + 1e-9


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0, 40.0])
def test_weights_of_pieces_are_shares(weight):
    """A loss that is 1 everywhere, of two equal pieces: any weights of them prove 1 a round."""
    flat = MaxAffine(np.zeros((3, 2, 2)), -np.ones((3, 2)))
    task = Task.of(Simplex(2), flat, Unlimited(2, 3))
    below = task.below_pieces(np.full(6, weight))
    assert task.least(below)[0] == pytest.approx(3.0)


def test_the_fullest_link_over_splits_and_flows():
    """Two links of capacities 1 and 2 in parallel: the best split fills both alike."""
    splits = MaxUtilization([[1, 0], [0, 1]], [[3.0], [6.0]], [1.0, 2.0], [0, 0])
    best = tw.best_in_hindsight(SimplexProduct([2]), tw.Stream(splits))
    np.testing.assert_allclose(best.point, [1 / 3, 2 / 3])
    assert best.upper == pytest.approx(3.0)
    K = FlowPolytope.from_edges([("s", "a"), ("a", "t"), ("s", "t")], source="s", target="t")
    loads = MaxUtilization(np.eye(3), np.ones((4, 1)), [1.0, 1.0, 1.0], [0, 0, 0])
    best = tw.best_in_hindsight(K, tw.Stream(loads))
    assert best.upper == pytest.approx(4 * 0.5)
    assert best.lower == pytest.approx(4 * 0.5)


def test_limits_that_nothing_keeps_are_proved_so():
    stream = tw.Stream(
        MaxAffine(np.ones((3, 2, 2)), np.zeros((3, 2))),
        Affine([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], [0.2, -0.6, 1.0]),
    )
    best = tw.best_in_hindsight(Box(np.zeros(2), np.ones(2)), stream)
    assert best.feasible is False
    assert best.infeasibility.bound == pytest.approx(0.2)
    assert best.infeasibility.rounds.tolist() == [0, 1]
    assert best.infeasibility.rows.tolist() == [0, 1]


def test_many_rounds_are_left_to_an_interior_point_method(monkeypatch):
    K, stream = Simplex(3), drawn(5, 40, 3)
    best = tw.best_in_hindsight(K, stream)
    monkeypatch.setattr("tidewolf.hindsight.lp.MANY", 10)
    inner = tw.best_in_hindsight(K, stream)
    assert inner.upper == pytest.approx(best.upper, rel=1e-8)
    assert inner.lower == pytest.approx(best.lower, rel=1e-8)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, T=st.integers(1, 12), n=st.integers(1, 4), unit=st.sampled_from([1.0, 1e8]))
def test_a_bundle_of_cuts_finds_the_same(seed, T, n, unit):
    K, stream = Simplex(n, total=3.0), drawn(seed, T, n)
    limits = Capacity(3.0 * np.asarray(stream.constraints.c))
    stream = tw.Stream(Sum(stream.losses, weights=[unit]), limits)
    best = tw.best_in_hindsight(K, stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidewolf.hindsight.cutting_planes.MANY", 0)
        same = tw.best_in_hindsight(K, stream)
    assert same.feasible
    size = unit + abs(best.upper)
    assert same.upper == pytest.approx(best.upper, abs=2e-6 * size)
    assert best.lower - 2e-6 * size <= same.lower <= best.upper + 1e-9 * size
    assert same.method in (cutting_planes.METHOD, LinearProgramming.name)


def test_a_bundle_leaves_to_the_program_what_it_cannot_decide(monkeypatch):
    monkeypatch.setattr("tidewolf.hindsight.cutting_planes.MANY", 0)
    stream = drawn(1, 6, 3)
    assert tw.best_in_hindsight(Simplex(3), stream).method == cutting_planes.METHOD
    monkeypatch.setattr("tidewolf.hindsight.best._ENOUGH", -1.0)
    assert tw.best_in_hindsight(Simplex(3), stream).method == LinearProgramming.name
    test_limits_that_nothing_keeps_are_proved_so()
