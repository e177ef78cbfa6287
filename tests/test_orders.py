"""Orders, matchings, trees and polytopes: against every vertex by brute force, a linear program,
and kernels' plain twins.
"""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import csr_array
from scipy.spatial import ConvexHull

from refused import refused
from tidewolf.core.errors import (
    EmptyGraph,
    EmptySet,
    GraphError,
    InvalidInput,
    NotFinite,
    SolverFailed,
    WrongShape,
    WrongType,
)
from tidewolf.sets import (
    Birkhoff,
    ConvexSet,
    Matching,
    Permutahedron,
    Polytope,
    SpanningTrees,
    Transportation,
    VertexHull,
    generic,
    orders,
)
from tidewolf.sets.graphs import blocks
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)


# --- every vertex ---------------------------------------------------------------------------------


def trees_of(edges: np.ndarray, nodes: int) -> list[tuple[int, ...]]:
    """Every spanning tree as edge numbers."""
    found = []
    for chosen in itertools.combinations(range(len(edges)), nodes - 1):
        part = np.arange(nodes)
        for a, b in edges[list(chosen)]:
            part[part == part[a]] = part[b]
        if (part == part[0]).all():
            found.append(chosen)
    return found


def plans_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Every vertex of a transportation polytope: the plan of each tree of rows and columns, where
    it is not negative.
    """
    m, n = len(rows), len(columns)
    cells = np.array(list(itertools.product(range(m), range(m, m + n))))
    plans = []
    for tree in trees_of(cells, m + n):
        A = np.zeros((m + n, m * n))
        for k in tree:
            A[cells[k], k] = 1.0
        x = np.linalg.lstsq(A, np.concatenate([rows, columns]), rcond=None)[0]
        if x.min() > -1e-9:
            plans.append(np.maximum(x, 0.0).reshape(m, n))
    return np.array(plans)


def corners_of(G: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Every vertex of { G x <= h }: where n rows that hold with equality meet."""
    found = []
    for rows in map(list, itertools.combinations(range(len(h)), G.shape[1])):
        if abs(np.linalg.det(G[rows])) > 1e-9:
            x = np.linalg.solve(G[rows], h[rows])
            if (G @ x <= h + 1e-9).all():
                found.append(x)
    return np.array(found)


def vertices_of(K: ConvexSet) -> np.ndarray:
    if isinstance(K, Permutahedron):
        return np.array(list(itertools.permutations(K.weights)))
    if isinstance(K, Birkhoff):
        return np.array([np.eye(K.n)[list(order)] for order in itertools.permutations(range(K.n))])
    if isinstance(K, Transportation):
        return plans_of(K.rows, K.columns)
    if isinstance(K, SpanningTrees):
        return np.array(
            [np.isin(np.arange(len(K.edges)), tree) for tree in trees_of(K.edges, len(K.nodes))],
            dtype=float,
        )
    if isinstance(K, Polytope):
        G, h, E, f, *_ = K._rows
        return corners_of(np.vstack([G, E, -E]), np.concatenate([h, f, -f]))
    assert isinstance(K, Matching)
    every = np.array(list(itertools.product((0.0, 1.0), repeat=len(K.edges))))
    degrees = np.stack(
        [
            every @ (K.edges[:, side] == v)
            for side, names in ((0, K.lefts), (1, K.rights))
            for v in range(len(names))
        ]
    )
    return every[((degrees == 1.0) if K.perfect else (degrees <= 1.0)).all(axis=0)]


