"""Flow polytopes against networkx, linear programs and brute force, and everything a graph may be
refused for.
"""

from __future__ import annotations

import itertools
import math
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopes import layered, paths_of, random_flow_polytope, vertices_of
from refused import refused
from tidewolf.core.errors import (
    CyclicGraph,
    EmptyGraph,
    GraphError,
    InvalidInput,
    MissingExtra,
    NotAMember,
    UnknownNode,
    UnreachableTarget,
    WrongShape,
    WrongType,
)
from tidewolf.kernels.dag import covering_flow, flow_infeasibility, shortest_path, widest_path
from tidewolf.kernels.laplacian import factor_entries
from tidewolf.sets import FlowPolytope, laplacian
from tidewolf.sets.laplacian import HullProjection
from tidewolf.testing import check_set

EXAMPLES = [pytest.param(K, id=f"example {i}") for i, K in enumerate(FlowPolytope.examples())]
seeds = st.integers(0, 2**32)
graphs = st.builds(random_flow_polytope, seeds, st.integers(2, 8), st.sampled_from([0.3, 0.9, 1.5]))


@pytest.fixture(scope="module")
def networkx():
    return pytest.importorskip(
        "networkx", reason='networkx is not installed; pip install "tidewolf[graph]" runs this test'
    )


def edges_of(K: FlowPolytope) -> list[tuple[object, object]]:
    return [(K.nodes[tail], K.nodes[head]) for tail, head in zip(K.tails, K.heads, strict=True)]


def useful_of(K: FlowPolytope) -> np.ndarray:
    """Which arcs some path takes, by enumeration."""
    return vertices_of(K).any(axis=0)


# --- the oracle -----------------------------------------------------------------------------------


@given(K=graphs, seed=seeds)
def test_the_oracle_finds_the_best_of_all_paths(K, seed):
    paths = vertices_of(K)
    for d in np.random.default_rng(seed).standard_normal((5, *K.shape)):
        v = K.lmo(d)
        assert (paths == v).all(axis=1).any()
        assert d @ v == pytest.approx((paths @ d).min(), abs=1e-12)


@given(K=graphs, seed=seeds)
def test_the_oracle_agrees_with_bellman_ford_on_negative_weights(networkx, K, seed):
    d = np.random.default_rng(seed).standard_normal(K.shape)
    graph = networkx.DiGraph()
    for (tail, head), weight in zip(edges_of(K), d, strict=True):
        known = graph.get_edge_data(tail, head, {"weight": math.inf})["weight"]
        graph.add_edge(tail, head, weight=min(weight, known))
    source, target = K.nodes[K.source], K.nodes[K.target]
    assert d @ K.lmo(d) == pytest.approx(
        networkx.bellman_ford_path_length(graph, source, target), abs=1e-12
    )


def naive_shortest(K: FlowPolytope, weights: np.ndarray) -> list[int]:
    """Every path by walking; ties at each node go to the earlier arc, as the pass over arcs sorted
    by head sees them.
    """
    dag = K.dag
    dist, into = {0: 0.0}, {}
    for v in range(1, len(dag.order)):
        options = [p for p in range(len(dag.arcs)) if dag.heads[p] == v]
        into[v] = min(options, key=lambda p: dist[int(dag.tails[p])] + weights[dag.arcs[p]])
        dist[v] = dist[int(dag.tails[into[v]])] + weights[dag.arcs[into[v]]]
    path, v = [], len(dag.order) - 1
    while v:
        path.insert(0, int(dag.arcs[into[v]]))
        v = int(dag.tails[into[v]])
    return path


