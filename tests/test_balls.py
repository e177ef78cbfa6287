"""Balls, knapsacks and what is made of other sets: enumerated vertices and facets, slow twins, sets
that are one another, sentences.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import refused
from tidewolf.core.errors import (
    EmptySet,
    InvalidInput,
    NotFinite,
    NotSupported,
    WrongShape,
    WrongType,
)
from tidewolf.core.vertices import Joined
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.sets import (
    BoundedPSD,
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    GroupBall,
    Knapsack,
    KNormBall,
    KSparse,
    L1Ball,
    L2Ball,
    LpBall,
    OrderedWeightedBall,
    Polyhedral,
    Product,
    Projectable,
    Relaxable,
    Scaled,
    Simplex,
    Translated,
    VertexHull,
)
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)
Rng = np.random.Generator


# --- random small sets ----------------------------------------------------------------------------


def l1(rng: Rng) -> L1Ball:
    return L1Ball(int(rng.integers(1, 5)), rng.choice([0.1, 1.0, 30.0]))


def k_sparse(rng: Rng) -> KSparse:
    n = int(rng.integers(1, 5))
    return KSparse(n, int(rng.integers(1, n + 1)), rng.choice([0.1, 1.0, 30.0]))


def k_norm(rng: Rng) -> KNormBall:
    n = int(rng.integers(1, 5))
    return KNormBall(n, int(rng.integers(1, n + 1)), rng.choice([0.1, 1.0, 30.0]))


def ordered(rng: Rng) -> OrderedWeightedBall:
    weights = np.sort(rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], int(rng.integers(1, 5))))[::-1]
    return OrderedWeightedBall(
        np.maximum(weights, [0.25, *weights[1:]]), rng.choice([0.1, 1.0, 30.0])
    )


def knapsack(rng: Rng, at_most: bool = True) -> Knapsack:
    n = int(rng.integers(1, 6))
    weights, upper = rng.choice([0.1, 1.0, 1.0, 2.0, 7.0], n), rng.choice([0.5, 1.0, 1.0, 4.0], n)
    return Knapsack(
        weights,
        rng.choice([0.05, 0.3, 0.5, 0.8, 1.0, 1.0 if not at_most else 3.0])
        * float(weights @ upper),
        upper,
        at_most,
    )


def full_knapsack(rng: Rng) -> Knapsack:
    return knapsack(rng, at_most=False)


def scaled(rng: Rng) -> Scaled:
    return Scaled(full_knapsack(rng), rng.choice([0.1, 5.0]))


def product(rng: Rng) -> Product:
    kinds = [l1, k_sparse, full_knapsack]
    parts = [kinds[i](rng) for i in rng.permutation(3)[:2]]
    return Product(
        *(part for part in parts if part.shape[0] <= 3), Translated(Simplex(2), [1.0, -3.0])
    )


def lp(rng: Rng) -> LpBall:
    return LpBall(
        int(rng.integers(1, 6)),
        rng.choice([1.0, 1.001, 1.5, 2.0, 4.0, 300.0, math.inf]),
        rng.choice([0.1, 1.0, 30.0]),
    )


def ellipsoid(rng: Rng) -> Ellipsoid:
    n = int(rng.integers(1, 5))
    root = rng.standard_normal((n, n))
    return Ellipsoid(root @ root.T + rng.choice([0.01, 1.0]) * np.eye(n), rng.standard_normal(n))


def diagonal(rng: Rng) -> Ellipsoid:
    return Ellipsoid(10.0 ** rng.integers(-3, 3, int(rng.integers(1, 5))))


def group(rng: Rng) -> GroupBall:
    groups = rng.integers(-1, 2, int(rng.integers(1, 6)))
    return GroupBall(
        groups,
        rng.choice([0.1, 1.0, 30.0]),
        rng.choice([0.2, 1.0, 1.0, 3.0], len(np.unique(groups))),
    )


POLYTOPES = [l1, k_sparse, k_norm, ordered, knapsack, full_knapsack, scaled, product]
EVERY = [*POLYTOPES, lp, ellipsoid, diagonal, group]
each_polytope = pytest.mark.parametrize("make", POLYTOPES, ids=lambda make: make.__name__)
each = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)


@pytest.mark.soak_examples(4)
@each
@given(seed=seeds)
@settings(max_examples=2)
def test_random_instances_keep_every_law(make: Callable[[Rng], ConvexSet], seed):
    check_set(make(np.random.default_rng(seed)), seed=seed)


# --- enumerated vertices and facets ---------------------------------------------------------------


def corners(K: ConvexSet) -> np.ndarray:
    """Every vertex (and perhaps other members), one a row, by enumeration."""
    n = math.prod(K.shape)
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    supports = {
        k: [np.isin(np.arange(n), chosen) for chosen in itertools.combinations(range(n), k)]
        for k in range(n + 1)
    }
    if isinstance(K, L1Ball):
        return K.tau * np.vstack([np.eye(n), -np.eye(n)])
    if isinstance(K, KSparse):
        return K.tau * np.vstack([signs * support for support in supports[K.k]])
    if isinstance(K, KNormBall):
        return np.vstack([K.tau * np.eye(n), -K.tau * np.eye(n), K.tau / K.k * signs])
    if isinstance(K, OrderedWeightedBall):
        sums = np.cumsum(K.weights)
        return np.vstack(
            [
                K.tau / sums[k - 1] * signs * support
                for k in range(1, n + 1)
                for support in supports[k]
            ]
        )
    if isinstance(K, Knapsack):
        return knapsack_corners(K)
    if isinstance(K, Scaled):
        return K.factor * corners(K.K)
    if isinstance(K, Translated):
        return corners(K.K) + K.shift
    if isinstance(K, Product):
        return np.array(
            [np.concatenate(chosen) for chosen in itertools.product(*map(corners, K.parts))]
        )
    assert isinstance(K, Simplex)
    return K.total * np.eye(n)


def knapsack_corners(K: Knapsack) -> np.ndarray:
    """All bounds but for one entry, which the total decides; with at_most all that fit besides."""
    full = np.array(list(itertools.product(*((0.0, bound) for bound in K.upper))))
    points = (
        list(full)
        if K.at_most
        else [x for x in full if abs(x @ K.weights - K.total) <= 1e-12 * K.total]
    )
    for x, i in itertools.product(full, range(len(K.weights))):
        rest = x.copy()
        rest[i] = 0.0
        rest[i] = (K.total - rest @ K.weights) / K.weights[i]
        if -1e-12 <= rest[i] <= K.upper[i] * (1 + 1e-12):
            points.append(rest)
    return np.array([x for x in points if x @ K.weights <= K.total * (1 + 1e-12)])


def inside_by_facets(points: np.ndarray, center: np.ndarray) -> float:
    """The distance from the center to the nearest facet of a hull, within its affine hull."""
    from scipy.spatial import ConvexHull

    spokes = points - center
    _, sizes, rows = np.linalg.svd(spokes)
    rank = int(np.sum(sizes > 1e-9 * sizes[0])) if sizes[0] > 0 else 0
    along = spokes @ rows[:rank].T
    if rank == 0:
        return 0.0
    if rank == 1:
        return float(min(along.max(), -along.min()))
    return float(-ConvexHull(along).equations[:, -1].max())


@pytest.mark.soak_examples(30)
@each_polytope
@given(seed=seeds)
@settings(max_examples=10)
def test_oracle_and_geometry_are_those_of_the_enumerated_vertices(make, seed):
    rng = np.random.default_rng(seed)
    K = make(rng)
    points, size = corners(K), K.radius or 1.0
    for d in [
        *rng.standard_normal((5, *K.shape)),
        *rng.integers(-1, 2, (5, *K.shape)).astype(float),
    ]:
        v = K.lmo(d)
        assert d @ v == pytest.approx(
            float((points @ d).min()), abs=1e-12 * size * max(1.0, np.linalg.norm(d))
        )
        assert np.abs(points - v).max(axis=1).min() <= 1e-12 * size, "the answer is no vertex"
    farthest = np.linalg.norm(points - K.center, axis=1).max()
    widest = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    room = 1e-12 * (size + np.linalg.norm(K.center))
    assert farthest <= K.radius + room
    assert widest <= K.diameter + room
    if not any(
        isinstance(part, Knapsack) for part in (K, getattr(K, "K", None), *getattr(K, "parts", ()))
    ):
        assert K.radius == pytest.approx(farthest, abs=room)
        assert K.diameter == pytest.approx(widest, abs=room)
    assert K.dimension == np.linalg.matrix_rank(points - points[0], tol=1e-9 * size)
    assert (K.inner_radius > 0) == (K.dimension > 0)
    assert K.inner_radius == pytest.approx(inside_by_facets(points, K.center), rel=1e-9, abs=room)


@given(seed=seeds)
def test_the_sizes_of_round_sets_are_attained(seed):
    rng = np.random.default_rng(seed)
    for K in (lp(rng), ellipsoid(rng), diagonal(rng), group(rng)):
        n = K.shape[0]
        far, near = 0.0, math.inf
        if isinstance(K, LpBall):
            units = [np.eye(n)[0], np.ones(n) / math.sqrt(n)]
        elif isinstance(K, GroupBall):
            firsts = np.array([np.flatnonzero(K.groups == g)[0] for g in np.unique(K.groups)])
            spread = np.zeros(n)
            spread[firsts] = K.weights / np.linalg.norm(K.weights)
            units = [*np.eye(n), spread]
        else:
            A = np.diag(K.matrix) if K.matrix.ndim == 1 else K.matrix
            units = list(np.linalg.eigh(A)[1].T)
        for u in units:
            step = boundary(K, u)
            far, near = max(far, step), min(near, step)
        assert K.radius == pytest.approx(far, rel=1e-9)
        assert K.inner_radius == pytest.approx(near, rel=1e-9)
        assert K.diameter == 2 * K.radius


def boundary(K: ConvexSet, u: np.ndarray) -> float:
    """How far from the center the set reaches along u, by bisection over its excess."""
    low, high = 0.0, 2 * K.radius
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if K.infeasibility(K.center + middle * u) == 0.0 else (low, middle)
        )
    return low


# --- projections beside slow twins ----------------------------------------------------------------


@pytest.mark.soak_examples(15)
@each_polytope
@given(seed=seeds, far=st.sampled_from([0.3, 1.0, 3.0, 30.0]))
@settings(max_examples=6)
def test_the_projection_on_a_polytope_is_that_of_a_quadratic_program(make, seed, far):
    rng = np.random.default_rng(seed)
    K = make(rng)
    size = K.radius or 1.0
    unit = Scaled(K, 1 / size)  # the solver is accurate in absolute numbers
    y = unit.center + far * (
        rng.standard_normal(K.shape) if seed % 2 else rng.integers(-1, 2, K.shape)
    )
    hull = VertexHull(corners(K) / size)
    program = ExactProjection(unit if isinstance(K, Polyhedral) else hull)._quadratic_program(y)
    np.testing.assert_allclose(unit.project(y), program, atol=1e-5 * max(1.0, far))
    assert np.linalg.norm(unit.project(y) - y) <= np.linalg.norm(program - y) + 1e-9 * max(1.0, far)


@pytest.mark.soak_examples(20)
@each
@given(seed=seeds, far=st.sampled_from([1e4, 1e8, 1e12, 1e16, 1e20, 1e150]))
@settings(max_examples=8)
def test_a_projection_from_far_away_is_a_member_and_nearest(make, seed, far):
    rng = np.random.default_rng(seed)
    K = make(rng)
    if isinstance(K, Projectable):
        y = far * (
            rng.standard_normal(K.shape) if seed % 2 else rng.integers(-2, 3, K.shape).astype(float)
        )
        x = K.project(y)
        assert K.infeasibility(x) <= 1e-12 * max(K.radius, np.abs(x).max())
        gap = float((y / far - x / far) @ (K.lmo(x / far - y / far) - x))
        assert gap <= 1e-11 * max(K.radius, np.abs(x).max()) * max(1.0, np.linalg.norm(y / far))


# --- sets that are one another --------------------------------------------------------------------


REFERENCES = [
    (L1Ball(4, 2.0), KSparse(4, 1, 2.0)),
    (L1Ball(4, 2.0), KNormBall(4, 4, 2.0)),
    (L1Ball(4, 2.0), LpBall(4, 1.0, 2.0)),
    (L1Ball(4, 2.0), GroupBall(range(4), 2.0)),
    (L1Ball(4, 2.0), OrderedWeightedBall(np.ones(4), 2.0)),
    (Box(np.full(4, -2.0), np.full(4, 2.0)), KSparse(4, 4, 2.0)),
    (Box(np.full(4, -2.0), np.full(4, 2.0)), KNormBall(4, 1, 2.0)),
    (Box(np.full(4, -2.0), np.full(4, 2.0)), LpBall(4, math.inf, 2.0)),
    (KNormBall(5, 2, 3.0), OrderedWeightedBall([1.0, 1.0, 0.0, 0.0, 0.0], 3.0)),
    (L2Ball(3, 2.0), LpBall(3, 2.0, 2.0)),
    (L2Ball(3, 2.0), GroupBall([5, 5, 5], 2.0)),
    (L2Ball(3, 2.0), Ellipsoid(np.full(3, 0.25))),
    (L2Ball(3, 2.0), Ellipsoid(0.25 * np.eye(3))),
    (L2Ball(3, 2.0), Scaled(L2Ball(3), 2.0)),
    (L2Ball(2, center=[0.0, 2.0]), Ellipsoid(np.ones(2), [0.0, 2.0])),
    (Box(np.zeros(3), np.ones(3)), Knapsack(np.ones(3), 9.0)),
    (Simplex(4, 2.0), Knapsack(np.full(4, 0.5), 1.0, 7.0, at_most=False)),
    (CappedSimplex(5, 1.0, 2.0), Knapsack(np.ones(5), 2.0, at_most=False)),
    (CappedSimplex(5, 1.0, 4.0), Knapsack(np.ones(5), 4.0, at_most=False)),
    (CappedSimplex(6, 0.5, 3.0), Knapsack(np.ones(6), 3.0, 0.5, at_most=False)),
    (
        Box([0.0, -1.0, 2.0], [1.0, 1.0, 2.0]),
        Product(Box([0.0], [1.0]), Box([-1.0, 2.0], [1.0, 2.0])),
    ),
    (CappedSimplex(4, 0.5), Product(CappedSimplex(4, 0.5))),
    (Simplex(3, 6.0), Scaled(Simplex(3, 2.0), 3.0)),
]


@pytest.mark.parametrize(("K", "reference"), REFERENCES, ids=lambda K: type(K).__name__)
@given(seed=seeds)
@settings(max_examples=8)
def test_two_names_of_one_set_agree(K, reference, seed):
    rng = np.random.default_rng(seed)
    for name in ("shape", "dimension", "diameter", "radius", "inner_radius"):
        assert getattr(K, name) == pytest.approx(getattr(reference, name), rel=1e-12), name
    np.testing.assert_allclose(K.center, reference.center)
    for d in [
        *rng.standard_normal((4, *K.shape)),
        *rng.integers(-1, 2, (4, *K.shape)).astype(float),
    ]:
        assert d @ K.lmo(d) == pytest.approx(d @ reference.lmo(d), abs=1e-12)
        np.testing.assert_allclose(K.tangent(d), reference.tangent(d), atol=1e-12)
        y = 3 * d
        assert (K.infeasibility(y) > 1e-12) == (reference.infeasibility(y) > 1e-12)
        if isinstance(K, Projectable) and isinstance(reference, Projectable):
            np.testing.assert_allclose(K.project(y), reference.project(y), atol=1e-12)


@given(seed=seeds, n=st.integers(300, 900), at_most=st.booleans(), ties=st.booleans())
def test_halving_fills_a_large_knapsack_as_sorting_does(seed, n, at_most, ties):
    rng = np.random.default_rng(seed)
    weights, upper = rng.choice([1.0, 2.0, 3.0], n), rng.choice([1.0, 2.0], n)
    total = float(rng.choice([0.01, 0.3, 0.5, 0.99]) * (weights @ upper))
    d = rng.integers(-2, 3, n).astype(float) if ties else rng.standard_normal(n)
    x, left = np.zeros(n), total
    for i in np.argsort(d / weights, kind="stable"):
        if d[i] < 0 or not at_most:
            x[i] = min(upper[i], left / weights[i])
            left -= weights[i] * x[i]
    np.testing.assert_allclose(Knapsack(weights, total, upper, at_most).lmo(d), x, atol=1e-9)


# --- ties, zeros, scales --------------------------------------------------------------------------


def test_ties_go_to_the_earlier_entry():
    np.testing.assert_array_equal(L1Ball(3).lmo(np.array([1.0, -1.0, 1.0])), [-1.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        KSparse(4, 2).lmo(np.array([1.0, -1.0, 2.0, 1.0])), [-1.0, 0.0, -1.0, 0.0]
    )
    np.testing.assert_array_equal(
        KNormBall(4, 2, 2.0).lmo(np.array([0.0, 1.0, 1.0, 0.0])), [0.0, -2.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(
        OrderedWeightedBall([1.0, 1.0, 1.0]).lmo(np.array([-1.0, 1.0, 1.0])), [1.0, 0.0, 0.0]
    )
    np.testing.assert_array_equal(
        GroupBall([1, 0, 0]).lmo(np.array([5.0, 3.0, 4.0])), [0.0, -0.6, -0.8]
    )
    np.testing.assert_array_equal(Knapsack(np.ones(4), 2.5).lmo(-np.ones(4)), [1.0, 1.0, 0.5, 0.0])


# --- products and scaled sets ---------------------------------------------------------------------


def test_a_product_keeps_the_warm_start_of_each_part():
    matrices = BoundedPSD(6, dense=0)
    K, rng = Product(Simplex(2), matrices, L2Ball(1)), np.random.default_rng(0)
    d = rng.standard_normal(K.shape)
    parts = K.split(d)
    alone, whole = matrices.answer(parts[1]), K.answer(d)
    assert whole.warm[0] is whole.warm[2] is None
    np.testing.assert_array_equal(whole.warm[1], alone.warm)
    assert whole.error == alone.error
    again = K.answer(d, whole.warm)
    np.testing.assert_array_equal(again.warm[1], matrices.answer(parts[1], alone.warm).warm)
    assert isinstance(again.vertex, Joined)
    assert K.atom(K.center).key() != again.vertex.key()
    assert Product(Simplex(2), L2Ball(2)).answer(np.ones(4)).warm is None


def test_a_product_takes_points_apart_and_together():
    K = Product(Simplex(2), BoundedPSD(2), Box(np.zeros((1, 3)), np.ones((1, 3))))
    x = np.arange(9.0)
    parts = K.split(x)
    assert [part.shape for part in parts] == [(2,), (2, 2), (1, 3)]
    np.testing.assert_array_equal(K.join(*parts), x)
    with pytest.raises(WrongShape):
        K.join(x)
    with pytest.raises(WrongShape):
        K.join(np.ones(2), np.ones(3), np.ones((1, 3)))


@pytest.mark.parametrize(
    ("K", "projects", "describes", "relaxes"),
    [
        (Product(Simplex(2), Box([0.0], [1.0])), True, True, True),
        (Product(Simplex(2), L2Ball(2)), True, False, True),
        (Product(VertexHull(np.eye(2)), Scaled(Simplex(2), 2.0)), False, True, True),
        (Product(BoundedPSD(2), BoundedPSD(1)), True, False, isinstance(BoundedPSD(2), Relaxable)),
        (Product(LpBall(2, 3.0), VertexHull(np.eye(2))), False, False, True),
        (Scaled(L1Ball(2), 3.0), True, True, True),
        (Scaled(LpBall(2, 3.0), 3.0), False, False, True),
    ],
)
def test_isinstance_tells_what_a_product_can_do(K, projects, describes, relaxes):
    assert (isinstance(K, Projectable), isinstance(K, Polyhedral), isinstance(K, Relaxable)) == (
        projects,
        describes,
        relaxes,
    )
    assert pickle.loads(pickle.dumps(K)) == K
    assert type(K) is type(pickle.loads(pickle.dumps(K)))
    x = np.zeros(K.shape)
    if not projects:
        with pytest.raises(NotSupported):
            K.project(x)
    if not describes:
        with pytest.raises(NotSupported):
            K.description()
    if not relaxes:
        with pytest.raises(NotSupported):
            K.relax(x)


# --- other libraries ------------------------------------------------------------------------------


def test_groups_of_a_table_are_whole_numbers_too():
    assert GroupBall(np.array([0.0, 0.0, 2.0])) == GroupBall([0, 0, 2])


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "setting"),
    [
        (lambda: L1Ball(0), InvalidInput, "n"),
        (lambda: L1Ball(()), WrongShape, "n"),
        (lambda: L1Ball(2, 0.0), InvalidInput, "tau"),
        (lambda: L1Ball(2, math.inf), NotFinite, "tau"),
        (lambda: LpBall(2, 0.5), InvalidInput, "p"),
        (lambda: LpBall(2, math.nan), NotFinite, "p"),
        (lambda: LpBall(2, "two"), WrongType, "p"),
        (lambda: LpBall(2, 2.0, -1.0), InvalidInput, "tau"),
        (lambda: KSparse(3, 4), InvalidInput, "k"),
        (lambda: KSparse(3, 0), InvalidInput, "k"),
        (lambda: KSparse(3, 1.5), InvalidInput, "k"),
        (lambda: KSparse(3, 1, math.nan), NotFinite, "tau"),
        (lambda: KNormBall((2, 2), 5), InvalidInput, "k"),
        (lambda: KNormBall(3, 1, 0.0), InvalidInput, "tau"),
        (lambda: OrderedWeightedBall([1.0, 2.0]), InvalidInput, "weights"),
        (lambda: OrderedWeightedBall([1.0, -1.0]), InvalidInput, "weights"),
        (lambda: OrderedWeightedBall([0.0, 0.0]), InvalidInput, "weights"),
        (lambda: OrderedWeightedBall([[1.0]]), WrongShape, "weights"),
        (lambda: OrderedWeightedBall([]), WrongShape, "weights"),
        (lambda: OrderedWeightedBall([1.0, math.nan]), NotFinite, "weights"),
        (lambda: OrderedWeightedBall([1.0], -1.0), InvalidInput, "tau"),
        (lambda: GroupBall([0.5, 1.0]), WrongType, "groups"),
        (lambda: GroupBall(3), WrongShape, "groups"),
        (lambda: GroupBall([0, 1], 1.0, [1.0]), WrongShape, "weights"),
        (lambda: GroupBall([0, 1], 1.0, [1.0, 0.0]), InvalidInput, "weights"),
        (lambda: GroupBall([0, 1], 0.0), InvalidInput, "tau"),
        (lambda: Ellipsoid([[1.0, 2.0], [2.0, 1.0]]), InvalidInput, "matrix"),
        (lambda: Ellipsoid([1.0, 0.0]), InvalidInput, "matrix"),
        (lambda: Ellipsoid([-1.0]), InvalidInput, "matrix"),
        (lambda: Ellipsoid([[1.0, 0.5], [0.0, 1.0]]), InvalidInput, "matrix"),
        (lambda: Ellipsoid(np.ones((2, 3))), WrongShape, "matrix"),
        (lambda: Ellipsoid(2.0), WrongShape, "matrix"),
        (lambda: Ellipsoid([1.0], [1.0, 2.0]), WrongShape, "center"),
        (lambda: Ellipsoid([math.inf]), NotFinite, "matrix"),
        (lambda: Knapsack([1.0, 2.0], 4.0, at_most=False), EmptySet, "total"),
        (lambda: Knapsack([1.0, 2.0], 0.0), InvalidInput, "total"),
        (lambda: Knapsack([1.0, 0.0], 1.0), InvalidInput, "weights"),
        (lambda: Knapsack([1.0], 1.0, -1.0), InvalidInput, "upper"),
        (lambda: Knapsack([1.0], 1.0, [1.0, 1.0]), WrongShape, "upper"),
        (lambda: Knapsack(1.0, 1.0), WrongShape, "weights"),
        (lambda: Knapsack([1.0], math.nan), NotFinite, "total"),
        (lambda: Product(), EmptySet, "parts"),
        (lambda: Product(Simplex(2), "box"), WrongType, "parts"),
        (lambda: Scaled(Simplex(2), 0.0), InvalidInput, "factor"),
        (lambda: Scaled(Simplex(2), math.inf), NotFinite, "factor"),
        (lambda: Scaled(3, 1.0), WrongType, "K"),
    ],
)
def test_what_cannot_be_a_set_is_refused_with_a_sentence(make, error, setting):
    with refused(error, setting):
        make()