def small(kind: str, rng: np.random.Generator) -> ConvexSet:
    """A small random set, with ties, zeros, parallel edges, loops and bridges."""
    if kind == "permutahedron":
        return Permutahedron(rng.integers(-2, 3, rng.integers(1, 6)) * rng.choice([1e-3, 1.0, 0.3]))
    if kind == "birkhoff":
        return Birkhoff(int(rng.integers(1, 5)))
    if kind == "transportation":
        m, n = rng.integers(1, 4), rng.integers(1, 4)
        plan = rng.integers(0, 4, (m, n)) * rng.choice([1.0, 0.1])
        plan[0, 0] += 1.0
        return Transportation(plan.sum(axis=1), plan.sum(axis=0))
    if kind == "trees":
        n = int(rng.integers(1, 6))
        edges = [(v, int(rng.integers(v))) for v in range(1, n)] + [
            tuple(rng.integers(0, n, 2).tolist()) for _ in range(rng.integers(1, 5))
        ]
        return SpanningTrees([edges[i] for i in rng.permutation(len(edges))])
    if kind == "matching":
        return Matching(rng.integers(0, 4, (int(rng.integers(1, 9)), 2)))
    if kind == "perfect":
        n = int(rng.integers(1, 5))
        edges = [
            *zip(range(n), rng.permutation(n).tolist(), strict=True),
            *rng.integers(0, n, (int(rng.integers(0, 6)), 2)).tolist(),
        ]
        return Matching(edges, perfect=True)
    n = int(rng.integers(1, 4))
    A, inside = (
        rng.integers(-2, 3, (int(rng.integers(0, 4)), n)).astype(float),
        rng.integers(-1, 2, n),
    )
    equal = rng.integers(-1, 2, (int(rng.integers(0, 2)), n)).astype(float)
    room = rng.integers(0, 3, len(A)) if rng.random() < 0.5 else rng.random(len(A)) + 0.5
    return Polytope(A, A @ inside + room, equal, equal @ inside, bounds=(-2.0, 2.0 + rng.random()))