@given(K=graphs, seed=seeds, ties=st.booleans())
def test_the_kernels_are_their_source_and_agree_with_naive_twins(K, seed, ties):
    rng, dag, nodes = np.random.default_rng(seed), K.dag, len(K.dag.order)
    weights = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
    for kernel in (shortest_path, shortest_path.plain):
        path, flow = np.empty(nodes - 1, dtype=np.int32), np.zeros(nodes - 1)
        count = kernel(weights, dag.packed(), path, flow)
        assert path[:count].tolist() == naive_shortest(K, weights)
        assert flow.tolist() == [1.0] * count + [0.0] * (nodes - 1 - count)
    found = []
    for kernel in (covering_flow, covering_flow.plain):
        flow = np.empty(len(dag.arcs))
        found.append((kernel(dag.first, dag.by_tail, dag.first_out, flow), *flow))
    np.testing.assert_array_equal(found[0], found[1])
    x, incidence = rng.standard_normal(K.shape), np.zeros((nodes, len(dag.arcs)))
    incidence[dag.tails, np.arange(len(dag.arcs))] += 1.0
    incidence[dag.heads, np.arange(len(dag.arcs))] -= 1.0
    supply = np.zeros(nodes)
    supply[0], supply[-1] = 1.0, -1.0
    naive = max(0.0, -x[dag.arcs].min(), np.abs(incidence @ x[dag.arcs] - supply).max())
    for kernel in (flow_infeasibility, flow_infeasibility.plain):
        assert kernel(x, dag.arcs, dag.tails, dag.heads, supply.copy()) == pytest.approx(
            naive, abs=1e-12
        )


@given(K=graphs)
def test_the_covering_flow_sends_at_least_one_unit_over_every_arc(K):
    dag, flow = K.dag, np.empty(len(K.dag.arcs))
    value = covering_flow(dag.first, dag.by_tail, dag.first_out, flow)
    assert flow.min() >= 1 - 1e-12
    assert flow[dag.tails == 0].sum() == pytest.approx(value)
    for v in range(1, len(dag.order) - 1):
        assert flow[dag.heads == v].sum() == pytest.approx(flow[dag.tails == v].sum())


