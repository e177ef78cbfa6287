"""Flows of one commodity, of many, and within bounds: kernels against plain ways, linear programs,
splitting into paths, and what is refused.
"""

import itertools
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import polytopes
from polytopes import layered, matrix_of, network, random_flow_polytope, singles_of, vertices_of
from refused import refused
from tidewolf.core import errors
from tidewolf.functions import Capacity, MaxAffine
from tidewolf.kernels import network_simplex as simplex
from tidewolf.kernels.graphs import shortest_path, shortest_paths, widest_path
from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow, capacitated_flow
from tidewolf.sets import graphs as graph_module
from tidewolf.sets.capacitated_flow import FlowNetwork, cut_capacity, violated_cut
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)
graphs = st.builds(random_flow_polytope, seeds, st.integers(2, 8), st.sampled_from([0.3, 0.9, 1.5]))


def rngs(seed):
    return np.random.default_rng(seed)


SIZES = st.integers(3, 6), st.integers(0, 8), st.integers(1, 4)
multi_flows = st.builds(lambda seed, *s: polytopes.multi_flow(rngs(seed), *s), seeds, *SIZES)
COUNTS = st.integers(1, 6), st.integers(1, 14)
networks = st.builds(lambda seed, *sizes: network(rngs(seed), *sizes), seeds, *COUNTS)


# --- one commodity --------------------------------------------------------------------------------


def naive_shortest(K, weights):
    """Every path by walking; ties at each node go to the earlier arc, as the pass over arcs sorted
    by head sees them.
    """
    (dag,), dist, into = K.dags, {0: 0.0}, {}
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
    rng, (dag,) = np.random.default_rng(seed), K.dags
    nodes = len(dag.order)
    weights = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
    for kernel in (shortest_path, shortest_path.plain):
        path, flow = np.empty(nodes - 1, dtype=np.int32), np.zeros(nodes - 1)
        count = kernel(weights, K.kernel_data, path, flow)
        assert path[:count].tolist() == naive_shortest(K, weights)
        assert flow.tolist() == [1.0] * count + [0.0] * (nodes - 1 - count)
    x, incidence = rng.standard_normal(K.shape), np.zeros((nodes, len(dag.arcs)))
    incidence[dag.tails, np.arange(len(dag.arcs))] += 1.0
    incidence[dag.heads, np.arange(len(dag.arcs))] -= 1.0
    supply = np.zeros(nodes)
    supply[0], supply[-1] = 1.0, -1.0
    naive = max(0.0, -x[dag.arcs].min(), np.abs(incidence @ x[dag.arcs] - supply).max())
    x[np.delete(np.arange(len(x)), dag.arcs)] = 0.0
    assert K.infeasibility(x) == pytest.approx(naive, abs=1e-12)


@given(K=graphs)
def test_the_center_is_a_flow_that_uses_every_arc_worth_using(K):
    assert K.dags[0].covering_flow().min() > 0.0
    np.testing.assert_array_equal(K.center > 0, vertices_of(K).any(axis=0))
    assert K.infeasibility(K.center) <= 1e-14


@given(K=graphs, seed=seeds, sharp=st.sampled_from([0.05, 1.0]))
def test_paths_recombine_to_the_flow(K, seed, sharp):
    all_paths = vertices_of(K)
    x = np.random.default_rng(seed).dirichlet(np.full(len(all_paths), sharp)) @ all_paths
    kept, split = x.copy(), K.paths(x)
    np.testing.assert_array_equal(x, kept)
    weights = [path.weight for path in split]
    assert sum(weights) == pytest.approx(1.0, abs=1e-12)
    assert weights == sorted(weights, reverse=True)
    assert min(weights) > 0
    assert len({path.arcs for path in split}) == len(split) <= len(K.tails)
    again = np.zeros(K.shape)
    for path in split:
        again[list(path.arcs)] += path.weight
        ends = K.nodes[K.source], K.nodes[K.target]
        assert path.arcs in set(polytopes.paths_of(polytopes.edges_of(K), *ends))
        assert path.nodes == (K.nodes[K.source], *(K.nodes[K.heads[arc]] for arc in path.arcs))
    np.testing.assert_allclose(again, x, atol=1e-7)


