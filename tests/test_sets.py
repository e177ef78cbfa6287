"""Sets: the checks of `tidewolf.testing` on every example and on random ones, all vertices by brute
force, sets that are one another, capabilities, and what is refused.
"""

import itertools
import math
import pickle

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from covering import few, thinned
from polytopes import MAKERS, ROUND, paths_of, random_edges, vertices_of
from refused import refused
from test_testing import Shares
from tidewolf import sets, testing
from tidewolf.core import errors, vertices
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.sets import FlowPolytope
from tidewolf.sets.graph_tools import away, count_paths, leading_away, shortest, useful

EXAMPLES = [
    pytest.param(K, id=f"{kind.__name__}-{i}", marks=pytest.mark.soak if i > 1 else ())
    for kind in sets.every()
    for i, K in enumerate(kind.examples())
]
FIRST = {kind.__name__: kind.examples()[0] for kind in sets.every()}
seeds = st.integers(0, 2**32)


def of(*makers):
    return pytest.mark.parametrize("kind", [kind for each in makers for kind in each])


def made(kind, rng):
    return (MAKERS | ROUND)[kind](rng)


# --- the checks, on everything exported -----------------------------------------------------------


@pytest.mark.parametrize("seeds", few(1, [range(1), range(1, 40)]))
@pytest.mark.parametrize("K", EXAMPLES)
def test_every_example_passes_every_check(K, seeds):
    for seed in seeds:
        testing.check_set(K, seed=seed)


@pytest.mark.soak_examples(4)
@of(MAKERS, ROUND)
@given(seed=seeds)
@settings(max_examples=1)
def test_random_sets_pass_every_check(kind, seed):
    testing.check_set(made(kind, np.random.default_rng(seed)), seed=seed)


@thinned(5, K=FIRST, reference={"float32": np.zeros(1, np.float32), "strict": strict.zeros(1)})
def test_the_checks_pass_in_other_libraries_and_dtypes(K, reference):
    moved = K.to(reference)
    assert type(moved.center) is type(reference)
    assert moved.center.dtype == reference.dtype
    testing.check_set(moved)


@pytest.mark.parametrize("K", FIRST.values(), ids=FIRST)
def test_a_numpy_set_answers_in_the_library_of_the_direction(K):
    d = strict.asarray(np.random.default_rng(1).standard_normal(K.shape), dtype=strict.float32)
    points = [K.lmo(d), K.tangent(d), *([K.project(d)] if isinstance(K, sets.Projectable) else [])]
    assert {(type(point), point.dtype) for point in points} == {(type(d), d.dtype)}
    assert K.infeasibility(K.lmo(d)) < 1e-3
    assert K.lmo(strict.ones(K.shape, dtype=strict.int64)).dtype == strict.float64


# --- every vertex ---------------------------------------------------------------------------------

BOUNDED = {"knapsack", "full knapsack", "scaled", "product", "transportation", "capacitated flow"}
BOUNDED |= {"polytope"}
"""Kinds whose radius is an upper bound; those whose diameter is one, too:"""
WIDER = BOUNDED | {"trees", "flow", "multi flow"}


def directions(rng, shape):
    """Random, tied, zero, huge, tiny, and of mixed size."""
    d, ties = rng.standard_normal(shape), rng.integers(-1, 2, shape).astype(float)
    mixed = d * 10.0 ** rng.integers(-12, 12, shape)
    return [d, ties, np.zeros(shape), np.ones(shape), 1e150 * d, 1e-150 * d, mixed]


@pytest.mark.soak_examples(40)
@of(MAKERS)
@given(seed=seeds)
@settings(max_examples=3)
@example(seed=263)  # two solves of one program, each with an error of its own
@example(seed=839)  # the cost is large where the polytope is flat
def test_the_oracle_is_the_best_of_all_vertices_cold_and_warm(kind, seed):
    rng = np.random.default_rng(seed)
    K = made(kind, rng)
    rows, warm = vertices_of(K).reshape(-1, math.prod(K.shape)), None
    for d in directions(rng, K.shape):
        room = 1e-12 * float(np.abs(d).sum()) * max(1.0, K.radius, np.abs(K.center).max())
        warmed, best = K.answer(d, warm), float((rows @ d.reshape(-1)).min())
        warm = warmed.warm
        for v, error in ((K.lmo(d), K.answer(d).error), (warmed.vertex.dense(d), warmed.error)):
            assert best - room <= np.vdot(v, d) <= best + error + room
            assert error <= 1e3 * room
            away = np.abs(rows - v.reshape(-1)).max(axis=1).min()
            assert away <= 1e-9 * max(1.0, np.abs(v).max()) or kind == "polytope"