def test_ties_go_to_the_earlier_arc():
    K = FlowPolytope.from_edges([(0, 1), (0, 1), (1, 2), (1, 2), (0, 2)], source=0, target=2)
    np.testing.assert_array_equal(K.lmo(np.zeros(5)), [1.0, 0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(
        K.lmo(np.array([0.0, -1.0, 0.0, -1.0, -2.0])), [0.0, 1.0, 0.0, 1.0, 0.0]
    )


# --- geometry -------------------------------------------------------------------------------------


@given(K=graphs)
def test_the_center_is_a_flow_that_uses_every_arc_worth_using(K):
    useful = useful_of(K)
    assert (K.center[useful] > 0).all()
    assert not K.center[~useful].any()
    assert K.infeasibility(K.center) <= 1e-14
    assert not K.center.flags.writeable


@given(K=graphs)
def test_sizes_are_those_of_the_enumerated_paths(K):
    paths = vertices_of(K)
    assert K.dimension == np.linalg.matrix_rank(paths - paths[0])
    assert K.radius == pytest.approx(np.linalg.norm(paths - K.center, axis=1).max(), abs=1e-12)
    apart = np.linalg.norm(paths[:, None] - paths[None], axis=2).max()
    assert apart <= K.diameter + 1e-12
    assert K.diameter <= 2 * K.radius + 1e-12
    on_every_path = paths.all(axis=0)
    longest = (paths[:, ~on_every_path]).sum(axis=1).max()
    assert K.diameter == pytest.approx(min(2 * K.radius, math.sqrt(2 * longest)), abs=1e-12)


@given(K=graphs)
def test_the_inner_ball_touches_the_nearest_facet_and_stays_inside(K):
    """The distance from the center, within the hull, to x_e = 0: least squares over the paths'
    affine hull, arc by arc.
    """
    if K.dimension == 0:
        assert K.inner_radius == 0.0
        return
    paths = vertices_of(K)
    _, sizes, basis = np.linalg.svd(paths - paths[0])
    basis = basis[: (sizes > 1e-9).sum()]
    lengths = np.linalg.norm(basis, axis=0)
    nearest = min(K.center[e] / lengths[e] for e in range(len(lengths)) if lengths[e] > 1e-9)
    assert K.inner_radius == pytest.approx(nearest, abs=1e-12)
    closest = min(
        (e for e in range(len(lengths)) if lengths[e] > 1e-9),
        key=lambda e: K.center[e] / lengths[e],
    )
    towards = -basis.T @ basis[:, closest] / lengths[closest]
    assert K.infeasibility(K.center + K.inner_radius * towards) <= 1e-12
    assert K.infeasibility(K.center + 1.01 * K.inner_radius * towards) > 1e-4 * K.inner_radius


@given(K=graphs, seed=seeds)
@settings(max_examples=8)
def test_random_graphs_keep_every_law(K, seed):
    check_set(K, seed=seed)


# --- splitting a flow into paths ------------------------------------------------------------------


@given(K=graphs, seed=seeds, sharp=st.sampled_from([0.05, 1.0]))
def test_paths_recombine_to_the_flow(K, seed, sharp):
    all_paths = vertices_of(K)
    x = np.random.default_rng(seed).dirichlet(np.full(len(all_paths), sharp)) @ all_paths
    kept = x.copy()
    split = K.paths(x)
    np.testing.assert_array_equal(x, kept)
    weights = [path.weight for path in split]
    assert sum(weights) == pytest.approx(1.0, abs=1e-12)
    assert weights == sorted(weights, reverse=True)
    assert min(weights) > 0
    assert len({path.arcs for path in split}) == len(split) <= len(K.tails)
    again = np.zeros(K.shape)
    for path in split:
        again[list(path.arcs)] += path.weight
        assert path.arcs in set(paths_of(edges_of(K), K.nodes[K.source], K.nodes[K.target]))
        assert path.nodes == (K.nodes[K.source], *(K.nodes[K.heads[arc]] for arc in path.arcs))
    np.testing.assert_allclose(again, x, atol=1e-7)


def test_a_flow_that_thins_out_along_some_ways_is_split_along_others():
    """At each node a tenth goes on and nine tenths go straight to t: the way on is as wide as the
    others, and narrows.
    """
    edges = [(i, i + 1 if j == 0 and i < 10 else "t") for i in range(11) for j in range(10)]
    x = np.array([0.1 ** (i + 1) for i in range(11) for _ in range(10)])
    K = FlowPolytope.from_edges(edges, source=0, target="t")
    again = np.zeros(K.shape)
    for weight, arcs, _ in K.paths(x):
        again[list(arcs)] += weight
    np.testing.assert_allclose(again, x, atol=1e-8)


@given(K=graphs, seed=seeds)
def test_the_widest_path_is_the_widest_of_all_and_flows_are_relaxed_to_their_box(K, seed):
    flow, dag, paths = np.random.default_rng(seed).random(K.shape), K.dag, vertices_of(K)
    for kernel in (widest_path, widest_path.plain):
        path = np.empty(len(dag.order) - 1, dtype=np.int32)
        begin = kernel(
            flow,
            (dag.arcs, dag.tails, dag.first),
            path,
        )
        assert flow[path[begin:]].min() == max(flow[arcs > 0].min() for arcs in paths)
    np.testing.assert_array_equal(
        K.relax(3 * flow - 1), np.clip(3 * flow - 1, 0, paths.max(axis=0))
    )


def test_what_does_not_split_gets_a_sentence():
    K = layered(2, 2)
    with pytest.raises(
        NotAMember,
    ):
        K.paths(1.5 * K.center)
    with pytest.raises(NotAMember):
        K.paths(np.zeros(K.shape))
    with pytest.raises(WrongShape):
        K.paths(np.zeros(2))
    with pytest.raises(InvalidInput):
        K.paths(K.center, tolerance=0.9)


def test_a_flow_with_rounding_still_splits():
    K = layered(6, 5)
    x = K.center + 1e-12 * np.random.default_rng(0).standard_normal(K.shape)
    again = np.zeros(K.shape)
    for weight, arcs, _ in K.paths(x):
        again[list(arcs)] += weight
    np.testing.assert_allclose(again, K.center, atol=1e-6)


# --- the projection on circulations ---------------------------------------------------------------


def three_ways(K: FlowPolytope, monkeypatch) -> list[HullProjection]:
    """The dense inverse, the sparse factor, and conjugate gradients."""
    ways = []
    monkeypatch.setattr(laplacian, "PART_NODES", 0)
    for dense_nodes, entries in ((10**6, 0), (0, 10**9), (0, 0)):
        monkeypatch.setattr(laplacian, "DENSE_NODES", dense_nodes)
        monkeypatch.setattr(laplacian, "FACTOR_ENTRIES", entries)
        ways.append(HullProjection(K.dag.arcs, K.dag.tails, K.dag.heads, len(K.dag.order)))
        assert not ways[-1](np.zeros(K.shape)).any()
    return ways


@pytest.mark.parametrize(
    "K",
    [
        *EXAMPLES,
        pytest.param(layered(5, 4), id="layers"),
        pytest.param(random_flow_polytope(3, 12), id="random"),
    ],
)
def test_all_three_ways_to_project_agree(K, monkeypatch):
    ways = three_ways(K, monkeypatch)
    assert [way.method for way in ways] == ["dense inverse", "sparse factor", "conjugate gradients"]
    for d in np.random.default_rng(0).standard_normal((10, *K.shape)):
        dense, factor, iterative = (way(d) for way in ways)
        np.testing.assert_allclose(factor, dense, atol=1e-12)
        np.testing.assert_allclose(iterative, dense, atol=1e-10)
    assert ways[1].unit_norms() is None
    np.testing.assert_allclose(
        ways[0].unit_norms(),
        [np.linalg.norm(ways[0](unit)) for unit in np.eye(K.shape[0])[K.dag.arcs]],
        atol=1e-7,
    )


def test_without_unit_norms_the_inner_radius_is_a_lower_bound(monkeypatch):
    exact = layered(4, 3).inner_radius
    monkeypatch.setattr(laplacian, "DENSE_NODES", 0)
    K = layered(4, 3)
    assert K.inner_radius == K.center.min()
    assert 0 < K.inner_radius <= exact


# --- ways in --------------------------------------------------------------------------------------


def cholesky_entries(matrix: np.ndarray) -> int:
    """Nonzeros of the factor when nothing cancels: eliminate the pattern node by node."""
    pattern, entries = matrix != 0, 0
    for k in range(len(pattern)):
        below = k + 1 + np.flatnonzero(pattern[k + 1 :, k])
        entries += 1 + len(below)
        pattern[np.ix_(below, below)] = True
    return entries


@given(
    seed=seeds,
    n=st.integers(1, 25),
    density=st.sampled_from([0.05, 0.2, 0.6]),
    limit=st.integers(0, 400),
)
@settings(max_examples=60)
def test_factor_entries_counts_the_cholesky_factor_and_stops_at_its_limit(seed, n, density, limit):
    from scipy.sparse import csc_array

    rng = np.random.default_rng(seed)
    lower = np.tril(rng.random((n, n)) < density, -1) * rng.random((n, n))
    matrix = lower + lower.T + 10.0 * n * np.eye(n)
    true = int((np.abs(np.linalg.cholesky(matrix)) > 1e-14).sum())
    assert true <= cholesky_entries(matrix.copy())
    sparse = csc_array(matrix)
    for kernel in (factor_entries, factor_entries.plain):
        work = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        assert kernel(sparse.indptr, sparse.indices, 10**9, *work) == cholesky_entries(
            matrix.copy()
        )
        counted = kernel(sparse.indptr, sparse.indices, limit, *work)
        assert (counted > limit) == (cholesky_entries(matrix.copy()) > limit)
        assert counted <= limit + n or counted <= cholesky_entries(matrix.copy())
        if cholesky_entries(matrix.copy()) > limit:
            assert counted <= limit + n


def test_from_networkx_takes_edges_in_their_order(networkx):
    graph = networkx.DiGraph([("s", "a"), ("a", "t"), ("s", "t")])
    K = FlowPolytope.from_networkx(graph, source="s", target="t")
    assert FlowPolytope.from_edges(graph.edges(), source="s", target="t") == K
    assert edges_of(K) == list(graph.edges())


@pytest.mark.parametrize("kind", ["Graph", "MultiGraph"])
def test_undirected_graphs_are_refused(networkx, kind):
    with pytest.raises(WrongType):
        FlowPolytope.from_networkx(getattr(networkx, kind)([(0, 1)]), source=0, target=1)
    with pytest.raises(WrongType):
        FlowPolytope.from_networkx([(0, 1)], source=0, target=1)


def test_without_networkx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        MissingExtra,
    ):
        FlowPolytope.from_networkx([(0, 1)], source=0, target=1)


def test_nodes_may_be_anything_hashable_and_edges_any_iterable():
    names = [None, 3, "a", (1, 2), frozenset({4}), 2.5, b"end"]
    edges = [*itertools.pairwise(names), (names[0], names[3])]
    K = FlowPolytope.from_edges((edge for edge in edges), source=None, target=b"end")
    assert set(K.nodes) == set(names)
    assert K.dimension == 1
    assert {path.nodes[-1] for path in K.paths(K.center)} == {b"end"}
    assert FlowPolytope.from_edges([["s", "t"], ("s", "t")], source="s", target="t").dimension == 1
    K = FlowPolytope.from_edges(np.array([[0, 1], [1, 2]]), source=0, target=2)
    assert (K.dimension, repr(K.nodes)) == (0, "(0, 1, 2)")


# --- what is refused, and how ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("s", "s"), ("s", "t")], {"s"}),
        ([("s", "a"), ("a", "s"), ("a", "t")], {"s", "a"}),
        ([("s", "t"), ("x", "y"), ("y", "x")], {"x", "y"}),
        ([("s", 0), *itertools.pairwise(range(50)), (49, 0), (49, "t")], set(range(50))),
    ],
    ids=["self-loop", "there and back", "elsewhere", "long"],
)
def test_cycles_of_every_length_get_the_sentence(edges, cycle):
    with pytest.raises(CyclicGraph) as caught:
        FlowPolytope.from_edges(edges, source="s", target="t")
    assert set(caught.value.cycle) == cycle
    assert all(step in edges for step in itertools.pairwise(caught.value.cycle))


