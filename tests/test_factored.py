"""Projections factor by factor: the three promises in every factor, one call for all of them, and
the arithmetic of their table.
"""

import copy
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf import sets
from tidewolf.core import errors, oracle
from tidewolf.kernels.active_set import DROP
from tidewolf.projection import ActiveSet, closer_to_center, search
from tidewolf.projection import active as active_sets
from tidewolf.projection.active import IDLE, SPARE_IN_FACTOR, ExactPoint, FactoredActiveSet
from tidewolf.sets import Box, L2Ball, Product, Simplex

seeds = st.integers(0, 2**32)
LINKS = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")]
SETS = {
    "simplices": Product(*[Simplex(n) for n in (3, 1, 2, 4)]),
    "of all sizes": Product(Simplex(3, total=1e3), Simplex(2, total=1e-3), Simplex(4)),
    "flows": sets.MultiFlow.from_edges(LINKS, [("s", "t", 2.0), ("s", "b", 0.1), ("a", "t", 0.0)]),
    "boxes and more": Product(Box([0.0, 1.0], [2.0, 1.0]), sets.CappedSimplex(4, 0.5), L2Ball(2)),
    "moved": sets.Translated(Product(Simplex(2), Simplex(3)), np.array([1.0, 0.0, 5.0, 0.0, -2.0])),
    "shrunk": sets.Shrunk(Product(Simplex(2), sets.VertexHull(np.eye(3) - 0.2)), 0.7),
    "an oracle that errs": Product(sets.BoundedPSD(2, tolerance=1e-2, dense=0), Simplex(2)),
    "points": Product(Simplex(1), Simplex(1, total=3.0)),
}
every_set = pytest.mark.parametrize("K", [pytest.param(K, id=name) for name, K in SETS.items()])
ENDS = np.zeros((2, 2)), np.arange(4.0).reshape(2, 2)
EXACT = {"box": Box(*ENDS), "shares": sets.SimplexProduct([2, 3])}


def places_of(K):
    assert K.factors is not None
    return np.append(K.factors.starts, math.prod(K.shape))


def squares(K, d):
    """|d_b|^2, the slow way."""
    return np.array([(d.ravel()[a:b] ** 2).sum() for a, b in pairwise(places_of(K))])


def a_target(K, rng):
    """Near some factors and far from others: each is moved by its own share of its radius."""
    assert K.factors is not None
    far = rng.choice([0.0, 0.05, 0.7, 1.5, 30.0], size=len(K.factors.starts)) * K.factors.radii
    u = K.tangent(rng.standard_normal(K.shape))
    scale = far / np.maximum(np.sqrt(squares(K, u)), 1e-300)
    return K.center + np.repeat(scale, np.diff(places_of(K))) * u


def a_walk(K, rng, steps):
    active = FactoredActiveSet.start(K)
    for _ in range(steps):
        active = active.nearest(K, a_target(K, rng), 1e-3 * K.radius**2 or 1e-3, 9).active
    return active


def require_sound(active, K):
    """Weights of a mean in every factor, on rows of it that are members, and their point."""
    active.require_of(K)
    np.testing.assert_array_equal(FactoredActiveSet.restored(active.parts()).x, active.x)
    assert not active.x.flags.writeable
    assert not active.weights.flags.writeable
    room = 1e-12 * max(1.0, float(np.abs(K.center).max()), K.radius)
    np.testing.assert_allclose(active.mean_of(active.weights), active.x, rtol=0, atol=room)


