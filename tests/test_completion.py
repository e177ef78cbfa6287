"""Online matrix completion: squared errors and bounds on entries, the best point in hindsight under
them, and the problem end to end.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf import problems
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape
from tidewolf.functions import Range, Squared
from tidewolf.hindsight.best import best_in_hindsight
from tidewolf.hindsight.sdp import AlternatingDirections
from tidewolf.hindsight.task import Task
from tidewolf.problems.matrices import MILD, TAU
from tidewolf.sets import Box, L2Ball, NuclearBall

seeds = st.integers(0, 2**32)


# --- functions of entries -------------------------------------------------------------------------


def ragged(rng, shape, rounds, least):
    """Some entries each round, each once, with two numbers for each."""
    drawn, size = [], math.prod(shape)
    for count in rng.integers(least, size + 1, rounds):
        where = np.unravel_index(rng.permutation(size)[:count], shape)
        drawn.append((where, rng.integers(-2, 3, count) / 2, rng.random(count)))
    return drawn


@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=25)
def test_a_sparse_subgradient_is_the_dense_one_and_a_direction(seed, dtype):
    rng = np.random.default_rng(seed)
    f = Squared.of([(where, low) for where, low, _ in ragged(rng, (4, 5), 3, 1)], (4, 5))
    x, w = rng.standard_normal((4, 5)).astype(dtype), rng.random(3).astype(dtype)
    G = f.sparse_subgradient(x, w)
    np.testing.assert_allclose(G.toarray(), f.subgradient(x, w), atol=1e-5)
    assert G.nnz <= (f.places >= 0).sum()
    K = NuclearBall((4, 5))
    slope = f.subgradient(x, w)
    best = np.vdot(K.lmo(slope), slope)
    np.testing.assert_allclose(np.vdot(K.lmo(G), G.toarray()), best, rtol=1e-4)


def test_of_many_bounds_on_an_entry_the_tightest_is_kept():
    asked = ((([0, 1], [0, 1]), -1.0, [3.0, 1.0]), (([0], [0]), -2.0, 2.0), (([1], [1]), -0.5, 4.0))
    g = Range.of([*asked], (2, 2))
    A, b, rounds = g.halfspaces()
    rows = zip(A.indices.tolist(), A.data.tolist(), b.tolist(), rounds.tolist(), strict=True)
    assert set(rows) == {(0, 1.0, 2.0, 1), (0, -1.0, 1.0, 0), (3, 1.0, 1.0, 0), (3, -1.0, 0.5, 2)}


@pytest.mark.parametrize(
    ("make", "error", "setting"),
    [
        (lambda: Squared([1.0], [0], (2,)), WrongShape, "places"),
        (lambda: Squared([[1.0]], [[0, 1]], (2,)), WrongShape, "targets"),
        (lambda: Squared([[1.0]], [[2]], (2,)), InvalidInput, "places"),
        (lambda: Squared([[1.0]], [[-2]], (2,)), InvalidInput, "places"),
        (lambda: Squared([[1.0]], [[0.5]], (2,)), InvalidInput, "places"),
        (lambda: Squared([[np.nan]], [[0]], (2,)), NotFinite, "targets"),
        (lambda: Squared([[1.0, 2.0]], [[1, 1]], (2,)), InvalidInput, "places"),
        (lambda: Squared([[1.0]], [[0]], 2), WrongShape, "sides"),
        (lambda: Squared([[1.0]], [[0]], (2, 0)), InvalidInput, "sides"),
        (lambda: Squared.of([], (2,)), InvalidInput, None),
        (lambda: Squared.one(([0], [3]), [1.0], (2, 2)), InvalidInput, None),
        (lambda: Squared.one(([0, 1], [0, 1]), [1.0], (2, 2)), WrongShape, None),
        (lambda: Range([[0.0]], [[1.0]], [[-1]], (2,)), InvalidInput, "places"),
        (lambda: Range([[2.0]], [[1.0]], [[0]], (2,)), InvalidInput, "high"),
        (lambda: Range([[0.0]], [[1.0, 2.0]], [[0]], (2,)), WrongShape, "high"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(make, error, setting):
    with refused(error, setting):
        make()


# --- the best point in hindsight ------------------------------------------------------------------


def a_stream(rng, shape, rounds, size=1.0):
    seen, shown = ragged(rng, shape, rounds, 0), ragged(rng, shape, rounds, 1)
    losses = [(where, size * low) for where, low, _ in seen]
    limits = [(where, -size * (0.1 + each), size * (0.1 + each[::-1])) for where, _, each in shown]
    return tw.Stream(Squared.of(losses, shape), Range.of(limits, shape))


BOX = Box(-np.full((3, 4), 0.3), np.full((3, 4), 0.4))
PROJECTABLE = [NuclearBall((3, 4), 1.5), L2Ball((3, 4), 1.5), BOX]


@given(seed=seeds, rounds=st.integers(1, 6), K=st.sampled_from(PROJECTABLE))
@settings(max_examples=12)
def test_the_bracket_is_narrow_and_no_feasible_member_is_below_it(seed, rounds, K):
    rng = np.random.default_rng(seed)
    stream = a_stream(rng, (3, 4), rounds)
    best = best_in_hindsight(K, stream)
    assert AlternatingDirections().supports(Task.of(K, stream.losses, stream.constraints))
    assert best.feasible
    start = float(stream.losses.values(K.center).sum())
    assert best.upper - best.lower <= 2e-6 * max(best.upper, 1e-3 * start)
    assert K.infeasibility(best.point) <= 1e-9
    assert stream.constraints.values(best.point).max() <= 1e-9
    total = float(stream.losses.values(best.point).sum())
    assert total == pytest.approx(best.upper, abs=1e-12 * max(1.0, start))
    for far in (0.1, 1.0, 3.0):
        x = K.project(best.point + far * rng.standard_normal((3, 4)))
        breach = max(0.0, float(stream.constraints.values(x).max()))
        room = -float(stream.constraints.values(K.center).max())
        x = x + breach / (breach + room) * (K.center - x)
        assert float(stream.losses.values(x).sum()) >= best.lower - 1e-9 * start


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_it_knows_no_units(size):
    unit, best = (
        best_in_hindsight(NuclearBall((3, 4), s), a_stream(np.random.default_rng(3), (3, 4), 4, s))
        for s in (1.0, size)
    )
    assert best.upper / size**2 == pytest.approx(unit.upper, rel=1e-5)
    assert best.lower / size**2 == pytest.approx(unit.lower, rel=1e-5)


# --- the problem ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_its_limits_can_be_kept_and_bind(seed):
    problem = problems.completion(seed=seed)
    K, stream = problem.K, problem.stream
    best = best_in_hindsight(K, stream)
    assert best.upper - best.lower <= 1e-6 * best.upper
    assert stream.constraints.values(K.center).max() <= -MILD + 1e-12
    limits = stream.constraints
    far = Range(limits.low - 100, limits.high + 100, limits.places, K.shape)
    free = best_in_hindsight(K, tw.Stream(stream.losses, far))
    assert float(np.mean(stream.constraints.values(free.point) > 1e-9)) > 0.3
    nothing = float(stream.losses.values(K.center).sum())
    assert 1.5 * free.upper < best.lower < 0.7 * nothing
    assert np.linalg.norm(free.point, "nuc") == pytest.approx(TAU, rel=1e-6)