@pytest.mark.parametrize(
    ("edges", "source", "target", "error", "setting"),
    [
        ([], "s", "t", EmptyGraph, None),
        ([("s", "t")], "a", "t", UnknownNode, "source"),
        ([("s", "t")], "s", 7, UnknownNode, "target"),
        ([(i, i + 1) for i in range(9)], "s", 9, UnknownNode, "source"),
        ([("s", "t")], "s", "s", InvalidInput, "target"),
        ([("t", "s")], "s", "t", UnreachableTarget, "target"),
        ([("s", "a"), ("b", "t")], "s", "t", UnreachableTarget, "target"),
        ([("s", "t"), ("s", "t", 3.0)], "s", "t", WrongType, "edges"),
        ([("s",)], "s", "t", WrongType, "edges"),
        ([7], "s", "t", WrongType, "edges"),
        ([("s", ["t"])], "s", "t", WrongType, "edges"),
        ([("s", "t")], ["s"], "t", WrongType, "source"),
        ([("s", "t")], "s", ("t", []), WrongType, "target"),
        (7, "s", "t", WrongType, "edges"),
    ],
)
def test_what_is_no_graph_gets_its_sentence(edges, source, target, error, setting):
    with refused(error, setting):
        FlowPolytope.from_edges(edges, source=source, target=target)
    assert issubclass(error, InvalidInput)
    assert issubclass(UnknownNode, GraphError)


def test_flows_are_pickled_with_whatever_they_have_computed():
    K = layered(30, 30)
    d = np.random.default_rng(0).standard_normal(K.shape)
    before = K.tangent(d)
    assert K._hull.method != "dense inverse"
    np.testing.assert_allclose(pickle.loads(pickle.dumps(K)).tangent(d), before, atol=1e-12)
