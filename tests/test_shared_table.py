"""Several active sets on one table: the same points, nothing lost, nothing kept for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.projection import ActiveSet
from tidewolf.projection.active_set import SPARE, most_idle
from tidewolf.projection.shared_table import compacted, on_one_table
from tidewolf.sets import Birkhoff, ConvexSet, L2Ball, Product, Simplex, Spectraplex, VertexHull

seeds = st.integers(0, 2**32)
SETS = {
    "simplex": Simplex(6),
    "permutations": Birkhoff(4),
    "hull": VertexHull(np.random.default_rng(3).standard_normal((9, 4))),
    "ball": L2Ball(3),
    "matrices": Spectraplex(3),
    "product": Product(Spectraplex(2), Simplex(3)),
}
every_set = pytest.mark.parametrize("K", [pytest.param(K, id=name) for name, K in SETS.items()])


def a_target(K: ConvexSet, rng: np.random.Generator) -> np.ndarray:
    return K.center + 1.5 * K.radius * K.tangent(rng.standard_normal(K.shape))


def walked(K: ConvexSet, rng: np.random.Generator, members: int, rounds: int) -> list[ActiveSet]:
    """Members that take turns on one table."""
    actives = [ActiveSet.start(K)] * members
    for _ in range(rounds):
        for i in range(members):
            table = actives[i - 1].atoms
            actives[i] = (
                actives[i]
                .on(table)
                .nearest(K, a_target(K, rng), 1e-4 * K.radius**2, 6, shared=True)
                .active
            )
    return actives


def require_same_point(K: ConvexSet, before: ActiveSet, after: ActiveSet) -> None:
    assert after.x is before.x
    made = after.atoms.combine(after.weights, before.x)
    np.testing.assert_allclose(made, before.x, rtol=0, atol=1e-9 * max(1.0, K.radius))
    assert after.weights.min() >= 0.0
    assert len(after.weights) <= len(after.atoms)


@every_set
@settings(max_examples=6)
@given(seed=seeds)
def test_a_point_is_the_same_on_a_longer_table(K, seed):
    rng = np.random.default_rng(seed)
    actives = walked(K, rng, members=3, rounds=2)
    table = max((active.atoms for active in actives), key=len)
    for active in actives:
        longer = active.on(table)
        require_same_point(K, active, longer)
        assert len(longer.weights) == len(longer.atoms)
        assert longer.on(longer.atoms) is longer


@every_set
@settings(max_examples=6)
@given(seed=seeds)
def test_a_point_is_the_same_on_another_table(K, seed):
    """Tables that were made apart: rows are told by their vertices, missing ones appended."""
    rng = np.random.default_rng(seed)
    here, there = walked(K, rng, 1, 3)[0], walked(K, rng, 1, 2)[0]
    sizes = len(there.atoms), len(here.atoms)
    moved = here.on(there.atoms)
    require_same_point(K, here, moved)
    assert len(moved.atoms) <= sizes[0] + len(here)
    require_same_point(K, there, there.on(moved.atoms))
    joined = on_one_table([here, there])
    assert joined[0].atoms is joined[1].atoms
    assert len(joined[0].weights) == len(joined[1].weights) == len(joined[0].atoms)


def test_what_one_found_costs_the_other_no_call():
    K, y = Simplex(6), np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    finder = ActiveSet.start(K).nearest(K, y, 1e-6, 100, shared=True)
    assert finder.calls > 0
    guest = ActiveSet.start(K).on(finder.active.atoms).nearest(K, y, 1e-6, 100, shared=True)
    assert guest.calls <= 1  # the proof that it is near, at most
    assert guest.active.atoms is finder.active.atoms


@every_set
@settings(max_examples=6)
@given(seed=seeds)
def test_compacted_sets_are_at_the_same_points(K, seed):
    rng = np.random.default_rng(seed)
    actives = walked(K, rng, members=3, rounds=3)
    for before, after in zip(actives, compacted(actives, K.dimension), strict=True):
        require_same_point(K, before, after)


def test_idle_rows_leave_together():
    """No row leaves a shared table by one of its users, none in use ever, and memory is flat."""
    K = VertexHull(np.random.default_rng(0).standard_normal((2_000, 5)))
    rng = np.random.default_rng(1)
    actives = [ActiveSet.start(K)] * 3
    longest = left = 0
    for _ in range(120):
        for i in range(3):
            table = actives[i - 1].atoms
            found = actives[i].on(table).nearest(K, a_target(K, rng), 1e-3, 2, shared=True)
            assert len(found.active.weights) >= len(table)
            actives[i] = found.active
        before = on_one_table(actives)
        actives = list(compacted(actives))
        used = int(np.count_nonzero(np.any([a.weights > 0 for a in actives], axis=0)))
        assert len(actives[0].atoms) <= used + most_idle(used, 0)
        assert all(a.atoms is actives[0].atoms for a in actives)
        left += len(actives[0].atoms) < len(before[0].atoms)
        longest = max(longest, len(before[0].atoms))
    assert left > 0
    assert longest <= 3 * 2 * (K.dimension + 1 + SPARE) + 2 * SPARE + 6


def test_a_crowded_set_is_reduced_without_losing_rows():
    rng = np.random.default_rng(2)
    K = VertexHull(rng.standard_normal((100, 3)))
    table = K.atom(K.points[0]).table()
    for count, point in enumerate(K.points):
        table = table.append(K.atom(point), count)
    weights = rng.dirichlet(np.ones(100))
    reduced = ActiveSet(table, weights, weights @ K.points)._reduced(100, K.dimension, shared=True)
    assert reduced.atoms is table
    assert len(reduced.weights) == 100
    assert len(reduced) <= K.dimension + 1
    np.testing.assert_allclose(reduced.x, weights @ K.points, atol=1e-12)