@pytest.mark.soak_examples(30)
@of(MAKERS)
@given(seed=seeds)
@settings(max_examples=3)
def test_sizes_are_those_of_all_vertices(kind, seed):
    K = made(kind, np.random.default_rng(seed))
    rows, c = vertices_of(K).reshape(-1, math.prod(K.shape)), K.center.reshape(-1)
    radius = np.linalg.norm(rows - c, axis=1).max()
    diameter = max(np.linalg.norm(rows - row, axis=1).max() for row in rows)
    room = 1e-12 * max(1.0, K.radius, np.abs(rows).max())
    assert K.radius >= radius - room
    assert 2 * K.radius + room >= K.diameter >= diameter - room
    if kind not in BOUNDED:
        assert K.radius == pytest.approx(radius, abs=room)
    if kind not in WIDER:
        assert K.diameter == pytest.approx(diameter, abs=room)
    _, sizes, basis = np.linalg.svd(rows - rows.mean(axis=0))
    rank = int((sizes > 1e3 * room).sum())
    assert K.dimension == rank
    along = (rows - c) @ basis[:rank].T
    if rank == 0:
        assert K.inner_radius == K.radius == 0.0
    elif rank == 1:
        assert K.inner_radius == pytest.approx(min(along.max(), -along.min()), rel=1e-9)
    elif rank <= 6:
        nearest = -ConvexHull(along).equations[:, -1].max()
        assert K.inner_radius == pytest.approx(nearest, rel=1e-6)


@given(seed=seeds)
@settings(max_examples=4)
def test_the_sizes_of_round_sets_are_attained(seed):
    rng = np.random.default_rng(seed)
    for kind in ROUND:
        K = made(kind, rng)
        n = K.shape[0]
        if isinstance(K, sets.LpBall):
            units = [np.eye(n)[0], np.ones(n) / math.sqrt(n)]
        elif isinstance(K, sets.GroupBall):
            firsts, spread = np.unique(K.groups, return_index=True)[1], np.zeros(n)
            spread[firsts] = K.weights / np.linalg.norm(K.weights)
            units = [*np.eye(n), spread]
        else:
            A = np.diag(K.matrix) if K.matrix.ndim == 1 else K.matrix
            units = list(np.linalg.eigh(A)[1].T)
        reach = [boundary(K, u) for u in units]
        assert K.radius == pytest.approx(max(reach), rel=1e-9)
        assert K.inner_radius == pytest.approx(min(reach), rel=1e-9)
        assert K.diameter == 2 * K.radius


def boundary(K, u):
    """How far from the center the set reaches along u, by bisection over its infeasibility."""
    low, high = 0.0, 2 * K.radius
    for _ in range(50):
        middle = (low + high) / 2
        inside = K.infeasibility(K.center + middle * u) == 0.0
        low, high = (middle, high) if inside else (low, middle)
    return low


# --- projections ----------------------------------------------------------------------------------

PROJECTED = [
    kind
    for kind in (*MAKERS, *ROUND)
    if isinstance(made(kind, np.random.default_rng(0)), sets.Projectable)
]


@pytest.mark.soak_examples(15)
@of([kind for kind in PROJECTED if kind in MAKERS])
@given(seed=seeds, far=st.sampled_from([0.3, 1.0, 3.0, 30.0]))
@settings(max_examples=2)
def test_the_projection_on_a_polytope_is_that_of_a_quadratic_program(kind, seed, far):
    rng = np.random.default_rng(seed)
    K = made(kind, rng)
    size = K.radius or 1.0
    unit = sets.Scaled(K, 1 / size)  # the solver is accurate in absolute numbers
    whole = rng.integers(-1, 2, K.shape)
    y = unit.center + far * (rng.standard_normal(K.shape) if seed % 2 else whole)
    described = unit if isinstance(K, sets.Polyhedral) else sets.VertexHull(vertices_of(K) / size)
    program = ExactProjection(described)._quadratic_program(y)
    np.testing.assert_allclose(unit.project(y), program, atol=1e-5 * max(1.0, far))
    assert np.linalg.norm(unit.project(y) - y) <= np.linalg.norm(program - y) + 1e-9 * max(1.0, far)