KINDS = ["permutahedron", "birkhoff", "transportation", "trees", "matching", "perfect", "polytope"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def directions(rng: np.random.Generator, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Random, tied, zero, huge, tiny, and of mixed size."""
    d, ties = rng.standard_normal(shape), rng.integers(-1, 2, shape).astype(float)
    return [
        d,
        ties,
        np.zeros(shape),
        np.ones(shape),
        1e150 * d,
        1e-150 * d,
        d * 10.0 ** rng.integers(-12, 12, shape),
    ]


@every_kind
@given(seed=seeds)
@settings(max_examples=20)
@example(seed=263)  # two solves of one program, each with an error of its own
@example(seed=839)  # the cost is large where the polytope is flat
def test_the_oracle_is_the_best_of_all_vertices(kind, seed):
    rng = np.random.default_rng(seed)
    K = small(kind, rng)
    rows, warm = vertices_of(K).reshape(-1, math.prod(K.shape)), None
    for d in directions(rng, K.shape):
        before, size = d.copy(), float(np.abs(d).sum()) * max(1.0, K.radius)
        answer = K.answer(d, warm)
        warm, best = answer.warm, float((rows @ d.reshape(-1)).min())
        for v, error in ((K.lmo(d), K.answer(d).error), (answer.vertex.dense(d), answer.error)):
            assert best - 1e-12 * size <= np.vdot(v, d) <= best + error + 1e-12 * size
            assert error <= 1e-9 * size
            assert (
                np.abs(rows - v.reshape(-1)).sum(axis=1).min() <= 1e-9 * max(1.0, np.abs(v).max())
                or kind == "polytope"
            )
            assert not v.flags.writeable
        np.testing.assert_array_equal(d, before)


@pytest.mark.soak_examples(20)
@every_kind
@given(seed=seeds)
@settings(max_examples=8)
def test_sizes_are_those_of_all_vertices(kind, seed):
    K = small(kind, np.random.default_rng(seed))
    rows, c = vertices_of(K).reshape(-1, math.prod(K.shape)), K.center.reshape(-1)
    radius, diameter = (
        np.linalg.norm(rows - c, axis=1).max(),
        np.linalg.norm(rows[:, None] - rows[None], axis=2).max(),
    )
    _, sizes, basis = np.linalg.svd(rows - rows.mean(axis=0))
    rank = int((sizes > 1e-9 * max(1.0, np.abs(rows).max())).sum())
    assert K.dimension == rank
    assert K.radius >= radius * (1 - 1e-12) - 1e-12
    assert K.diameter >= diameter * (1 - 1e-12) - 1e-12
    if kind in ("permutahedron", "birkhoff", "trees", "matching", "perfect"):
        assert K.radius == pytest.approx(radius, abs=1e-12)
    if kind in ("permutahedron", "birkhoff", "matching", "perfect"):
        assert K.diameter == pytest.approx(diameter, abs=1e-12)
    if rank == 0:
        assert K.inner_radius == K.radius == 0.0
    elif rank == 1:
        along = (rows - c) @ basis[0]
        assert K.inner_radius == pytest.approx(min(along.max(), -along.min()), rel=1e-9)
    else:
        hull = ConvexHull((rows - c) @ basis[:rank].T, qhull_options="QJ" if rank > 4 else "Qt")
        assert K.inner_radius == pytest.approx(-hull.equations[:, -1].max(), rel=1e-6)


@pytest.mark.soak_examples(4)
@every_kind
@given(seed=seeds)
@settings(max_examples=2)
def test_small_ones_keep_every_law(kind, seed):
    check_set(small(kind, np.random.default_rng(seed)), seed=seed)


# --- permutahedron --------------------------------------------------------------------------------


@given(seed=seeds, n=st.integers(1, 12), far=st.sampled_from([0.1, 1.0, 30.0]))
def test_the_projection_on_a_permutahedron_agrees_with_isotonic_regression(seed, n, far):
    rng = np.random.default_rng(seed)
    K, y = Permutahedron(rng.integers(0, 4, n)), far * rng.standard_normal(n).round(1)
    order = np.argsort(-y, kind="stable")
    v = isotonic_regression(y[order] - np.sort(K.weights)[::-1], increasing=False).x
    np.testing.assert_allclose(K.project(y)[order], y[order] - v, atol=1e-12 * max(1.0, far))


def test_weights_come_in_any_order_and_ties_go_to_the_earlier_entry():
    assert Permutahedron([1.0, 3.0, 2.0]) == Permutahedron([3, 2, 1])
    np.testing.assert_array_equal(Permutahedron([1.0, 3.0, 2.0]).lmo(np.zeros(3)), [3.0, 2.0, 1.0])


# --- transportation -------------------------------------------------------------------------------


@pytest.mark.soak_examples(15)
@given(seed=seeds, m=st.integers(1, 12), n=st.integers(1, 12), whole=st.booleans())
@settings(max_examples=8)
def test_transport_is_as_cheap_as_a_linear_program_from_any_start(seed, m, n, whole):
    rng = np.random.default_rng(seed)
    plan = rng.integers(0, 3, (m, n)).astype(float) if whole else rng.random((m, n))
    plan[0, 0] += 1.0
    K, c, warm = (
        Transportation(plan.sum(axis=1), plan.sum(axis=0)),
        rng.standard_normal((m, n)),
        None,
    )
    told = K.description()
    for _ in range(3):
        c = c + 0.3 * rng.standard_normal((m, n))
        warmed, cold = K.answer(c, warm), K.answer(c)
        value = linprog(
            c.reshape(-1),
            A_eq=told.A_eq,
            b_eq=told.b_eq,
            bounds=np.stack([told.lower, told.upper], axis=1),
        ).fun
        for answer in (warmed, cold):
            assert answer.vertex.inner(c) == pytest.approx(value, abs=1e-8)
            assert K.infeasibility(answer.vertex.dense(c)) <= 1e-13 * plan.sum()
            assert len(answer.vertex.indices) <= m + n - 1
        warm = warmed.warm


@pytest.mark.parametrize(
    "warm",
    [
        np.zeros(4, dtype=np.int32),
        np.array([0, 4, 8, 99, -1]),
        np.array([0, 0, 0, 0, 0]),
        np.arange(5),
        np.zeros(5),
    ],
)
def test_a_basis_that_is_none_is_not_used(warm):
    K, c = Transportation([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]), np.arange(9.0).reshape(3, 3) % 4
    assert K.answer(c, warm).vertex.key() == K.answer(c).vertex.key()


def test_a_transportation_problem_out_of_exchanges_is_named(monkeypatch):
    monkeypatch.setattr(orders, "_EXCHANGES", 0)
    with pytest.raises(
        SolverFailed,
    ):
        Transportation(np.ones(4), np.ones(4)).answer(np.random.default_rng(0).random((4, 4)))


def test_forty_equal_rows_and_columns_are_an_assignment():
    d = np.random.default_rng(0).standard_normal((40, 40))
    v = Transportation(np.ones(40), np.ones(40)).lmo(d)
    np.testing.assert_array_equal(v, Birkhoff(40).lmo(d))


# --- spanning trees -------------------------------------------------------------------------------


@given(seed=seeds)
def test_blocks_agree_with_networkx(seed):
    import networkx as nx

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    ends = rng.integers(0, n, (int(rng.integers(1, 14)), 2)).astype(np.int32)
    found, graph = blocks(ends, n), nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((a, b) for a, b in ends.tolist() if a != b)
    part = {v: i for i, nodes in enumerate(nx.connected_components(graph)) for v in nodes}
    block = {
        frozenset(edge): i
        for i, edges in enumerate(nx.biconnected_component_edges(graph))
        for edge in edges
    }
    label = [block.get(frozenset(edge), -1 - i) for i, edge in enumerate(ends.tolist())]
    for mine, theirs in (
        (found.of_edge.tolist(), label),
        (found.part_of_node.tolist(), [part[v] for v in range(n)]),
    ):
        assert len(set(zip(mine, theirs, strict=True))) == len(set(mine)) == len(set(theirs))
    assert found.number == len(set(label))


def kruskal(d: np.ndarray, edges: list) -> list[int]:
    """The lightest tree by sorting, the plain twin of the oracle; ties go to the earlier edge."""
    part, tree = {v: {v} for edge in edges for v in edge}, []
    for e in np.argsort(d, kind="stable").tolist():
        a, b = (part[v] for v in edges[e])
        if a is not b:
            tree.append(e)
            part.update(dict.fromkeys(a | b, a | b))
    return sorted(tree)


@given(seed=seeds, n=st.integers(2, 30))
def test_trees_are_as_light_as_networkx_finds(seed, n):
    import networkx as nx

    rng = np.random.default_rng(seed)
    edges = [(v, int(rng.integers(v))) for v in range(1, n)] + rng.integers(
        0, n, (2 * n, 2)
    ).tolist()
    K, d = SpanningTrees(edges), rng.standard_normal(len(edges))
    graph = nx.MultiGraph()
    graph.add_weighted_edges_from(
        (*edge, weight) for edge, weight in zip(edges, d.tolist(), strict=True)
    )
    assert d @ K.lmo(d) == pytest.approx(
        nx.minimum_spanning_tree(graph).size(weight="weight"), abs=1e-9
    )
    assert K.infeasibility(K.lmo(d)) <= 1e-12
    ties = d.round()
    np.testing.assert_array_equal(np.flatnonzero(K.lmo(ties)), kruskal(ties, edges))


@pytest.mark.soak_examples(60)
@given(seed=seeds, far=st.sampled_from([0.0, 0.01, 0.3, 3.0]))
@settings(max_examples=20)
def test_the_excess_of_trees_is_the_worst_over_all_sets_of_nodes(seed, far):
    rng = np.random.default_rng(seed)
    K = small("trees", rng)
    corners = vertices_of(K)
    x = rng.dirichlet(np.ones(len(corners))) @ corners + far * rng.standard_normal(K.shape)
    loops, n = K.edges[:, 0] == K.edges[:, 1], len(K.nodes)
    taken = np.where(loops, 0.0, np.maximum(x, 0.0))
    inside = [
        taken[np.isin(K.edges, S).all(axis=1)].sum() - size + 1
        for size in range(1, n + 1)
        for S in itertools.combinations(range(n), size)
    ]
    worst = max(-x.min(), abs(x.sum() - n + 1), np.max(x[loops], initial=0.0), *inside)
    assert K.infeasibility(x) == pytest.approx(worst, abs=1e-12)


@given(seed=seeds)
def test_the_center_of_trees_is_their_mean(seed):
    K = small("trees", np.random.default_rng(seed))
    np.testing.assert_allclose(K.center, vertices_of(K).mean(axis=0), atol=1e-12)


# --- matchings ------------------------------------------------------------------------------------


def test_names_on_either_side_are_nodes_of_their_own():
    K = Matching([("a", "a"), ("a", "b"), ("b", "a")])
    assert (K.lefts, K.rights) == (("a", "b"), ("a", "b"))
    np.testing.assert_array_equal(K.lmo(np.array([-3.0, -2.0, -2.0])), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(K.lmo(np.array([-5.0, -2.0, -2.0])), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(K.lmo(np.array([1.0, 0.0, 2.0])), [0.0, 0.0, 0.0])


def test_of_parallel_edges_the_cheapest_is_taken_and_the_earlier_of_equals():
    K = Matching([(0, 0), (0, 0), (0, 0)], perfect=True)
    np.testing.assert_array_equal(K.lmo(np.array([2.0, 1.0, 1.0])), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(
        Matching([(0, 0), (0, 0)]).lmo(np.array([-1.0, -1.0])), [1.0, 0.0]
    )


def test_a_large_hull_of_perfect_matchings_settles_for_a_lower_bound(monkeypatch):
    edges = [(i, j) for i in range(3) for j in range(3)]
    exact = Matching(edges, perfect=True).inner_radius
    monkeypatch.setattr("tidewolf.sets.laplacian.DENSE_NODES", 0)
    assert 0.0 < Matching(edges, perfect=True).inner_radius < exact


# --- polytopes ------------------------------------------------------------------------------------


@pytest.mark.soak_examples(15)
@given(seed=seeds, size=st.sampled_from([1e-8, 1.0, 1e8]), far=st.sampled_from([0.0, 1e6]))
@settings(max_examples=6)
def test_neither_the_size_nor_the_place_of_a_polytope_matters(seed, size, far):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    A, shift = rng.standard_normal((3, n)), far * rng.standard_normal(n)
    plain = Polytope(A, np.ones(3), bounds=(-1.0, 2.0))
    bounds = np.stack([-1.0 + shift, 2.0 + shift], axis=1)
    K, room = Polytope(A, size * (1.0 + A @ shift), bounds=size * bounds), 1e-9 * max(1.0, far)
    for d in rng.standard_normal((3, n)):
        assert d @ K.lmo(d) / size - d @ shift == pytest.approx(d @ plain.lmo(d), abs=room)
    assert (K.radius / size, K.inner_radius / size) == pytest.approx(
        (plain.radius, plain.inner_radius), abs=room
    )


def test_equations_hidden_among_inequalities_are_found():
    K = Polytope(
        [[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [0.0, 0.0, 1.0]], [1.0, -1.0, 0.0], bounds=(0.0, 1.0)
    )
    assert (K.dimension, K.inner_radius) == (1, pytest.approx(math.sqrt(0.5)))
    np.testing.assert_allclose(K.center, [0.5, 0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(K.tangent(np.array([1.0, 0.0, 5.0])), [0.5, -0.5, 0.0], atol=1e-12)


def test_a_warm_basis_saves_all_exchanges_and_a_wrong_one_does_no_harm():
    rng = np.random.default_rng(0)
    K, d = (
        Polytope(rng.random((20, 40)), np.full(20, 8.0), bounds=(0.0, 1.0)),
        rng.standard_normal(40),
    )
    first, solver = K.answer(d), K._program._solver
    exchanges = []
    for warm in (None, first.warm):
        K.answer(d, warm)
        exchanges.append(solver.getInfo().simplex_iteration_count)
    assert exchanges[0] > exchanges[1] == 0
    assert not first.warm.flags.writeable
    for wrong in (
        np.zeros(60, dtype=np.int8),
        np.full(60, 9),
        np.zeros(3),
        np.ones(60, dtype=np.int8),
    ):
        np.testing.assert_allclose(
            K.answer(d, wrong).vertex.dense(d), first.vertex.dense(d), atol=1e-12
        )


def test_sparse_rows_are_welcome():
    A = [[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]
    assert Polytope(csr_array(A), [1.0, 1.0], bounds=(0, 1)) == Polytope(
        A, [1.0, 1.0], bounds=(0, 1)
    )


def test_without_highspy_scipy_solves(monkeypatch):
    rng = np.random.default_rng(1)
    A, d = rng.random((3, 4)), rng.standard_normal(4)
    told = Polytope(A, np.ones(3), bounds=(0.0, 1.0)).lmo(d)
    monkeypatch.setitem(sys.modules, "highspy", None)
    K = Polytope(A, np.ones(3), bounds=(0.0, 1.0))
    answer = K.answer(d)
    assert answer.warm is None
    np.testing.assert_allclose(answer.vertex.dense(d), told, atol=1e-9)
    check_set(K)


class Liar:
    """A solver that answers a point outside, or one that is far from best."""

    def __init__(self, program, change):
        self.program, self.change = program, change

    def __getattr__(self, name):
        return getattr(self.program, name)

    def __call__(self, costs, basis=None):
        return self.change(self.program(costs, basis))


def test_what_the_solver_says_is_not_believed():
    d = np.array([-1.0, -0.5, 0.25])
    K = Polytope([[1.0, 1.0, 1.0]], [1.5], bounds=(0.0, 1.0))
    best, program = d @ K.lmo(d), K._program
    K.__dict__["_program"] = Liar(program, lambda found: found._replace(x=found.x + 1e-8))
    answer = K.answer(d)
    assert K.infeasibility(answer.vertex.dense(d)) <= 1e-14
    assert 0.0 < answer.vertex.inner(d) - best <= answer.error <= 1e-6
    K.__dict__["_program"] = Liar(program, lambda found: found._replace(x=np.zeros(3)))
    with pytest.raises(
        SolverFailed,
    ):
        K.answer(d)
    K.__dict__["_program"] = Liar(
        program, lambda found: found._replace(multipliers=-found.multipliers)
    )
    with pytest.raises(SolverFailed):
        K.answer(d)
    # a multiplier of the wrong sign would make (0.2, 0.2, 0.2) look best
    upwards = np.array([0.5 * math.sqrt(3.0)])
    K.__dict__["_program"] = Liar(
        program, lambda found: found._replace(x=np.full(3, 0.2), multipliers=upwards)
    )
    with pytest.raises(SolverFailed):
        K.answer(np.ones(3))
    K.__dict__["_program"] = Liar(program, lambda found: None)
    with pytest.raises(SolverFailed):
        K.answer(d)


# --- hulls of points ------------------------------------------------------------------------------


@pytest.mark.soak_examples(60)
@given(seed=seeds, k=st.integers(2, 9), n=st.integers(1, 4))
@settings(max_examples=20)
def test_the_inner_radius_of_a_hull(seed, k, n):
    rng = np.random.default_rng(seed)
    points = rng.integers(-2, 3, (k, n)).astype(float)
    K, spokes = VertexHull(points), points - points.mean(axis=0)
    if K.dimension == 0:
        assert K.inner_radius == 0.0
        return
    along = spokes @ K._basis.T
    for u in rng.standard_normal((20, K.dimension)):
        u /= np.linalg.norm(u)
        assert (along @ u).max() >= K.inner_radius * (1 - 1e-9)
        assert K.infeasibility(K.center + (K.inner_radius * u) @ K._basis) <= 1e-9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generic, "_FLAT", 0)
        bound = VertexHull(points).inner_radius
    assert 0.0 < bound <= K.inner_radius * (1 + 1e-9)
    if len(np.unique(points, axis=0)) == k == K.dimension + 1:
        assert bound == pytest.approx(K.inner_radius, rel=1e-9)


# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "setting"),
    [
        (lambda: Permutahedron([[1.0, 2.0]]), WrongShape, "weights"),
        (lambda: Permutahedron([]), WrongShape, "weights"),
        (lambda: Permutahedron([1.0, np.nan]), NotFinite, "weights"),
        (lambda: Birkhoff(0), InvalidInput, "n"),
        (lambda: Birkhoff(2.5), InvalidInput, "n"),
        (lambda: Transportation([1, 2], [1, 1]), EmptySet, "columns"),
        (lambda: Transportation([2, -1], [1]), EmptySet, "rows"),
        (lambda: Transportation([0], [0, 0]), InvalidInput, "rows"),
        (lambda: Transportation([[1]], [1]), WrongShape, "rows"),
        (lambda: Transportation([1], []), WrongShape, "columns"),
        (lambda: SpanningTrees([]), EmptyGraph, "edges"),
        (
            lambda: SpanningTrees([("a", "b"), ("c", "d"), ("d", "e"), ("f", "f")]),
            GraphError,
            "edges",
        ),
        (lambda: SpanningTrees([(v, v) for v in range(9)]), GraphError, "edges"),
        (lambda: SpanningTrees([(1, 2, 3)]), WrongType, "edges"),
        (lambda: SpanningTrees(7), WrongType, "edges"),
        (lambda: Matching([]), EmptyGraph, "edges"),
        (lambda: Matching(["ab"]), WrongType, "edges"),
        (lambda: Matching([("a", 1), ("b", 1)], perfect=True), EmptySet, "perfect"),
        (
            lambda: Matching([("a", 1), ("b", 1), ("c", 1), ("c", 2), ("c", 3)], perfect=True),
            EmptySet,
            "perfect",
        ),
        (lambda: Polytope([[1, 1], [-1, -1], [5, 0]], [1, -2, 3], bounds=(0, 5)), EmptySet, None),
        (lambda: Polytope(A_eq=[[1, 1]], b_eq=[3], bounds=(0, 1)), EmptySet, None),
        (lambda: Polytope([[0, 0]], [-1], bounds=(0, 1)), EmptySet, None),
        (lambda: Polytope(A_eq=[[0, 0]], b_eq=[2], bounds=(0, 1)), EmptySet, None),
        (lambda: Polytope([[1, -1]], [1], bounds=(0, None)), InvalidInput, None),
        (lambda: Polytope([[-1.0]], [1.0], bounds=[(-5, None)]), InvalidInput, None),
        (lambda: Polytope([[1.0]], [1.0]), InvalidInput, None),
        (lambda: Polytope(A_eq=[[1, 1, 1]], b_eq=[1]), InvalidInput, None),
        (lambda: Polytope([[0.0]], [1.0]), InvalidInput, None),
        (lambda: Polytope(), InvalidInput, None),
        (lambda: Polytope(bounds=(0, 1)), WrongShape, "bounds"),
        (lambda: Polytope([[1, 1]], [1, 2]), WrongShape, "A_ub"),
        (lambda: Polytope([[1, 1]]), InvalidInput, "A_ub"),
        (lambda: Polytope(b_eq=[1]), InvalidInput, "b_eq"),
        (lambda: Polytope([[1, 1]], [1], bounds=[(0, 1)] * 3), WrongShape, None),
        (lambda: Polytope([[1, 1]], [1], bounds=[(0, 1), (2, 1)]), EmptySet, "bounds"),
        (lambda: Polytope([[1, np.nan]], [1], bounds=(0, 1)), NotFinite, "A_ub"),
        (lambda: Polytope([[1, 1]], [1], bounds=(0, np.nan)), NotFinite, "bounds"),
        (lambda: Polytope([[1, 1]], [1], bounds="all"), WrongType, "bounds"),
    ],
)
def test_what_cannot_be_a_set_is_refused_with_a_sentence(make, error, setting):
    with refused(error, setting):
        make()
