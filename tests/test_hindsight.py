"""The best point in hindsight against enumeration, its bracket against a lying solver, and the
proof that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tidewolf.core.arrays import frozen, norm
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, NotSupported, WrongShape
from tidewolf.core.types import Array
from tidewolf.functions import (
    Affine,
    Capacity,
    Chain,
    Custom,
    Linear,
    MaxAffine,
    PiecewiseLinear,
    Quadratic,
)
from tidewolf.hindsight import lp as linear_program
from tidewolf.hindsight.best import Comparator, Infeasibility, best_in_hindsight
from tidewolf.hindsight.task import Solution, Task
from tidewolf.hindsight.warm_model import WarmModel
from tidewolf.sets import CappedSimplex, Simplex, Translated, VertexHull
from tidewolf.sets.base import ConvexSet

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=60, deadline=None)


def by_enumeration(corners: np.ndarray[Any, Any], stream: Stream) -> float:
    """The least total over every vertex of {weights of the corners} cut by the constraints;
    infinite where there is none.
    """
    assert isinstance(stream.constraints, PiecewiseLinear)
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


def a_stream(seed: int, n: int, k: int, room: float) -> Stream:
    """Random affine losses; constraints that the centre of the simplex keeps with `room` to spare
    on average.
    """
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(k, 2, n))
    b = A.mean(axis=2) + room + 0.1 * rng.normal(size=(k, 2))
    kind = rng.integers(3)
    losses = Affine(rng.normal(size=(k, n)), rng.normal(size=k))
    if kind == 0:
        return Stream(losses, MaxAffine(A, b))
    return Stream(
        losses,
        (
            Affine(A[:, 0], b[:, 0])
            if kind == 1
            else Capacity(1 / n + room / 2 + 0.1 * rng.normal(size=(k, n)))
        ),
    )


def proves(
    proof: Infeasibility, K: ConvexSet, stream: Stream, members: np.ndarray[Any, Any]
) -> None:
    """The proof read again from its parts: weighted rows, and the rounds they come from, at these
    members.
    """
    assert isinstance(stream.constraints, PiecewiseLinear)
    A, b, rounds = stream.constraints.halfspaces()
    assert (proof.weights > 0).all()
    assert proof.weights.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(proof.rounds, rounds[proof.rows])
    d = A[proof.rows].T @ proof.weights
    assert (
        float((K.lmo(d.reshape(K.shape)).reshape(-1) * d).sum() - proof.weights @ b[proof.rows])
        >= proof.bound
        > 0
    )
    for x in members:
        assert proof.weights @ np.asarray(stream.constraints.values(x))[proof.rounds] >= proof.bound


@quick
@given(
    seed=seeds,
    n=st.integers(1, 3),
    k=st.integers(1, 4),
    room=st.sampled_from([-0.3, 0.0, 0.2, 1.0]),
)
def test_the_bracket_holds_the_enumerated_minimum(seed: int, n: int, k: int, room: float) -> None:
    stream = a_stream(seed, n, k, room)
    best, got = by_enumeration(np.eye(n), stream), best_in_hindsight(Simplex(n), stream)
    if math.isinf(best):
        assert got.feasible is not True
        assert got.upper == math.inf
        if got.infeasibility is not None:
            assert (got.feasible, got.lower, got.point) == (False, math.inf, None)
            proves(
                got.infeasibility,
                Simplex(n),
                stream,
                np.random.default_rng(seed).dirichlet(np.ones(n), 20),
            )
        return
    assert got.feasible
    assert got.infeasibility is None
    assert got.lower <= best + 1e-8
    assert best - 1e-8 <= got.upper <= got.lower + 1e-8
    assert got.point is not None
    assert Simplex(n).infeasibility(got.point) <= 1e-9
    assert stream.constraints.values(got.point).max() <= 1e-8
    assert not got.point.flags.writeable


@quick
@given(seed=seeds, room=st.sampled_from([-0.5, 0.1, 0.5]), square=st.booleans())
def test_lifted_and_shifted_sets_work_too(seed: int, room: float, square: bool) -> None:
    rng = np.random.default_rng(seed)
    corners, shift = rng.normal(size=(4, 4)), rng.normal(size=4)
    A = rng.normal(size=(3, 4))
    b = A @ (corners.mean(axis=0) + shift) + room
    C, shape = rng.normal(size=(3, 4)), (2, 2) if square else (4,)
    stream = Stream(Linear(C.reshape(3, *shape)), Affine(A.reshape(3, *shape), b))
    K = Translated(VertexHull(corners.reshape(4, *shape)), shift.reshape(shape))
    best, got = by_enumeration(corners + shift, stream), best_in_hindsight(K, stream)
    assume(math.isinf(best) or abs(best) > 0)
    if math.isinf(best):
        assert got.infeasibility is not None
        proves(
            got.infeasibility,
            K,
            stream,
            (rng.dirichlet(np.ones(4), 20) @ corners + shift).reshape(20, *shape),
        )
    else:
        assert got.feasible
        assert got.lower - 1e-8 <= best <= got.upper + 1e-8
        assert got.upper - got.lower < 1e-8
        assert got.point is not None
        assert got.point.shape == shape


def test_a_set_in_another_array_library() -> None:
    xp = array_api_strict
    hull = VertexHull(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    K = Translated(hull, np.array([0.5, 0.0])).to(xp.asarray([0.0]))
    got = best_in_hindsight(
        K,
        Stream(
            Linear(xp.asarray([[-1.0, -2.0]])), Affine(xp.asarray([[0.0, 1.0]]), xp.asarray([0.25]))
        ),
    )
    assert got.feasible
    np.testing.assert_allclose(got.point, [1.25, 0.25], atol=1e-9)
    assert got.lower == pytest.approx(-1.75)


def test_a_known_minimum() -> None:
    stream = Stream(
        Linear([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), Capacity([[0.5, 1.0, 1.0], [1.0, 0.25, 1.0]])
    )
    got = best_in_hindsight(Simplex(3), stream)
    np.testing.assert_allclose(got.point, [0.5, 0.25, 0.25], atol=1e-9)
    assert got.upper == pytest.approx(3.5, abs=1e-12)
    assert got.lower == pytest.approx(3.5, abs=1e-12)
    assert got == best_in_hindsight(Simplex(3), stream)


def test_start_and_stop_choose_the_rounds() -> None:
    stream = a_stream(3, 3, 12, 0.5)
    assert best_in_hindsight(Simplex(3), stream, 3, 8) == best_in_hindsight(Simplex(3), stream[3:8])
    assert best_in_hindsight(Simplex(3), stream, stop=8) == best_in_hindsight(
        Simplex(3), stream[:8]
    )
    assert best_in_hindsight(Simplex(3), stream, -4) == best_in_hindsight(Simplex(3), stream[8:])


def test_two_rounds_that_exclude_each_other_are_named() -> None:
    A, b = np.zeros((10, 2)), np.ones(10)
    A[4], b[4] = [1.0, 0.0], 0.4
    A[7], b[7] = [0.0, 3.0], 1.5
    stream = Stream(Linear(np.ones((10, 2))), Affine(A, b))
    assert best_in_hindsight(Simplex(2), stream, 0, 7).feasible
    got = best_in_hindsight(Simplex(2), stream, 2)
    assert got.feasible is False
    assert got.infeasibility is not None
    np.testing.assert_array_equal(got.infeasibility.rounds, [4, 7])
    np.testing.assert_array_equal(got.infeasibility.rows, [2, 5])
    np.testing.assert_allclose(got.infeasibility.weights, [0.75, 0.25])
    assert got.infeasibility.bound == pytest.approx(0.075)
    assert "rounds 5 (0.75) and 8 (0.25)" in got.infeasibility.sentence


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6, 1e12])
def test_units_do_not_matter(unit: float) -> None:
    for room in (-0.5, 0.3):
        stream = a_stream(1, 3, 6, room)
        assert isinstance(stream.losses, Affine)
        assert isinstance(stream.constraints, MaxAffine | Affine)
        scaled = Stream(
            Affine(unit * stream.losses.A, unit * stream.losses.b),
            type(stream.constraints)(unit * stream.constraints.A, unit * stream.constraints.b),
        )
        got, want = best_in_hindsight(Simplex(3), scaled), best_in_hindsight(Simplex(3), stream)
        assert got.feasible is want.feasible is (room > 0)
        if want.feasible:
            np.testing.assert_allclose(
                [got.lower, got.upper], [unit * want.lower, unit * want.upper], rtol=1e-8
            )
        else:
            assert got.infeasibility is not None
            assert want.infeasibility is not None
            assert got.infeasibility.bound == pytest.approx(unit * want.infeasibility.bound)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_that_are_constant_on_the_set_change_nothing(sign: float) -> None:
    """What projecting such a row leaves is rounding, which is not to be scaled to size 1."""
    K, losses = CappedSimplex(6, 0.5), Linear([[4.0, 10.0, -4.0, 4.0, -18.0, -18.0]] * 2)
    rows = np.array([[sign] * 6, [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]])
    best = best_in_hindsight(K, Stream(losses, Affine(rows, [sign, 0.9])))
    assert best.feasible
    assert best.lower == pytest.approx(best.upper)


def test_long_and_wide_streams() -> None:
    rng = np.random.default_rng(0)
    A = rng.uniform(0.2, 1.0, (17_544, 13))
    long = best_in_hindsight(
        Simplex(13), Stream(Linear(rng.uniform(size=A.shape)), Affine(A, np.full(len(A), 0.92)))
    )
    wide = best_in_hindsight(
        Simplex(456),
        Stream(
            Linear(rng.uniform(size=(336, 456))), Capacity(rng.uniform(0.003, 0.01, (336, 456)))
        ),
    )
    for got in (long, wide):
        assert got.feasible
        assert 0 <= got.upper - got.lower <= 1e-11 * got.upper


# ---------------------------------------------------------------------------- no solver is believed


@quick
@given(seed=seeds)
def test_any_multipliers_give_a_lower_bound(seed: int) -> None:
    stream = a_stream(seed, 3, 4, 0.5)
    truth = best_in_hindsight(Simplex(3), stream)
    assume(truth.feasible)
    task = Task.of(Simplex(3), stream.losses, stream.constraints)
    lam = np.random.default_rng(seed).exponential(size=len(task.b)) * np.random.default_rng(
        seed + 1
    ).integers(0, 2, len(task.b))
    assert task.lower_bound(Solution(None, lam)) <= truth.upper


@pytest.mark.parametrize(
    "lie",
    [
        np.array([0.5, 0.6]),  # outside the set
        np.array([1.0, 0.0]),  # in the set, over the capacity
        np.array([-0.2, 1.2]),
    ],
)
def test_a_point_that_breaks_a_rule_is_no_upper_bound(
    lie: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        linear_program.LinearProgramming,
        "solve",
        lambda self, task: Solution(lie, np.full(len(task.b), 7.0)),
    )
    got = best_in_hindsight(Simplex(2), Stream(Linear([[1.0, 2.0]]), Capacity([[0.7, 1.0]])))
    assert got.upper == math.inf
    assert got.feasible is None
    assert got.point is None
    assert got.lower <= 1.3


def test_a_solver_that_gives_up_leaves_the_bound_without_constraints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WarmModel, "solve_cold", lambda *_: None)
    got = best_in_hindsight(Simplex(2), Stream(Linear([[1.0, 2.0]]), Capacity([[0.7, 1.0]])))
    assert got == Comparator(
        None, got.lower, math.inf, None, method=linear_program.LinearProgramming.name
    )
    assert got.lower == pytest.approx(1.0)


# ---------------------------------------------------------------------------------------- sentences


@dataclass(frozen=True, eq=False, repr=False)
class Disc(ConvexSet):
    shape = (2,)
    center = frozen(np.zeros(2))
    radius = 1.0

    def lmo(self, direction: Array) -> Array:
        return -direction / max(norm(direction), 1e-300)

    def infeasibility(self, x: Array) -> float:
        return max(0.0, norm(x) - 1.0)

    @classmethod
    def examples(cls) -> Sequence[Disc]:
        return (cls(),)


LINEAR, CAPACITY, CUSTOM = (
    Linear([[1.0, 2.0]]),
    Capacity([[1.0, 1.0]]),
    Custom(lambda t, x: 0.0, lambda t, x: 0.0 * x, (2,), 1),
)


@pytest.mark.parametrize(
    ("losses", "constraints"),
    [
        (LINEAR, CUSTOM),
        (Chain((LINEAR, CUSTOM)), Chain((CUSTOM, LINEAR))),
        (CUSTOM, Quadratic.one(np.eye(2), [0.0, 0.0])),
    ],
)
def test_what_is_missing_is_named(losses: Batch, constraints: Batch) -> None:
    with pytest.raises(NotSupported, match="Custom"):
        best_in_hindsight(Simplex(2), Stream(losses, constraints))


def test_rounds_and_shapes_are_checked() -> None:
    with pytest.raises(InvalidInput, match="between start and stop"):
        best_in_hindsight(Simplex(2), Stream(LINEAR, CAPACITY), 1)
    with pytest.raises(
        WrongShape,
        match=r"points of shape \(3,\); the stream's functions take points of shape \(2,\)",
    ):
        best_in_hindsight(Simplex(3), Stream(LINEAR, CAPACITY))