@pytest.mark.soak_examples(20)
@of(PROJECTED)
@given(seed=seeds, far=st.sampled_from([1e4, 1e8, 1e12, 1e16, 1e20, 1e150]))
@settings(max_examples=3)
def test_a_projection_from_far_away_is_a_member_and_nearest(kind, seed, far):
    rng = np.random.default_rng(seed)
    K = made(kind, rng)
    y = far * (rng.standard_normal(K.shape) if seed % 2 else rng.integers(-2, 3, K.shape) + 0.0)
    x = K.project(y)
    size = max(K.radius, np.abs(x).max())
    assert K.infeasibility(x) <= 1e-12 * size
    gap = float(np.vdot(y / far - x / far, K.lmo(x / far - y / far) - x))
    assert gap <= 1e-11 * size * max(1.0, np.linalg.norm(y / far))


# --- sets that are one another --------------------------------------------------------------------

REFERENCES = [
    (sets.L1Ball(4, 2.0), sets.LpBall(4, 1.0, 2.0)),
    (sets.L1Ball(4, 2.0), sets.GroupBall(range(4), 2.0)),
    (sets.L1Ball(4, 2.0), sets.OrderedWeightedBall(np.ones(4), 2.0)),
    (sets.Box(np.full(4, -2.0), np.full(4, 2.0)), sets.KSparse(4, 4, 2.0)),
    (sets.Box(np.full(4, -2.0), np.full(4, 2.0)), sets.LpBall(4, math.inf, 2.0)),
    (sets.KNormBall(5, 2, 3.0), sets.OrderedWeightedBall([1.0, 1.0, 0.0, 0.0, 0.0], 3.0)),
    (sets.L2Ball(3, 2.0), sets.LpBall(3, 2.0, 2.0)),
    (sets.L2Ball(3, 2.0), sets.GroupBall([5.0, 5.0, 5.0], 2.0)),
    (sets.L2Ball(3, 2.0), sets.Ellipsoid(np.full(3, 0.25))),
    (sets.L2Ball(3, 2.0), sets.Ellipsoid(0.25 * np.eye(3))),
    (sets.L2Ball(3, 2.0), sets.Scaled(sets.L2Ball(3), 2.0)),
    (sets.L2Ball(2, center=[0.0, 2.0]), sets.Ellipsoid(np.ones(2), [0.0, 2.0])),
    (sets.CappedSimplex(6, 0.5, 3.0), sets.Knapsack(np.ones(6), 3.0, 0.5, at_most=False)),
    (sets.CappedSimplex(4, 0.5), sets.Product(sets.CappedSimplex(4, 0.5))),
    (sets.Birkhoff(4), sets.Transportation(np.ones(4), np.ones(4))),
    (sets.Fantope(4, 1), sets.Spectraplex(4)),
]


@pytest.mark.parametrize(("K", "reference"), REFERENCES, ids=lambda K: type(K).__name__)
@given(seed=seeds)
@settings(max_examples=2)
def test_two_names_of_one_set_agree(K, reference, seed):
    rng = np.random.default_rng(seed)
    for name in ("shape", "dimension", "diameter", "radius", "inner_radius"):
        assert getattr(K, name) == pytest.approx(getattr(reference, name), rel=1e-12), name
    np.testing.assert_allclose(K.center, reference.center)
    several = [rng.standard_normal((4, *K.shape)), rng.integers(-1, 2, (4, *K.shape)).astype(float)]
    for d in itertools.chain(*several):
        assert np.vdot(d, K.lmo(d)) == pytest.approx(np.vdot(d, reference.lmo(d)), abs=1e-12)
        np.testing.assert_allclose(K.tangent(d), reference.tangent(d), atol=1e-12)
        y = 3 * d
        assert (K.infeasibility(y) > 1e-12) == (reference.infeasibility(y) > 1e-12)
        if isinstance(K, sets.Projectable) and isinstance(reference, sets.Projectable):
            np.testing.assert_allclose(K.project(y), reference.project(y), atol=1e-12)


