"""The best point in hindsight against enumeration, its bracket against a lying solver, and the
proof that there is none.
"""

import math
from functools import partial
from itertools import combinations

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape
from tidewolf.functions import Affine, Capacity, Chain, Custom, Linear, MaxAffine, Quadratic
from tidewolf.hindsight.best_point import LinearProgramming
from tidewolf.hindsight.newton import NewtonSteps
from tidewolf.hindsight.task import Solution, Task
from tidewolf.sets import CappedSimplex, Simplex, Translated, VertexHull, highs

seeds, quick = st.integers(0, 2**32 - 1), settings(max_examples=60, deadline=None)


def by_enumeration(corners, stream):
    """The least total over every vertex of {weights of the corners} cut by the constraints;
    infinite if there is none.
    """
    A, b, _ = stream.constraints.halfspaces()
    A = A.toarray() if hasattr(A, "toarray") else A
    m = len(corners)
    G, h = np.vstack([-np.eye(m), A @ corners.T]), np.concatenate([np.zeros(m), b])
    best = math.inf
    for active in combinations(range(len(h)), m - 1):
        M = np.vstack([np.ones(m), G[list(active)]])
        if abs(np.linalg.det(M)) < 1e-9:
            continue
        u = np.linalg.solve(M, np.append(1.0, h[list(active)]))
        if (G @ u <= h + 1e-9).all():
            best = min(best, float(stream.losses.values((u @ corners).reshape(stream.shape)).sum()))
    return best


def a_stream(seed, n, k, room, shape=None, at=None):
    """Random affine losses; constraints that a point, the centre of the simplex unless another is
    given, keeps with `room` to spare on average.
    """
    rng, shape = np.random.default_rng(seed), (n,) if shape is None else shape
    A, at = rng.normal(size=(k, 2, n)), np.full(n, 1 / n) if at is None else at
    b = A @ at + room + 0.1 * rng.normal(size=(k, 2))
    losses = Affine(rng.normal(size=(k, *shape)), rng.normal(size=k))
    kind = rng.integers(3)
    if kind == 0:
        return tw.Stream(losses, MaxAffine(A.reshape(k, 2, *shape), b))
    if kind == 1:
        return tw.Stream(losses, Affine(A[:, 0].reshape(k, *shape), b[:, 0]))
    c = at + room / 2 + 0.1 * rng.normal(size=(k, n))
    return tw.Stream(losses, Capacity(c.reshape(k, *shape)))


def proves(proof, K, stream, members):
    """The proof read again from its parts: weighted rows, and the rounds they come from, at these
    members.
    """
    A, b, rounds = stream.constraints.halfspaces()
    assert (proof.weights > 0).all()
    assert proof.weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(proof.rounds, rounds[proof.rows])
    d = A[proof.rows].T @ proof.weights
    least = float((K.lmo(d.reshape(K.shape)).reshape(-1) * d).sum())
    assert least - proof.weights @ b[proof.rows] >= proof.bound > 0
    for x in members:
        assert proof.weights @ np.asarray(stream.constraints.values(x))[proof.rounds] >= proof.bound


ROOM, SHAPES = st.sampled_from([-0.3, 0.0, 0.2, 1.0]), st.sampled_from([None, (4,), (2, 2)])


@quick
@given(seeds, st.integers(1, 3), st.integers(1, 4), ROOM, SHAPES)
def test_the_bracket_holds_the_enumerated_minimum(seed, n, k, room, shape):
    """On simplices, and on lifted and shifted sets of either shape."""
    rng, K, corners = np.random.default_rng(seed), Simplex(n), np.eye(n)
    if shape is not None:
        hull, shift = rng.normal(size=(4, 4)), rng.normal(size=4)
        K = Translated(VertexHull(hull.reshape(4, *shape)), shift.reshape(shape))
        n, k, corners = 4, min(k, 3), hull + shift
    stream = a_stream(seed, n, k, room, shape, corners.mean(axis=0))
    best, got = by_enumeration(corners, stream), tw.best_in_hindsight(K, stream)
    if math.isinf(best):
        assert got.feasible is not True
        assert got.upper == math.inf
        if got.infeasibility is not None:
            assert (got.feasible, got.lower, got.point) == (False, math.inf, None)
            members = rng.dirichlet(np.ones(len(corners)), 20) @ corners
            proves(got.infeasibility, K, stream, members.reshape(20, *K.shape))
        return
    assert got.feasible
    assert got.infeasibility is None
    assert got.lower <= best + 1e-8
    assert best - 1e-8 <= got.upper <= got.lower + 1e-8
    assert K.infeasibility(got.point) <= 1e-9 * max(1.0, K.radius)
    assert stream.constraints.values(got.point).max() <= 1e-8
    assert not got.point.flags.writeable