@given(K=graphs, seed=seeds)
def test_the_widest_path_is_the_widest_of_all_and_flows_are_relaxed_to_their_box(K, seed):
    flow, (dag,), paths = np.random.default_rng(seed).random(K.shape), K.dags, vertices_of(K)
    for kernel in (widest_path, widest_path.plain):
        path = np.empty(len(dag.order) - 1, dtype=np.int32)
        begin = kernel(flow, (dag.arcs, dag.tails, dag.first), path)
        assert flow[path[begin:]].min() == max(flow[arcs > 0].min() for arcs in paths)
    y = 3 * flow - 1
    np.testing.assert_array_equal(K.relax(y), np.clip(y, 0, paths.max(axis=0)))


# --- the projection on circulations ---------------------------------------------------------------


NAMES = "dense inverse", "sparse factor", "conjugate gradients"
LIMITS = (10**6, 0), (0, 10**9), (0, 0)
WAYS = dict(zip(NAMES, LIMITS, strict=True))


@pytest.mark.parametrize(
    "make",
    [
        *(lambda i=i: FlowPolytope.examples()[i] for i in range(len(FlowPolytope.examples()))),
        lambda: layered(5, 4),
        lambda: random_flow_polytope(3, 12),
        lambda: polytopes.multi_flow(rngs(2), 6, 8, 4),
    ],
)
def test_all_ways_to_project_agree(make, monkeypatch):
    exact = make()
    d = rngs(0).standard_normal((5, *exact.shape))
    units = np.eye(exact.shape[0])[exact._hull.arcs]
    norms = [np.linalg.norm(exact.tangent(unit)) for unit in units]
    np.testing.assert_allclose(exact._hull.unit_norms(), norms, atol=1e-7)
    for way, limits in WAYS.items():
        for name, limit in zip(("DENSE_NODES", "FACTOR_ENTRIES"), limits, strict=True):
            monkeypatch.setattr(graph_module, name, limit)
        K = make()
        assert K._hull.method == way
        assert not K.tangent(np.zeros(K.shape)).any()
        both = ([one.tangent(each) for each in d] for one in (K, exact))
        np.testing.assert_allclose(*both, atol=1e-10)
        assert (K.inner_radius > 0.0) == (K.dimension > 0)
        assert K.inner_radius <= exact.inner_radius * (1 + 1e-12)


def cholesky_entries(matrix):
    """Nonzeros of the factor when nothing cancels: eliminate the pattern node by node."""
    pattern, entries = matrix != 0, 0
    for k in range(len(pattern)):
        below = k + 1 + np.flatnonzero(pattern[k + 1 :, k])
        entries += 1 + len(below)
        pattern[np.ix_(below, below)] = True
    return entries


@given(seed=seeds, n=st.integers(1, 25), density=st.sampled_from([0.05, 0.2, 0.6]))
@settings(max_examples=60)
def test_no_cholesky_factor_has_more_entries_than_the_envelope(seed, n, density):
    from scipy.sparse import csc_array

    rng = np.random.default_rng(seed)
    lower = np.tril(rng.random((n, n)) < density, -1) * rng.random((n, n))
    matrix = lower + lower.T + 10.0 * n * np.eye(n)
    entries = graph_module.envelope(csc_array(matrix))
    assert cholesky_entries(matrix.copy()) <= entries <= n * (n + 1) // 2
    assert graph_module.envelope(csc_array(np.diag(np.ones(n)))) == n


