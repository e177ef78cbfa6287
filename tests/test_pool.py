"""Several members on one table: the points stay, vertices are shared, nothing grows for ever, and
pools of another hand are refused.
"""

import numpy as np
import pytest

from tidewolf.methods.pool import Pool
from tidewolf.sets import CappedSimplex, L2Ball, Product, Simplex

K, BOX, TOL = L2Ball(3), Product(Simplex(3), CappedSimplex(4, 0.5)), 1e-4


def moved(pool, rounds, over=K, seed=0, budget=3):
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        y = over.center + over.radius * rng.standard_normal(over.shape)
        pool, _ = pool.projected(t % len(pool.actives), over, y, TOL, budget)
    return pool


def test_a_vertex_that_one_found_costs_the_others_no_call():
    pool, y = Pool.start(K, 2), np.array([2.0, 0.0, 0.0])
    pool, first = pool.projected(0, K, y + 0.0, TOL, 9)
    pool, second = pool.projected(1, K, y + 0.0, TOL, 0)
    assert first.calls > 0
    assert second.calls == 0
    assert second.x == pytest.approx(first.x, abs=1e-2)


def test_new_vertices_are_told_once_and_known_ones_not_kept_twice():
    pool = moved(Pool.start(K, 2), 6)
    vertices = pool.vertices_since(1)
    assert len(vertices) == pool.count - 1 > 0
    assert pool.vertices_since(pool.count) == ()
    assert pool.with_vertices(vertices).count == pool.count
    more = Pool.start(K, 2).with_vertices(vertices)
    assert more.count == pool.count
    assert more.x(0).tobytes() == Pool.start(K, 2).x(0).tobytes()
    assert moved(Pool.start(BOX, 2), 3, BOX).vertices_since(0) == ()


@pytest.mark.parametrize("over", [K, BOX], ids=["ball", "product"])
def test_rows_that_are_idle_in_all_points_leave(over):
    pool = Pool.start(over, 2)
    for t in range(150):
        pool = moved(pool, 2, over, seed=t)
        points = [pool.x(i).tobytes() for i in range(2)]
        pool = pool.tidied()
        assert [pool.x(i).tobytes() for i in range(2)] == points
        for active in pool.actives:
            assert active.mean_of(active.weights) == pytest.approx(active.x, abs=1e-9)
    assert pool.count < 150


@pytest.mark.parametrize("over", [K, BOX], ids=["ball", "product"])
def test_a_pool_is_restored_to_the_bit_and_one_of_another_hand_refused(over):
    pool = moved(Pool.start(over, 3), 9, over)
    parts = pool.parts()
    again = Pool.restored(parts)
    again.require_of(over)
    one, other = (moved(which, 5, over, seed=7) for which in (pool, again))
    for i in range(3):
        assert one.x(i).tobytes() == other.x(i).tobytes()
    x, weights = parts["points"][0], parts["weights"][0]
    for name, wrong in (
        ("points", (x * np.nan, *parts["points"][1:])),
        ("points", (x[1:], *parts["points"][1:])),
        ("points", parts["points"][1:]),
        ("weights", (weights * np.nan, *parts["weights"][1:])),
        ("first", x),
    ):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            Pool.restored({**parts, name: wrong}).require_of(over)
    with pytest.raises(ValueError, match="no member"):
        pool.require_of(L2Ball(2))