def test_a_set_in_another_array_library():
    xp = array_api_strict
    hull = VertexHull(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    K = Translated(hull, np.array([0.5, 0.0])).to(xp.asarray([0.0]))
    limits = Affine(xp.asarray([[0.0, 1.0]]), xp.asarray([0.25]))
    got = tw.best_in_hindsight(K, tw.Stream(Linear(xp.asarray([[-1.0, -2.0]])), limits))
    np.testing.assert_allclose(got.point, [1.25, 0.25], atol=1e-9)
    assert got.lower == pytest.approx(-1.75)


def test_start_and_stop_choose_the_rounds():
    K, stream = Simplex(3), a_stream(3, 3, 12, 0.5)
    for start, stop in ((3, 8), (None, 8), (-4, None)):
        whole = tw.best_in_hindsight(K, stream[start:stop])
        assert tw.best_in_hindsight(K, stream, start, stop) == whole


def test_two_rounds_that_exclude_each_other_are_named():
    A, b = np.zeros((10, 2)), np.ones(10)
    A[4], b[4] = [1.0, 0.0], 0.4
    A[7], b[7] = [0.0, 3.0], 1.5
    stream = tw.Stream(Linear(np.ones((10, 2))), Affine(A, b))
    assert tw.best_in_hindsight(Simplex(2), stream, 0, 7).feasible
    got = tw.best_in_hindsight(Simplex(2), stream, 2)
    proof = got.infeasibility
    assert got.feasible is False
    assert (proof.rounds.tolist(), proof.rows.tolist()) == ([4, 7], [2, 5])
    np.testing.assert_allclose(proof.weights, [0.75, 0.25])
    assert proof.bound == pytest.approx(0.075)


@pytest.mark.parametrize("unit", [1e-9, 1e12])
@pytest.mark.parametrize("room", [-0.5, 0.3])
def test_units_do_not_matter(unit, room):
    stream = a_stream(0, 3, 6, room)
    losses, limits = stream.losses, stream.constraints
    other = type(limits)(unit * limits.A, unit * limits.b)
    scaled = tw.Stream(Affine(unit * losses.A, unit * losses.b), other)
    got, want = tw.best_in_hindsight(Simplex(3), scaled), tw.best_in_hindsight(Simplex(3), stream)
    assert got.feasible is want.feasible is (room > 0)
    if want.feasible:
        bounds = [unit * want.lower, unit * want.upper]
        np.testing.assert_allclose([got.lower, got.upper], bounds, rtol=1e-8)
    else:
        assert got.infeasibility.bound == pytest.approx(unit * want.infeasibility.bound)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_that_are_constant_on_the_set_change_nothing(sign):
    """What projecting such a row leaves is rounding, which is not to be scaled to size 1."""
    K, losses = CappedSimplex(6, 0.5), Linear([[4.0, 10.0, -4.0, 4.0, -18.0, -18.0]] * 2)
    rows = np.array([[sign] * 6, [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]])
    best = tw.best_in_hindsight(K, tw.Stream(losses, Affine(rows, [sign, 0.9])))
    assert best.feasible
    assert best.lower == pytest.approx(best.upper)


def test_long_and_wide_streams():
    rng = np.random.default_rng(0)
    A = rng.uniform(0.2, 1.0, (17_544, 13))
    long = tw.Stream(Linear(rng.uniform(size=A.shape)), Affine(A, np.full(len(A), 0.92)))
    room = Capacity(rng.uniform(0.003, 0.01, (336, 456)))
    for stream in (long, tw.Stream(Linear(rng.uniform(size=(336, 456))), room)):
        got = tw.best_in_hindsight(Simplex(stream.shape[0]), stream)
        assert got.feasible
        assert 0 <= got.upper - got.lower <= 1e-11 * got.upper


# --- no solver is believed ------------------------------------------------------------------------


LINEAR, CAPACITY = Linear([[1.0, 2.0]]), Capacity([[0.7, 1.0]])
CURVED = Quadratic(np.eye(2), [[0.0, 0.0]]), Quadratic(np.eye(2), [[0.0, 0.0]], [-0.3])


METHODS = {LinearProgramming: tw.Stream(LINEAR, CAPACITY), NewtonSteps: tw.Stream(*CURVED)}


@pytest.mark.parametrize(("method", "stream"), METHODS.items())
@pytest.mark.parametrize(
    ("point", "weights"),
    [
        ([0.5, 0.6], None),  # outside the set
        ([-0.2, 1.2], None),
        ([1.0, 0.0], None),  # in the set, over the limit
        (None, 1.0),  # some point is feasible
        (None, 0.0),
        (None, None),
    ],
)
def test_what_a_solver_proposes_is_not_believed(method, stream, point, weights, monkeypatch):
    true = tw.best_in_hindsight(Simplex(2), stream)
    fill = partial(np.full, len(Task.of(Simplex(2), stream.losses, stream.constraints).b))
    x, shares = point and np.array(point), None if weights is None else fill(weights)
    lie = Solution(x, fill(7.0), shares, np.array([0.5, 0.5]))
    monkeypatch.setattr(method, "solve", lambda self, task: lie)
    got = tw.best_in_hindsight(Simplex(2), stream)
    assert (got.point, got.upper, got.feasible) == (None, math.inf, None)
    assert got.lower <= true.upper


def test_a_solver_that_gives_up_leaves_the_bound_without_constraints(monkeypatch):
    monkeypatch.setattr(highs.WarmModel, "__call__", lambda *_: None)
    got = tw.best_in_hindsight(Simplex(2), tw.Stream(LINEAR, CAPACITY))
    assert (got.point, got.upper, got.feasible) == (None, math.inf, None)
    assert (got.method, got.lower) == (LinearProgramming.name, pytest.approx(1.0))


# --- refusals -------------------------------------------------------------------------------------

CUSTOM = Custom(lambda t, x: 0.0, lambda t, x: 0.0 * x, (2,), 1)


@pytest.mark.parametrize(
    ("losses", "constraints"),
    [
        (LINEAR, CUSTOM),
        (Chain((LINEAR, CUSTOM)), Chain((CUSTOM, LINEAR))),
        (CUSTOM, Quadratic.one(np.eye(2), [0.0, 0.0])),
    ],
)
def test_what_is_missing_is_named(losses, constraints):
    with pytest.raises(NotSupported, match="Custom"):
        tw.best_in_hindsight(Simplex(2), tw.Stream(losses, constraints))


def test_rounds_and_shapes_are_checked():
    with refused(InvalidInput):
        tw.best_in_hindsight(Simplex(2), tw.Stream(LINEAR, CAPACITY), 1)
    with refused(WrongShape):
        tw.best_in_hindsight(Simplex(3), tw.Stream(LINEAR, CAPACITY))