def test_flows_are_pickled_with_whatever_they_have_computed():
    K = layered(30, 30)
    d = np.random.default_rng(0).standard_normal(K.shape)
    before = K.tangent(d)
    assert K._hull.method != "dense inverse"
    np.testing.assert_allclose(pickle.loads(pickle.dumps(K)).tangent(d), before, atol=1e-12)


# --- ways in, and what is no graph ----------------------------------------------------------------


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
    with pytest.raises(errors.CyclicGraph) as caught:
        FlowPolytope.from_edges(edges, source="s", target="t")
    assert set(caught.value.cycle) == cycle
    assert all(step in edges for step in itertools.pairwise(caught.value.cycle))


# --- many commodities -----------------------------------------------------------------------------


def parts_of(K, x):
    return np.split(x, K.starts[1:-1])


@given(K=multi_flows, seed=seeds, ties=st.booleans())
def test_many_flows_are_single_flows_end_to_end(K, seed, ties):
    rng, ones = rngs(seed), list(zip(singles_of(K), K.demands, strict=True))
    d = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
    parts = zip(ones, parts_of(K, d), strict=True)
    alone = [demand * one.lmo(part) for (one, demand), part in parts]
    np.testing.assert_array_equal(K.lmo(d), np.concatenate(alone))
    single = d.astype(np.float32)
    np.testing.assert_array_equal(K.lmo(single), K.lmo(single.astype(float)).astype(np.float32))
    assert len(K.answer(d).vertex.indices) == np.count_nonzero(K.lmo(d))
    center = np.concatenate([demand * one.center for one, demand in ones])
    np.testing.assert_allclose(K.center, center, atol=1e-14)
    diameters = [demand * one.diameter for one, demand in ones]
    assert K.diameter == pytest.approx(np.linalg.norm(diameters), abs=1e-9)
    np.testing.assert_allclose(K.factors.diameters, diameters, atol=1e-9)
    stack, found = K.stack, []
    for kernel in (shortest_paths, shortest_paths.plain):
        chosen, values = np.empty(stack.begins[-1], dtype=np.int32), np.empty(stack.begins[-1])
        graph = (stack.arcs, stack.tails, stack.first)
        count = kernel(d, graph, stack.begins, np.array(K.demands), chosen, values)
        found.append((chosen[:count].tolist(), values[:count].tolist()))
    assert found[0] == found[1]


DIAMOND = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "x")]


@pytest.mark.parametrize(
    "commodities",
    [
        [("s", "t", 0.0), ("s", "t", 3.0), ("a", "t", 0.0)],
        [("s", "t", 1.0, [3, 0]), ("a", "b", 1e-3), ("s", "t", 1e3, (1, 4, 4))],
        [("s", "t", 0.0), ("a", "t", 0.0)],
    ],
    ids=["some without demand", "paths of their own of many sizes", "nothing to send"],
)
def test_degenerate_demands_pass_every_check(commodities):
    check_set(MultiFlow.from_edges(DIAMOND, commodities))


@given(K=multi_flows, seed=seeds)
def test_loads_add_up_what_a_link_carries(K, seed):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal(K.shape), rng.standard_normal(len(K.tails))
    naive = [x[K.links == e].sum() for e in range(len(K.tails))]
    np.testing.assert_allclose(K.loads(x), naive, atol=1e-12)
    np.testing.assert_allclose(K.incidence @ x, K.loads(x), atol=1e-12)
    np.testing.assert_array_equal(K.per_link(w), K.incidence.T @ w)
    assert K.per_link(w) @ x == pytest.approx(w @ K.loads(x), abs=1e-12)
    limit = MaxAffine.one(K.incidence.toarray(), w)
    assert limit.values(x) == pytest.approx(Capacity.one(w).values(K.loads(x)), abs=1e-12)
    assert K.loads(x.astype(np.float32)).dtype == np.float32