@every_set
@settings(max_examples=25)
@given(seed=seeds, share=st.sampled_from([0.3, 1e-2, 1e-4]), budget=st.sampled_from([0, 1, 3, 500]))
def test_the_promises_hold_in_every_factor(K, seed, share, budget):
    """I and III factor by factor, on vertices and exactly; II within shares that add up to tol."""
    rng = np.random.default_rng(seed)
    active, y, tol = a_walk(K, rng, rng.integers(3)), a_target(K, rng), share * (K.radius**2 or 1.0)
    given_y, found = y.copy(), active.nearest(K, y, tol, budget)
    np.testing.assert_array_equal(y, given_y)
    assert found.calls <= budget
    assert K.infeasibility(found.x) <= 1e-9 * max(1.0, K.radius)
    require_sound(found.active, K)
    apart, R = squares(K, found.x - found.y), K.factors.radii
    assert found.distance2 == pytest.approx(apart.sum(), abs=1e-18)
    size2 = max(1.0, float((y**2).sum()), float((K.center**2).sum()))
    if found.calls < budget:
        tols = tol * R**2 / ((R**2).sum() or 1.0)
        assert (apart <= tols * (1.0 + 1e-9) + 1e-24 * size2).all()
    # the worst member for each factor, by one answer in the direction that is worst for it
    for d in (found.y - y, *rng.standard_normal((6, *K.shape))):
        z, room = K.lmo(-d), 1e-12 * size2 + 2.0 * K.answer(-d).error
        assert (squares(K, found.y - z) <= squares(K, y - z) + room).all()
    for moved in (found.y, found.x):
        assert moved.shape == K.shape
    assert (squares(K, found.y - K.center) <= squares(K, y - K.center) + 1e-12 * size2).all()
    assert closer_to_center(K, y, found.y) <= 1e-9 * math.sqrt(size2)


@every_set
@settings(max_examples=10)
@given(seed=seeds)
def test_calls_are_those_of_the_slowest_factor(K, seed):
    rng, share = np.random.default_rng(seed), 1e-2
    tol, most = share * (K.radius**2 or 1.0), 8.0 / share + 4.0
    assert FactoredActiveSet.start(K).nearest(K, a_target(K, rng), tol, most + 1).calls <= most


def test_small_factors_are_as_near_as_large_ones_in_their_own_size():
    """With one tolerance for all a factor a thousand times smaller would not move at all."""
    K = Product(Simplex(2, total=1000.0), Simplex(2))
    tol, y = 1e-3 * K.radius**2, K.center + np.array([0.0, 0.0, 3.0, -3.0])
    one = ActiveSet.start(K).nearest(K, y, tol, 50)
    own = FactoredActiveSet.start(K).nearest(K, y, tol, 50)
    np.testing.assert_array_equal(one.x[2:], K.center[2:])
    np.testing.assert_allclose(own.x[2:], [1.0, 0.0], atol=0.05)


def test_a_call_answers_for_all_factors():
    """Forty simplices at once need hardly more calls than one; as one they need many."""
    K, rng = Product(*[Simplex(5)] * 40), np.random.default_rng(0)
    tol, y, calls = 1e-3 * K.radius**2, K.center, np.zeros(2)
    own, one = FactoredActiveSet.start(K), ActiveSet.start(K)
    for _ in range(12):
        y = y + 0.2 * K.tangent(rng.standard_normal(K.shape))
        found, other = own.nearest(K, y, tol, 500), one.nearest(K, y, tol, 500)
        own, one, y = found.active, other.active, found.y
        calls += found.calls, other.calls
        assert own.nearest(K, found.y, tol, 500).calls == 0
    assert calls[0] <= 12 * 3
    assert calls[1] > 4 * calls[0]


def test_an_answer_of_the_other_factors_is_none_of_a_closed_one():
    """Who is done asks in the direction 0, gets no row and keeps its point."""
    K = Product(Simplex(3), Simplex(3))
    y = K.center + np.array([0.0, 0.0, 0.0, 5.0, 0.0, 0.0])
    found = FactoredActiveSet.start(K).nearest(K, y, 1e-6, 50)
    assert found.calls > 0
    np.testing.assert_array_equal(found.x[:3], K.center[:3])
    np.testing.assert_array_equal(found.y[:3], y[:3])
    assert (found.active.atoms.owners[: len(found.active.weights)] == 0).sum() == 1


def test_an_oracle_that_does_not_minimise_is_refused_and_one_that_says_so_is_not(monkeypatch):
    K = Product(Simplex(3), Simplex(3))
    y, right = K.center + np.array([2.0, -1.0, -1.0, 2.0, -1.0, -1.0]), Product.answer

    def wrong(error):
        def answer(self, direction, warm=None):
            worse = direction.copy()
            worse[:3] *= -1.0
            return oracle.Answer(right(self, worse).vertex, error)

        return answer

    active = FactoredActiveSet.start(K)
    monkeypatch.setattr(type(K), "answer", wrong(0.0))
    with pytest.raises(errors.OracleError, match="does not minimise"):
        active.nearest(K, y, 1e-6, 9)
    monkeypatch.setattr(type(K), "answer", wrong(100.0))
    found = active.nearest(K, y, 1e-6, 9)  # nothing is proved, so y stays
    np.testing.assert_array_equal(found.y, y)
    assert found.calls == 9


