"""Comparators where there is no linear program: brackets around what is known otherwise, two
methods beside each other, and Example II.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.core.batch import Stream
from tidewolf.functions import Affine, Linear, MaxAffine
from tidewolf.hindsight import best as hindsight
from tidewolf.hindsight import sdp as semidefinite
from tidewolf.hindsight.best import Comparator, best_in_hindsight
from tidewolf.hindsight.bracket import LevelBundle
from tidewolf.hindsight.sdp import SemidefiniteProgramming
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets import BoundedPSD, L2Ball, Simplex, Translated

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12, deadline=None)
ROOM = [-0.3, -0.1, 0.05, 0.3]
SOLVERS = [
    pytest.param(SemidefiniteProgramming(), id="semidefinite"),
    pytest.param(LevelBundle(), id="bracket"),
]


def known(solver, K, stream) -> Comparator:
    """What one method finds, checked as `best_in_hindsight` checks it."""
    task = Task.of(K, stream.losses, stream.constraints)
    found = solver.solve(task)
    assert found is not None
    return hindsight._checked(task, found, 0)


def a_stream(seed: int, n: int, k: int, room: float) -> Stream:
    """Random losses and two random half-spaces a round, kept by 0 with `room` to spare."""
    rng = np.random.default_rng(seed)
    return Stream(
        Affine(rng.normal(size=(k, n, n)), rng.normal(size=k)),
        MaxAffine(rng.normal(size=(k, 2, n, n)), np.full((k, 2), room)),
    )


def diagonal(seed: int, n: int, k: int, room: float) -> tuple[Stream, Stream]:
    """The same rounds for matrices, of which only the diagonal counts, and for vectors."""
    rng = np.random.default_rng(seed)
    c, a, b = rng.normal(size=(k, n)), rng.normal(size=(k, 2, n)), room + 0.2 * rng.random((k, 2))
    C, A = c[..., None] * np.eye(n), a[..., None] * np.eye(n)
    return Stream(Linear(C), MaxAffine(A, b)), Stream(Linear(c), MaxAffine(a, b))


# --- against what is known otherwise --------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@given(seed=seeds, n=st.integers(1, 4), k=st.integers(1, 6), room=st.sampled_from(ROOM))
@few
def test_diagonal_rounds_are_a_linear_program(solver, seed, n, k, room):
    matrices, vectors = diagonal(seed, n, k, room)
    K, want = BoundedPSD(n, 1.5), best_in_hindsight(Simplex(n, 1.5, at_most=True), vectors)
    got = known(solver, K, matrices)
    assert got.feasible == want.feasible
    if not want.feasible:
        assert got.infeasibility.bound > 0
        return
    assert got.lower <= want.upper + 1e-9
    assert got.upper >= want.lower - 1e-9
    assert got.upper - got.lower <= 1e-5 * max(1.0, abs(want.lower))
    assert K.infeasibility(got.point) <= 1e-9
    assert matrices.constraints.values(got.point).max() <= 1e-8


@given(seed=seeds, offset=st.floats(-0.9, 0.9), far=st.sampled_from([0.0, 10.0]))
@few
def test_a_ball_and_a_half_space_have_a_closed_form(seed, offset, far):
    rng = np.random.default_rng(seed)
    c, a, shift = rng.normal(size=3), rng.normal(size=3), far * np.ones(3)
    a /= np.linalg.norm(a)
    across = c - (c @ a) * a
    free = -c / np.linalg.norm(c)
    x = offset * a - math.sqrt(1 - offset**2) * across / np.linalg.norm(across)
    x = free if free @ a <= offset else x
    stream = Stream(Linear.one(c), Affine.one(a, offset + float(a @ shift)))
    got = best_in_hindsight(Translated(L2Ball(3), shift), stream)
    best = float(c @ (x + shift))
    assert got.feasible
    assert got.lower - 1e-9 <= best <= got.upper + 1e-9
    assert got.upper - got.lower <= 1e-5 * max(1.0, abs(best))


@given(seed=seeds, n=st.integers(1, 5), k=st.integers(1, 12), room=st.sampled_from(ROOM))
@few
def test_both_methods_agree_within_their_brackets(seed, n, k, room):
    K, stream = BoundedPSD(n, 2.0), a_stream(seed, n, k, room)
    sdp, lmo = known(SemidefiniteProgramming(), K, stream), known(LevelBundle(), K, stream)
    assert sdp.feasible == lmo.feasible is not None
    if sdp.feasible:
        assert max(sdp.lower, lmo.lower) <= min(sdp.upper, lmo.upper) + 1e-12
        assert sdp.upper - sdp.lower <= 1e-6 * max(1.0, abs(sdp.upper))
        assert lmo.upper - lmo.lower <= 1e-3 * max(1.0, abs(lmo.upper))
    for x in map(K.project, np.random.default_rng(seed).normal(size=(20, n, n))):
        values, total = stream.constraints.values(x), float(stream.losses.values(x).sum())
        for got in (sdp, lmo):
            if (proof := got.infeasibility) is not None:
                assert proof.weights @ values[proof.rounds] >= proof.bound - 1e-12
            else:
                assert values.max() > 0 or total >= got.lower - 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_of_many_rows_those_that_matter_are_found(solver):
    rng = np.random.default_rng(0)
    rows = np.eye(3) + 0.02 * rng.normal(size=(300, 1, 3, 3))
    stream = Stream(
        Linear(-np.ones((300, 3, 3))), MaxAffine(rows, 0.7 + 0.01 * rng.random((300, 1)))
    )
    got, some = known(solver, BoundedPSD(3), stream), known(solver, BoundedPSD(3), stream[:100])
    assert got.feasible
    assert got.upper - got.lower <= 1e-5 * abs(got.lower)
    assert got.lower / 300 > some.upper / 100  # the other rows do matter


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(solver, unit):
    K = BoundedPSD(3, 1.0)
    for room in (-0.3, 0.2):
        stream = a_stream(5, 3, 6, room)
        scaled = Stream(
            Affine(unit * stream.losses.A, unit * stream.losses.b),
            MaxAffine(unit * stream.constraints.A, unit * stream.constraints.b),
        )
        got, want = known(solver, K, scaled), known(solver, K, stream)
        assert got.feasible is want.feasible is (room > 0)
        if room > 0:
            np.testing.assert_allclose(
                [got.lower, got.upper], [unit * want.lower, unit * want.upper], rtol=1e-5
            )


# --- no method is believed ------------------------------------------------------------------------


def test_a_lying_solver_is_passed_over(monkeypatch):
    K, stream = BoundedPSD(3), a_stream(1, 3, 5, 0.3)
    truth = known(LevelBundle(), K, stream)
    lies = [
        Solution(np.eye(3).reshape(-1), np.full(10, 7.0)),  # a trace of 3
        Solution(np.zeros(9), np.zeros(10), np.ones(10)),  # feasible, and said not to be
        None,
    ]
    for lie in lies:
        monkeypatch.setattr(SemidefiniteProgramming, "supports", lambda self, task: True)
        monkeypatch.setattr(SemidefiniteProgramming, "solve", lambda self, task, lie=lie: lie)
        got = best_in_hindsight(K, stream)
        assert got.feasible
        assert got.lower <= truth.upper
        assert got.upper >= truth.lower
    monkeypatch.setattr(LevelBundle, "solve", lambda self, task: lies[0])
    got = best_in_hindsight(K, stream)
    assert (got.feasible, got.upper, got.point) == (None, math.inf, None)
    assert got.lower <= truth.upper


def test_the_oracle_alone_answers_where_matrices_are_large(monkeypatch):
    monkeypatch.setattr(semidefinite, "MAX_LARGE", 2)
    K, stream = BoundedPSD(3), a_stream(2, 3, 5, 0.3)
    got = best_in_hindsight(K, stream)
    assert got.feasible
    assert got.method == LevelBundle.name
    assert got.upper - got.lower <= 1e-4 * max(1.0, abs(got.upper))


def test_hindsight_asks_an_oracle_that_does_not_err():
    stream = a_stream(4, 3, 5, 0.3)
    rough, exact = (
        best_in_hindsight(BoundedPSD(3, dense=dense, tolerance=0.5), stream) for dense in (0, 3)
    )
    assert rough.lower == exact.lower


# --- Example II -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    return tw.problems.sdp()


def test_its_limits_bind_and_can_be_met(problem):
    stream, K = problem.stream, problem.K
    assert len(problem) == 1000
    assert stream.constraints.values(np.zeros(K.shape)).max() <= -0.02
    best = best_in_hindsight(K, stream)
    free = K.lmo(stream.losses.C.sum(axis=0))
    assert best.feasible
    assert best.upper - best.lower <= 2e-6 * abs(best.upper)
    assert (stream.constraints.values(free) > 0).mean() > 0.5
    assert float(stream.losses.values(free).sum()) < 1.5 * best.lower < 0
    assert (stream.constraints.values(best.point) > -1e-3).sum() >= 5