@given(K=multi_flows, seed=seeds)
def test_paths_of_every_commodity_are_those_of_its_flow_alone(K, seed):
    rng = rngs(seed)
    x = rng.dirichlet(np.ones(6)) @ [K.lmo(d) for d in rng.standard_normal((6, *K.shape))]
    flows = zip(singles_of(K), K.demands, parts_of(K, x), parts_of(K, K.links), strict=True)
    for found, (single, demand, own, links) in zip(K.paths(x), flows, strict=True):
        alone = single.paths(own / demand) if demand else []
        assert [path.nodes for path in found] == [path.nodes for path in alone]
        assert [path.arcs for path in found] == [tuple(links[[*path.arcs]]) for path in alone]
        weights = [demand * path.weight for path in alone]
        assert [path.weight for path in found] == pytest.approx(weights)
    with pytest.raises(errors.NotAMember):
        K.paths(x + 1.0)


def test_each_commodity_orients_the_cables_by_its_own_source():
    link_rows = [("a", "b"), ("b", "c"), ("c", "a")]
    links = [*link_rows, *((head, tail) for tail, head in link_rows)]
    K = MultiFlow.from_edges(links, [("a", "c", 1.0), ("c", "a", 2.0)], lengths=[1.0, 1.0, 1.5] * 2)
    assert K.links.tolist() == [0, 1, 5, 2, 3, 4]  # a > b > c and a > c; c > a and c > b > a
    assert K.owner.tolist() == [0, 0, 0, 1, 1, 1]
    assert repr(K) == "MultiFlow(2 commodities, 6 links, 6 entries, dimension 2)"
    costs = K.per_link([1.0, 1.0, 9.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(K.lmo(costs), [0, 0, 1, 0, 2, 2])
    np.testing.assert_array_equal(K.loads(K.lmo(np.zeros(6))).sum(), 2 * 1 + 2)


# --- within bounds --------------------------------------------------------------------------------


def program(net, d):
    bounds = np.stack([net.lower, net.upper], axis=1)
    return linprog(d, A_eq=matrix_of(net), b_eq=net.supply, bounds=bounds, method="highs")


@given(net=networks, seed=seeds, ties=st.booleans())
def test_cheapest_flows_agree_with_a_linear_program_cold_and_warm(net, seed, ties):
    rng, K, warm = rngs(seed), CapacitatedFlow(net), None
    for _ in range(4):
        d = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
        best = program(net, d)
        assert best.status == 0
        for start in (None, warm):
            vertex, error, basis = K.answer(d, start)
            assert vertex.inner(d) == pytest.approx(best.fun, abs=1e-7)
            assert 0 <= error <= 1e-10
            assert K.infeasibility(vertex.dense(d)) <= 1e-12
            assert not basis.flags.writeable
            again = K.answer(d, start)
            assert again.vertex.key() == vertex.key()
            np.testing.assert_array_equal(again.warm, basis)
        warm = basis


def test_a_start_that_is_none_does_no_harm():
    K, d = CapacitatedFlow.examples()[0], rngs(0).standard_normal(6)
    value, basis = K.answer(d).vertex.inner(d), K.answer(-d).warm
    cycle = basis.copy()
    cycle[:6] = [1, 0, 0, 1, 1, 1]
    for start in (0 * basis, 0 * basis + 1, -basis, 5 * basis, cycle, basis[:3], basis + 0.0, d):
        assert K.answer(d, start).vertex.inner(d) == pytest.approx(value, abs=1e-12)


@given(net=networks, seed=seeds)
@settings(max_examples=10)
def test_the_network_simplex_is_its_source(net, seed):
    d = rngs(seed).standard_normal(len(net.tails))
    fast = net.cheapest(d)
    names = ("build_tree", "attach", "detach", "basic_flow", "improve", "potential")
    with pytest.MonkeyPatch.context() as patch:
        for name in (*names, "snap_to_bound", "pivot", "proved_gap"):
            patch.setattr(simplex, name, getattr(simplex, name).plain)
        slow = replace(net).cheapest(d)
    np.testing.assert_array_equal(slow.basis, fast.basis)
    np.testing.assert_array_equal(slow.x, fast.x)


@given(net=networks, seed=seeds, pushed=st.floats(0.0, 1.0))
def test_the_gap_bounds_what_any_flow_could_save(net, seed, pushed):
    """Of any flow and any potentials, not only the best."""
    rng = np.random.default_rng(seed)
    costs, pi = rng.standard_normal((2, len(net.tails))), rng.standard_normal(len(net.nodes) + 1)
    x = (1 - pushed) * net.cheapest(costs[0]).x + pushed * net.cheapest(costs[1]).x
    arcs = (net.tails, net.heads, net.room)
    gap = simplex.proved_gap(costs[0], arcs, len(net.tails), x - net.lower, pi)
    assert costs[0] @ (x - net.cheapest(costs[0]).x) <= gap + 1e-9
    assert net.cheapest(1024 * costs[0]).gap == 1024 * net.cheapest(costs[0]).gap


def test_on_a_large_network_potentials_prove_the_answer():
    """Streets both ways between the crossings of a grid; narrow whole bounds; ties. From any start
    the same value, and from that of phase one, too.
    """
    rng, place = rngs(3), np.arange(52 * 52).reshape(52, 52)
    one = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    other = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    ends = (np.concatenate(pair).astype(np.int32) for pair in ((one, other), (other, one)))
    upper, none = rng.integers(1, 9, 4 * len(one) // 2).astype(float), np.zeros(place.size)
    net = FlowNetwork(*ends, 0.0 * upper, upper, none, tuple(range(place.size)))
    net = replace(net, supply=net.balance(np.round(upper * rng.random(len(upper)))))
    assert len(net.tails) > 10_000
    d = rng.integers(-3, 9, len(upper)).astype(float)
    cold = net.cheapest(d)
    assert 0 <= cold.gap <= 1e-9
    assert np.abs(net.balance(cold.x) - net.supply).max() <= 1e-9
    near = d + 0.05 * rng.standard_normal(len(d))
    values = [near @ net.cheapest(near, start).x for start in (None, cold.basis, net.start.basis)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-12)


TWO, SENT = [("s", "t")] * 2, {"s": 1.0, "t": -1.0}


@pytest.mark.parametrize(
    ("edges", "supplies", "lower", "upper"),
    [
        ([("s", "t")], SENT, 0.0, 5.0),
        ([*TWO, ("t", "u")], {"s": 1.0, "t": 1.0, "u": -2.0}, 0.25, [1.0, 0.5, 2.0]),
        ([(0, 0)], {}, 0.0, 2.0),
        ([(0, 1), (1, 0)], {}, 0.0, 0.0),
        (TWO, {"s": 0.3, "t": -0.3}, [0.1, 0.2], 1.0),
        (TWO, {"s": 1e9, "t": -1e9}, 0.0, 3e9),
        (TWO, {"s": 1e-9, "t": -1e-9}, 0.0, 3e-9),
        (TWO, SENT, 0.0, 1e12),
    ],
    ids=["one arc", "full bridge", "loop", "nothing", "rounding", "large", "small", "far bounds"],
)
def test_degenerate_networks_pass_every_check(edges, supplies, lower, upper):
    K = CapacitatedFlow.from_edges(edges, supplies=supplies, lower=lower, upper=upper)
    check_set(K)
    assert K.radius <= math.sqrt(2.0) * max(1.0, *np.abs(K.network.supply))


@given(net=networks)
def test_the_center_keeps_farthest_from_its_nearest_bound(net):
    """Against the linear program: the largest s with lower + s <= x <= upper - s on every arc that
    can change.
    """
    K = CapacitatedFlow(net)
    assert K.infeasibility(K.center) <= 1e-12
    if not K.dimension:
        assert (K.inner_radius, K.radius, K.diameter) == (0.0, 0.0, 0.0)
        return
    unit = np.zeros(len(net.tails))
    unit[K._free] = 1.0
    A = np.hstack([matrix_of(net), np.zeros((len(net.nodes), 1))])
    signs = (np.column_stack([sign * np.eye(len(unit)), unit]) for sign in (-1.0, 1.0))
    rows = np.vstack([*signs])
    costs, sides = [0.0] * len(unit) + [-1.0], np.append(-net.lower, net.upper)
    best = linprog(costs, rows, sides, A, net.supply, (None, None))
    slack = np.minimum(K.center - net.lower, net.upper - K.center)[K._free]
    assert slack.min() == pytest.approx(-best.fun, abs=1e-8)
    assert 0 < slack.min() <= K.inner_radius + 1e-12


def test_on_large_graphs_sizes_are_bounds(monkeypatch):
    exact = CapacitatedFlow.examples()[0]
    monkeypatch.setattr(graph_module, "DENSE_NODES", 0)
    monkeypatch.setattr(capacitated_flow, "RANGED", 0)
    K = CapacitatedFlow.examples()[0]
    assert 0 < K.inner_radius <= exact.inner_radius
    assert exact.radius <= K.radius + 1e-12
    assert exact.diameter <= K.diameter + 1e-12
    d = np.random.default_rng(0).standard_normal(K.shape)
    np.testing.assert_allclose(K.tangent(d), exact.tangent(d), atol=1e-10)


def test_bounds_are_one_number_or_one_for_each_arc():
    edges, given = [("s", "t"), ("t", "s"), ("s", "t")], {"s": 1, "t": -1}
    K = CapacitatedFlow.from_edges(edges, supplies=given, upper=2, lower=[0, 0, 0])
    assert CapacitatedFlow.from_edges(iter(edges), supplies=given, upper=np.full(3, 2.0)) == K
    assert CapacitatedFlow.from_edges(edges, supplies=given, upper=3.0) != K
    np.testing.assert_array_equal(K.lmo(np.array([1.0, -3.0, 2.0])), [2.0, 2.0, 1.0])


# --- what is refused ------------------------------------------------------------------------------

LINE, ARCS = [("s", "t")], [("s", "a"), ("a", "t"), ("t", "s"), ("x", "y")]
LINKS = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("x", "y")]


def one(edges, source, target):
    return lambda: FlowPolytope.from_edges(edges, source=source, target=target)


def many(*commodities, lengths=None):
    return lambda: MultiFlow.from_edges(LINKS, list(commodities), lengths=lengths)


def within(edges=ARCS, *, supplies, **bounds):
    return lambda: CapacitatedFlow.from_edges(edges, supplies=supplies, **bounds)


def paths(share, **options):
    K = layered(2, 2)
    return lambda: K.paths(share * K.center, **options)


TWICE = MultiFlow.from_edges([("s", "t")], [("s", "t", 2.0)])
REFUSED = [
    (one([], "s", "t"), errors.EmptyGraph, None),
    (one(LINE, "a", "t"), errors.UnknownNode, "source"),
    (one(LINE, "s", 7), errors.UnknownNode, "target"),
    (one(LINE, "s", "s"), errors.InvalidInput, "target"),
    (one([("t", "s")], "s", "t"), errors.UnreachableTarget, "target"),
    (one([*LINE, ("s", "t", 3.0)], "s", "t"), errors.WrongType, "edges"),
    (one([("s", ["t"])], "s", "t"), errors.WrongType, "edges"),
    (one(7, "s", "t"), errors.WrongType, "edges"),
    (one(LINE, ["s"], "t"), errors.WrongType, "source"),
    (lambda: FlowPolytope([0, 5], [1, 2], 0, 2, ("a", "b", "c")), errors.InvalidInput, "tails"),
    (lambda: FlowPolytope([0, 1], [1, 2], 0, 9, ("a", "b", "c")), errors.InvalidInput, "target"),
    (lambda: FlowPolytope([0, 1], [1], 0, 1, ("a", "b")), errors.InvalidInput, "heads"),
    (paths(1.5), errors.NotAMember, None),
    (paths(0.0), errors.NotAMember, None),
    (paths(1.0, tolerance=0.9), errors.InvalidInput, None),
    (lambda: TWICE.paths(TWICE.center, tolerance=1e308), errors.InvalidInput, None),
    (many(), errors.InvalidInput, "commodities"),
    (many("st"), errors.WrongType, "commodities"),
    (many(("s", ["t"], 1.0)), errors.WrongType, "commodities"),
    (many(("s", "t", 1.0)), errors.CyclicGraph, "commodities"),
    (
        many(("a", "b", 1.0, (1,)), ("s", "y", 1.0), lengths=np.ones(5)),
        errors.UnreachableTarget,
        "commodities",
    ),
    (many(("s", "q", 1.0), lengths=np.ones(5)), errors.UnknownNode, "commodities"),
    (many(("q", "t", 1.0), lengths=np.ones(5)), errors.UnknownNode, "commodities"),
    (many(("s", "s", 1.0), lengths=np.ones(5)), errors.InvalidInput, "commodities"),
    (many(("s", "t", 1.0, [7])), errors.InvalidInput, "commodities"),
    (many(("s", "t", 1.0, 7)), errors.InvalidInput, "commodities"),
    (many(("s", "t", 1.0, [])), errors.EmptyGraph, "commodities"),
    (many(("s", "t", 1.0), lengths=np.ones(4)), errors.WrongShape, "lengths"),
    (many(("s", "t", 1.0), lengths=[1, 1, 0, 1, 1]), errors.InvalidInput, "lengths"),
    (within(supplies={"s": 2, "t": -2}, upper=[3, 1, 1, 1]), errors.EmptySet, "supplies"),
    (within(supplies={"s": 1.5, "t": -1}, upper=3), errors.EmptySet, "supplies"),
    (within(supplies={}, upper=1, lower=[0, 2, 0, 0]), errors.EmptySet, "lower"),
    (within(supplies={"q": 1}, upper=1), errors.UnknownNode, "supplies"),
    (within(supplies=[1, 2], upper=1), errors.WrongType, "supplies"),
    (within(supplies={}, upper=[1, 2]), errors.WrongShape, "upper"),
    (within(supplies={}, upper=[[1]]), errors.WrongShape, "upper"),
    (within([], supplies={}, upper=1), errors.EmptyGraph, "edges"),
]


@pytest.mark.parametrize(("make", "error", "setting"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_flow_is_refused(make, error, setting):
    with refused(error, setting):
        make()


@given(net=networks, seed=seeds, more=st.sampled_from([0.5, 3.0, 50.0]))
def test_what_has_no_flow_is_refused_with_a_cut_that_proves_it(net, seed, more):
    rng, asked = np.random.default_rng(seed), net.supply.copy()
    asked[rng.integers(len(asked))] += more
    asked[rng.integers(len(asked))] -= more
    net = replace(net, supply=asked)
    exists, cut = program(net, np.zeros(len(net.tails))).status == 0, violated_cut(net)
    assert (cut is None) == exists
    if cut is not None:
        assert net.supply[cut].sum() > cut_capacity(net, cut) + 1e-9
        with pytest.raises(errors.EmptySet):
            CapacitatedFlow(net)


@pytest.mark.parametrize(
    "K", [*FlowPolytope.examples(), layered(3, 4), layered(9, 8), random_flow_polytope(3)]
)
def test_the_kernel_projects_on_circulations_as_the_set_does(K):
    d = np.random.default_rng(0).standard_normal((2, *K.shape))
    for count in (1, 2):
        out = np.empty_like(d)
        K.tangents(d, count, *K.geometry, out)
        for row, found in zip(d[:count], out[:count], strict=True):
            np.testing.assert_allclose(found, K.tangent(row), atol=1e-13)