def naive_projection(K, y, tol, budget):
    """The same with dense vertices and one factor after the other."""
    slices = [slice(a, b) for a, b in pairwise(places_of(K))]
    R2, y, x, calls = K.factors.radii**2, y.copy(), K.center.copy(), 0
    tols, atoms = tol * R2 / R2.sum(), [[x[s].copy()] for s in slices]
    weights, stages = [[1.0] for _ in slices], ["open" for _ in slices]

    def corrected(b):
        A, w, s = np.array(atoms[b]), np.array(weights[b]), slices[b]
        slopes = A @ (w @ A - y[s])
        taken = (w > 0.0) | (slopes < w @ slopes)
        for _ in range(search.CORRECTIVE_STEPS):
            slopes = A @ (w @ A - y[s])
            i = int(np.argmin(np.where(taken, slopes, np.inf)))
            j = int(np.argmax(np.where(w > 0.0, slopes, -np.inf)))
            gap = slopes[j] - slopes[i]
            if gap <= search.CORRECTIVE_GAP * tols[b]:
                break
            step = min(w[j], gap / ((A[i] - A[j]) ** 2).sum())
            w[j] -= step
            w[i] += step
        w = np.where(w > DROP, w, 0.0)
        weights[b] = list(w / w.sum())
        x[s] = np.array(weights[b]) @ A

    while True:
        for b, s in enumerate(slices):
            if stages[b] != "closed":
                corrected(b)
                near = ((x[s] - y[s]) ** 2).sum() <= tols[b]
                stages[b] = "closed" if near or stages[b] == "ending" else "open"
        if all(stage == "closed" for stage in stages) or calls >= budget:
            return x, y, calls
        r = x - y
        for b, s in enumerate(slices):
            r[s] *= stages[b] == "open"
        v, calls = K.lmo(r), calls + 1
        for b, s in enumerate(slices):
            if stages[b] != "open":
                continue
            d2, gap, shift = (r[s] ** 2).sum(), max(0.0, r[s] @ (x[s] - v[s])), 0.0
            if gap**2 <= tols[b] * d2 or calls >= budget:
                stages[b], shift = "ending", max(0.0, 1.0 - gap / d2)
            y[s] += shift * r[s]
            length2 = ((x[s] - v[s]) ** 2).sum()
            step = min(1.0, (1.0 - shift) * gap / length2) if length2 > 0 else 0.0
            weights[b] = [(1.0 - step) * w for w in weights[b]]
            same = [k for k, a in enumerate(atoms[b]) if (a == v[s]).all()]
            if same:
                weights[b][same[0]] += step
            else:
                atoms[b].append(v[s].copy())
                weights[b].append(step)


@pytest.mark.parametrize("name", ["simplices", "of all sizes", "flows", "boxes and more"])
@settings(max_examples=15)
@given(seed=seeds, budget=st.sampled_from([0, 1, 4, 100]))
def test_the_kernels_do_what_the_naive_projection_does(name, seed, budget):
    K, rng = SETS[name], np.random.default_rng(seed)
    y = a_target(K, rng)
    found = FactoredActiveSet.start(K).nearest(K, y, 1e-2 * K.radius**2, budget)
    x, y, calls = naive_projection(K, y, 1e-2 * K.radius**2, budget)
    # rounding may choose among equal atoms: both are near enough, and mostly the same
    assert abs(found.calls - calls) <= 1
    if found.calls == calls:
        np.testing.assert_allclose(found.y, y, atol=0.3 * K.radius)
    assert (squares(K, found.x - x) <= 0.3 * K.factors.radii**2 + 1e-18).all()