TIES = [
    (sets.CappedSimplex(5, 1.0, 2.5), np.zeros(5), [1.0, 1.0, 0.5, 0.0, 0.0]),
    (sets.CappedSimplex(4, 1.0, 2.0), [1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]),
    (sets.Simplex(3), np.zeros(3), [1.0, 0.0, 0.0]),
    (sets.VertexHull([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), [0.0, 1.0]),
    (sets.L2Ball(2, center=[3.0, 4.0]), np.zeros(2), [3.0, 4.0]),
    (sets.L1Ball(3), [1.0, -1.0, 1.0], [-1.0, 0.0, 0.0]),
    (sets.KSparse(4, 2), [1.0, -1.0, 2.0, 1.0], [-1.0, 0.0, -1.0, 0.0]),
    (sets.KNormBall(4, 2, 2.0), [0.0, 1.0, 1.0, 0.0], [0.0, -2.0, 0.0, 0.0]),
    (sets.OrderedWeightedBall([1.0, 1.0, 1.0]), [-1.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    (sets.GroupBall([1, 0, 0]), [5.0, 3.0, 4.0], [0.0, -0.6, -0.8]),
    (sets.Knapsack(np.ones(4), 2.5), -np.ones(4), [1.0, 1.0, 0.5, 0.0]),
    (sets.Permutahedron([1.0, 3.0, 2.0]), np.zeros(3), [3.0, 2.0, 1.0]),
    (sets.Matching([("a", "a"), ("a", "b"), ("b", "a")]), [-3.0, -2.0, -2.0], [0.0, 1.0, 1.0]),
    (sets.Matching([(0, 0), (0, 0)]), [-1.0, -1.0], [1.0, 0.0]),
    (sets.SpanningTrees([(0, 1), (1, 2), (0, 2), (0, 1)]), np.ones(4), [1.0, 1.0, 0.0, 0.0]),
    (sets.Matching([(0, 0), (0, 0), (0, 0)], perfect=True), [2.0, 1.0, 1.0], [0.0, 1.0, 0.0]),
]


@pytest.mark.parametrize(("K", "d", "answer"), TIES, ids=lambda K: type(K).__name__)
def test_ties_go_to_the_earlier_entry(K, d, answer):
    np.testing.assert_array_equal(K.lmo(np.asarray(d)), answer)


# --- images and products have the capabilities of what they are made of ---------------------------


HULL = sets.VertexHull(np.eye(2))
ALL, NONE = (sets.Projectable, sets.Polyhedral, sets.Relaxable), ()
MADE = [
    (sets.Translated(sets.Simplex(2), [1.0, 1.0]), ALL),
    (
        sets.Shrunk(sets.Translated(sets.L2Ball(2), [1.0, 1.0]), 0.5),
        (sets.Projectable, sets.Relaxable),
    ),
    (sets.Shrunk(HULL, 0.5), (sets.Polyhedral, sets.Relaxable)),
    (sets.Translated(Shares(), [3.0, 4.0, 5.0]), NONE),
    (sets.Shrunk(Shares(), 0.5), NONE),
    (sets.Scaled(sets.L1Ball(2), 3.0), ALL),
    (sets.Scaled(sets.LpBall(2, 3.0), 3.0), (sets.Relaxable,)),
    (sets.Product(sets.Simplex(2), sets.Box([0.0], [1.0])), ALL),
    (sets.Product(sets.Simplex(2), sets.L2Ball(2)), (sets.Projectable, sets.Relaxable)),
    (sets.Product(HULL, sets.Scaled(sets.Simplex(2), 2.0)), (sets.Polyhedral, sets.Relaxable)),
    (sets.Product(sets.BoundedPSD(2), sets.BoundedPSD(1)), (sets.Projectable,)),
    (sets.Product(sets.LpBall(2, 3.0), HULL), (sets.Relaxable,)),
]
METHODS = {sets.Projectable: "project", sets.Polyhedral: "description", sets.Relaxable: "relax"}


@pytest.mark.parametrize(("K", "able"), MADE, ids=lambda K: repr(K)[:40])
def test_isinstance_tells_what_a_set_made_of_others_can_do(K, able):
    assert tuple(kind for kind in METHODS if isinstance(K, kind)) == able
    assert type(K).__name__ in {"Translated", "Shrunk", "Scaled", "Product"}
    again = pickle.loads(pickle.dumps(K))
    assert (again, type(again)) == (K, type(K))
    testing.check_set(K)
    for kind in set(METHODS) - set(able):
        with pytest.raises(errors.NotSupported):
            getattr(K, METHODS[kind])(*([] if kind is sets.Polyhedral else [np.zeros(K.shape)]))


def test_a_product_keeps_the_warm_start_of_each_part():
    matrices = sets.BoundedPSD(6, dense=0)
    K, rng = sets.Product(sets.Simplex(2), matrices, sets.L2Ball(1)), np.random.default_rng(0)
    d = rng.standard_normal(K.shape)
    parts = K.split(d)
    alone, whole = matrices.answer(parts[1]), K.answer(d)
    assert whole.warm[0] is whole.warm[2] is None
    np.testing.assert_array_equal(whole.warm[1], alone.warm)
    assert whole.error == alone.error
    again = K.answer(d, whole.warm)
    np.testing.assert_array_equal(again.warm[1], matrices.answer(parts[1], alone.warm).warm)
    assert isinstance(again.vertex, vertices.Compound)
    assert sets.Product(sets.Simplex(2), sets.L2Ball(2)).answer(np.ones(4)).warm is None


def test_a_product_takes_points_apart_and_together():
    K = sets.Product(
        sets.Simplex(2), sets.BoundedPSD(2), sets.Box(np.zeros((1, 3)), np.ones((1, 3)))
    )
    x = np.arange(9.0)
    parts = K.split(x)
    assert [part.shape for part in parts] == [(2,), (2, 2), (1, 3)]
    np.testing.assert_array_equal(K.join(*parts), x)
    for wrong in ([x], [np.ones(2), np.ones(3), np.ones((1, 3))]):
        with pytest.raises(errors.WrongShape):
            K.join(*wrong)


def test_factors_of_sets_made_of_others():
    inner = sets.Product(sets.Simplex(2), sets.Box([0.0, 1.0], [2.0, 1.0]))
    K = sets.Product(inner, sets.L2Ball((1, 2)), sets.SimplexProduct([3, 1]))
    parts = K.factors
    assert (parts.starts.tolist(), parts.exact) == ([0, 2, 3, 4, 6, 9], False)
    np.testing.assert_allclose(parts.radii, [0.5**0.5, 1.0, 0.0, 1.0, (2 / 3) ** 0.5, 0.0])
    for moved in (sets.Scaled(K, 3.0), sets.Shrunk(K, 0.5), sets.Translated(K, np.ones(10))):
        np.testing.assert_allclose(moved.factors.radii, moved.scale * parts.radii)
    assert sets.Scaled(sets.SimplexProduct([2, 2]), 2.0).factors.exact
    assert sets.Product(sets.Box([0.0], [1.0]), sets.SimplexProduct([2])).factors.exact
    assert sets.Simplex(3).factors is sets.Shrunk(sets.Simplex(3), 0.5).factors is None


# --- what is refused ------------------------------------------------------------------------------

REFUSED = [
    (lambda: sets.CappedSimplex(3, 0.2), errors.EmptySet, "cap"),
    (lambda: sets.Box([0.0, 2.0], [1.0]), errors.WrongShape, "upper"),
    (lambda: sets.L2Ball(3, center=[0.0]), errors.WrongShape, "center"),
    (lambda: sets.VertexHull(np.zeros((0, 2))), errors.EmptySet, "points"),
    (lambda: sets.VertexHull([1.0, 2.0]), errors.WrongShape, None),
    (lambda: sets.Translated(sets.Simplex(2), [1.0]), errors.WrongShape, "shift"),
    (lambda: sets.Shrunk(sets.Simplex(2), 1.5), errors.InvalidInput, "factor"),
    (lambda: sets.Scaled(sets.Simplex(2, 1e200), 1e200), errors.InvalidInput, "factor"),
    (lambda: sets.OrderedWeightedBall([1.0, 2.0]), errors.InvalidInput, "weights"),
    (lambda: sets.OrderedWeightedBall([0.0, 0.0]), errors.InvalidInput, "weights"),
    (lambda: sets.GroupBall([0, 1], 1.0, [1.0]), errors.WrongShape, "weights"),
    (lambda: sets.GroupBall([0, 1], 1.0, [1.0, 0.0]), errors.InvalidInput, "weights"),
    (lambda: sets.Ellipsoid([[1.0, 2.0], [2.0, 1.0]]), errors.InvalidInput, "matrix"),
    (lambda: sets.Ellipsoid([[1.0, 0.5], [0.0, 1.0]]), errors.InvalidInput, "matrix"),
    (lambda: sets.Ellipsoid([1.0], [1.0, 2.0]), errors.WrongShape, "center"),
    (lambda: sets.Knapsack([1.0, 2.0], 4.0, at_most=False), errors.EmptySet, "total"),
    (lambda: sets.Knapsack([1.0, 0.0], 1.0), errors.InvalidInput, "weights"),
    (lambda: sets.Knapsack([1e200, 1.0], 1e-200, 1e200), errors.InvalidInput, "upper"),
    (lambda: sets.Product(), errors.EmptySet, "parts"),
    (lambda: sets.SimplexProduct([]), errors.EmptySet, "sizes"),
    (lambda: sets.SimplexProduct([2**31 - 1, 1]), errors.InvalidInput, "sizes"),
    (lambda: sets.SimplexProduct([2], ["a", "a"]), errors.InvalidInput, "labels"),
    (lambda: sets.Transportation([1, 2], [1, 1]), errors.EmptySet, "columns"),
    (lambda: sets.Transportation([2, -1], [1]), errors.InvalidInput, "rows"),
    (lambda: sets.Transportation([0], [0, 0]), errors.InvalidInput, "rows"),
    (lambda: sets.SpanningTrees([]), errors.EmptyGraph, "edges"),
    (lambda: sets.SpanningTrees([("a", "b"), ("c", "d"), ("f", "f")]), errors.GraphError, "edges"),
    (lambda: sets.SpanningTrees([(0, 1)], nodes=["s"]), errors.WrongShape, "nodes"),
    (lambda: sets.Matching([]), errors.EmptyGraph, "edges"),
    (lambda: sets.Matching([(0, 1)], lefts=["a", "b"]), errors.WrongShape, "lefts"),
    (lambda: sets.Matching([("a", 1), ("b", 1)], perfect=True), errors.EmptySet, "perfect"),
    (
        lambda: sets.Polytope([[1, 1], [-1, -1], [5, 0]], [1, -2, 3], bounds=(0, 5)),
        errors.EmptySet,
        None,
    ),
    (lambda: sets.Polytope(A_eq=[[1, 1]], b_eq=[3], bounds=(0, 1)), errors.EmptySet, None),
    (lambda: sets.Polytope(A_eq=[[0, 0]], b_eq=[2], bounds=(0, 1)), errors.EmptySet, None),
    (lambda: sets.Polytope([[1, -1]], [1], bounds=(0, None)), errors.InvalidInput, None),
    (lambda: sets.Polytope(A_eq=[[1, 1, 1]], b_eq=[1]), errors.InvalidInput, None),
    (lambda: sets.Polytope([[0.0]], [1.0]), errors.InvalidInput, None),
    (lambda: sets.Polytope([[1e-300, 0]], [1e300], bounds=(0, 1)), errors.InvalidInput, None),
    (lambda: sets.Polytope(), errors.InvalidInput, None),
    (lambda: sets.Polytope(bounds=(0, 1)), errors.WrongShape, "bounds"),
    (lambda: sets.Polytope([[1, 1]], [1, 2]), errors.WrongShape, "A_ub"),
    (lambda: sets.Polytope(b_eq=[1]), errors.InvalidInput, "b_eq"),
    (lambda: sets.Polytope([[1, 1]], [1], bounds=[(0, 1)] * 3), errors.WrongShape, None),
    (lambda: sets.Polytope([[1, 1]], [1], bounds=[(0, 1), (2, 1)]), errors.EmptySet, "bounds"),
    (lambda: sets.NuclearBall(), errors.InvalidInput, "shape"),
]


@pytest.mark.parametrize(("make", "error", "setting"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_a_set_is_refused(make, error, setting):
    with refused(error, setting):
        make()


@pytest.mark.parametrize("K", FIRST.values(), ids=FIRST)
def test_bad_directions_and_points_are_refused(K):
    with pytest.raises(errors.NotFinite):
        K.lmo(np.full(K.shape, np.nan))
    for method in ("lmo", "infeasibility", "project", "relax", "tangent"):
        whole = getattr(type(K), method, None) is sets.ConvexSet.tangent
        if hasattr(K, method) and not whole:
            with pytest.raises(errors.WrongShape):
                getattr(K, method)(np.ones(99))
            with pytest.raises(errors.WrongType):
                getattr(K, method)(np.ones(K.shape, dtype=complex))


def test_a_solver_that_gives_up_is_named(monkeypatch):
    def gives_up(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    with pytest.raises(errors.SolverFailed):
        HULL.infeasibility(np.zeros(2))


# --- from links to graphs without cycles ----------------------------------------------------------


def any_links(seed, nodes, count):
    """Links in all directions, loops and parallel ones among them; 0 reaches the last node."""
    rng = np.random.default_rng(seed)
    links = [*rng.integers(0, nodes, (count, 2)).tolist(), *itertools.pairwise(range(nodes))]
    return [(tail, head) for tail, head in links], rng.uniform(0.1, 1.0, len(links)).tolist()


def distances(links, lengths, source, nodes):
    """Bellman and Ford's, as plain as can be."""
    away = [np.inf] * nodes
    away[source] = 0.0
    for _ in range(nodes):
        for (tail, head), length in zip(links, lengths, strict=True):
            away[head] = min(away[head], away[tail] + length)
    return away


@given(seed=seeds, nodes=st.integers(2, 9), count=st.integers(0, 25))
def test_links_that_lead_away_make_a_graph_without_cycles_that_keeps_shortest_paths(
    seed, nodes, count
):
    links, lengths = any_links(seed, nodes, count)
    far = distances(links, lengths, 0, nodes)
    distance, _ = shortest(links, lengths, 0)
    assert distance == pytest.approx(dict(enumerate(far)))
    kept = leading_away(links, source=0, lengths=lengths)
    assert kept == [i for i, (tail, head) in enumerate(links) if far[head] > far[tail]]
    on_the_way = away(links, source=0, target=nodes - 1, lengths=lengths)
    walks = list(paths_of([links[i] for i in kept], 0, nodes - 1))
    assert on_the_way == sorted({kept[i] for walk in walks for i in walk})
    K = FlowPolytope.from_edges([links[i] for i in on_the_way], source=0, target=nodes - 1)
    assert K.lmo(np.array(lengths)[on_the_way]) @ np.array(lengths)[on_the_way] == pytest.approx(
        far[-1]
    )
    assert count_paths([links[i] for i in kept], source=0, target=nodes - 1) == len(walks)


@given(seed=seeds, nodes=st.integers(2, 7), density=st.sampled_from([0.3, 0.9, 1.5]))
def test_useful_links_are_those_some_path_takes(seed, nodes, density):
    links = random_edges(np.random.default_rng(seed), nodes, density)
    walks = list(paths_of(links, 0, nodes - 1))
    assert useful(links, source=0, target=nodes - 1) == sorted({i for walk in walks for i in walk})
    assert count_paths(links, source=0, target=nodes - 1) == len(walks)


def test_useful_links_may_go_round_in_circles():
    links = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("t", "x"), ("y", "a"), ("a", "end")]
    assert useful(links, source="s", target="t") == [0, 1, 2, 3]
    assert useful(iter(links), source="a", target="t") == [1, 2, 3]


def test_any_number_of_paths_is_counted_exactly():
    ladder = [link for i in range(300) for link in ((i, i + 1), (i, i + 1), (i, i + 1))]
    assert count_paths(ladder, source=0, target=300) == 3**300
    assert count_paths(iter([("s", "t")]), source="s", target="t") == 1


@pytest.mark.parametrize(
    ("call", "error", "setting"),
    [
        (lambda: away([(0, 1)], source=2, target=1), errors.UnknownNode, "source"),
        (lambda: away([(0, 1)], source=0, target="x"), errors.UnknownNode, "target"),
        (lambda: away([(0, 1), (2, 3)], source=0, target=3), errors.UnreachableTarget, "target"),
        (lambda: useful([(0, 1), (2, 1)], source=0, target=2), errors.UnreachableTarget, "target"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[1, 2]), errors.WrongShape, "lengths"),
        (lambda: leading_away([(0, 1)], source=0, lengths=[0.0]), errors.InvalidInput, "lengths"),
        (lambda: count_paths([(0, 1), (1, 0)], source=0, target=1), errors.CyclicGraph, "edges"),
    ],
)
def test_what_cannot_be_done_is_refused(call, error, setting):
    with refused(error, setting):
        call()