@every_set
def test_memory_is_flat_and_rows_in_use_are_few(K):
    rng, active, longest = np.random.default_rng(1), FactoredActiveSet.start(K), 0
    entries = np.diff(places_of(K))
    for _ in range(150):
        active = active.nearest(K, a_target(K, rng), 1e-5 * K.radius**2 or 1e-5, 4).active
        used = np.flatnonzero(active.weights)
        assert (np.bincount(active.atoms.owners[used]) <= entries + 1 + SPARE_IN_FACTOR).all()
        assert len(active.weights) <= 2 * len(used) + IDLE
        longest = max(longest, len(active.atoms))
    assert longest <= 2 * (entries + 1 + SPARE_IN_FACTOR).sum() + IDLE + K.dimension
    require_sound(active, K)


def test_states_that_share_a_table_do_not_see_one_another():
    K, rng = SETS["simplices"], np.random.default_rng(5)
    active, tol = a_walk(K, rng, 1), 1e-4 * K.radius**2
    targets = [a_target(K, rng) for _ in range(4)]
    alone = [copy.deepcopy(active).nearest(K, y, tol, 9) for y in targets]
    for y, expected in zip(targets, alone, strict=True):
        found = active.nearest(K, y, tol, 9)
        np.testing.assert_array_equal(found.x, expected.x)
        np.testing.assert_array_equal(found.y, expected.y)
        require_sound(found.active, K)
    require_sound(active, K)


@pytest.mark.parametrize("K", EXACT.values(), ids=EXACT)
def test_exact_points_are_projections_without_an_oracle(K, monkeypatch):
    monkeypatch.setattr(type(K), "answer", None)
    active, rng = active_sets.start_active(K), np.random.default_rng(0)
    assert isinstance(active, ExactPoint)
    y = K.center + 3.0 * rng.standard_normal(K.shape)
    found = active.nearest(K, y, 1e-3, 0)
    np.testing.assert_array_equal(found.x, K.project(y))
    assert found.x is found.y
    assert (found.calls, found.distance2) == (0, 0.0)
    ExactPoint.restored(found.active.parts()).require_of(K)
    assert not copy.copy(found.active).x.flags.writeable


def test_where_projections_take_a_product_as_one():
    K = Product(Simplex(3), Simplex(2))
    for one in (Simplex(3), Product(Simplex(3)), Product(L2Ball(5000), Simplex(2))):
        assert active_sets.factors_of(one) is None
    assert active_sets.factors_of(Product(sets.SpanningTrees.examples()[0], Simplex(3))) is None
    assert active_sets.factors_of(K.to(np.zeros(1, dtype=np.float32))) is None
    assert active_sets.factors_of(K) is not None
    assert active_sets.factors_of(Product(Simplex(5000), Simplex(2))) is not None
    assert isinstance(active_sets.start_active(Simplex(3)), ActiveSet)


def test_a_start_is_a_member():
    K, x0 = Product(Simplex(2), Simplex(2)), np.array([1.0, 0.0, 0.25, 0.75])
    for start in (FactoredActiveSet.start, active_sets.start_active):
        np.testing.assert_array_equal(start(K, x0).x, x0)
        with pytest.raises(errors.NotAMember):
            start(K, np.ones(4))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("owners", lambda a: a[1:]),
        ("starts", lambda a: a[1:]),
        ("indices", lambda a: a + np.int32(1000)),
        ("indices", lambda a: a - np.int32(1)),
        ("indices", lambda a: a.astype(np.int64)),
        ("values", lambda a: a[:-1]),
        ("values", lambda a: np.full_like(a, np.nan)),
        ("weights", lambda a: a[1:]),
        ("weights", lambda a: a * np.nan),
        ("x", lambda a: a[1:]),
        ("places", lambda a: a + 1),
        ("places", lambda a: np.zeros_like(a)),
    ],
)
def test_broken_parts_are_refused(name, change):
    K = SETS["simplices"]
    parts = dict(a_walk(K, np.random.default_rng(2), 2).parts())
    parts[name] = change(np.array(parts[name]))
    with pytest.raises(ValueError, match=r"\w"):
        FactoredActiveSet.restored(parts).require_of(K)


def test_an_active_set_of_another_product_is_refused():
    active = a_walk(SETS["simplices"], np.random.default_rng(2), 1)
    for K in (Product(Simplex(1), Simplex(3), Simplex(2), Simplex(4)), Simplex(10)):
        with pytest.raises(ValueError, match=r"other factors|no member"):
            active.require_of(K)
