"""Flows of many commodities against single flows, linear programs and brute force, and what a
commodity may be refused for.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytopes import vertices_of
from refused import refused
from test_graph_tools import any_links
from tidewolf.core.errors import (
    CyclicGraph,
    EmptyGraph,
    InvalidInput,
    NotAMember,
    NotFinite,
    UnknownNode,
    UnreachableTarget,
    WrongShape,
    WrongType,
)
from tidewolf.core.vertices import Sparse
from tidewolf.functions import Capacity, MaxAffine
from tidewolf.kernels.dag import shortest_paths
from tidewolf.sets import Commodity, FlowPolytope, MultiFlow
from tidewolf.testing import check_set

seeds = st.integers(0, 2**32)


def random_multi_flow(seed: int, nodes: int = 5, links: int = 8, count: int = 3) -> MultiFlow:
    """Commodities between random nodes of a ring with chords, both ways: every one has its own
    graph; some demand nothing.
    """
    rng = np.random.default_rng(seed)
    edges = [
        *((i, (i + 1) % nodes) for i in range(nodes)),
        *(tuple(pair) for pair in rng.integers(0, nodes, (links, 2)).tolist()),
    ]
    edges = [edge for tail, head in edges if tail != head for edge in ((tail, head), (head, tail))]
    ends = [rng.choice(nodes, 2, replace=False).tolist() for _ in range(count)]
    demands = rng.choice([0.0, 0.5, 1.0, 3.7], count)
    return MultiFlow.from_edges(
        edges,
        [(s, t, d) for (s, t), d in zip(ends, demands, strict=True)],
        lengths=rng.uniform(0.1, 1, len(edges)),
    )


multi_flows = st.builds(
    random_multi_flow, seeds, st.integers(3, 6), st.integers(0, 8), st.integers(1, 4)
)


def singles_of(K: MultiFlow) -> list[FlowPolytope]:
    """Each commodity's unit flows on the links it uses."""
    parts = [K.links[start:stop] for start, stop in itertools.pairwise(K.starts)]
    return [
        FlowPolytope.from_edges(
            [(K.nodes[K.tails[e]], K.nodes[K.heads[e]]) for e in part],
            source=K.nodes[source],
            target=K.nodes[target],
        )
        for part, source, target in zip(parts, K.sources, K.targets, strict=True)
    ]


def parts_of(K: MultiFlow, x: np.ndarray) -> list[np.ndarray]:
    return [x[start:stop] for start, stop in itertools.pairwise(K.starts)]


def corners_of(K: MultiFlow) -> np.ndarray:
    """Every choice of a path for every commodity."""
    choices = itertools.product(
        *(demand * vertices_of(one) for one, demand in zip(singles_of(K), K.demands, strict=True))
    )
    return np.array([np.concatenate(choice) for choice in choices])


def few(K: MultiFlow) -> bool:
    return math.prod(len(vertices_of(one)) for one in singles_of(K)) <= 3000


# --- the oracle -----------------------------------------------------------------------------------


@given(K=multi_flows, seed=seeds, ties=st.booleans())
def test_one_pass_answers_as_single_flows_do(K, seed, ties):
    rng = np.random.default_rng(seed)
    d = rng.integers(-1, 2, K.shape).astype(float) if ties else rng.standard_normal(K.shape)
    answers = [
        demand * one.lmo(part)
        for one, demand, part in zip(singles_of(K), K.demands, parts_of(K, d), strict=True)
    ]
    np.testing.assert_array_equal(K.lmo(d), np.concatenate(answers))
    np.testing.assert_array_equal(
        K.lmo(d.astype(np.float32)), K.lmo(d.astype(np.float32).astype(float)).astype(np.float32)
    )
    vertex = K.answer(d).vertex
    assert isinstance(vertex, Sparse)
    assert len(vertex.indices) == np.count_nonzero(K.lmo(d))
    assert not vertex.indices.flags.writeable
    assert not K.lmo(d).flags.writeable


@given(K=multi_flows, seed=seeds)
def test_the_oracle_finds_the_best_of_all_choices_of_paths(K, seed):
    if few(K):
        corners = corners_of(K)
        for d in np.random.default_rng(seed).standard_normal((4, *K.shape)):
            assert d @ K.lmo(d) == pytest.approx((corners @ d).min(), abs=1e-12)


@given(K=multi_flows, seed=seeds)
def test_the_kernel_is_its_source(K, seed):
    d, stack = np.random.default_rng(seed).standard_normal(K.shape), K.stack
    graph, found = (stack.arcs, stack.tails, stack.first), []
    for kernel in (shortest_paths, shortest_paths.plain):
        n = int(stack.begins[-1])
        chosen, values = np.empty(n, dtype=np.int32), np.empty(n)
        count = kernel(d, graph, stack.begins, np.array(K.demands), chosen, values)
        found.append((chosen[:count].tolist(), values[:count].tolist()))
    assert found[0] == found[1]


@given(seed=seeds)
@settings(max_examples=10)
def test_random_networks_keep_every_law(seed):
    check_set(random_multi_flow(seed), seed=seed)


@pytest.mark.parametrize(
    "commodities",
    [
        [("s", "t", 0.0), ("s", "t", 3.0), ("a", "t", 0.0)],
        [("s", "t", 1.0, (0, 3)), ("a", "b", 1e-3), ("s", "t", 1e3, (1, 4))],
        [("s", "t", 0.0), ("a", "t", 0.0)],
    ],
    ids=["some without demand", "single paths of many sizes", "nothing to send"],
)
def test_degenerate_demands_keep_every_law(commodities):
    check_set(
        MultiFlow.from_edges(
            [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "x")], commodities
        )
    )


@given(seed=seeds, nodes=st.integers(2, 7), count=st.integers(0, 12))
def test_one_commodity_is_a_flow_polytope(seed, nodes, count):
    links, lengths = any_links(seed, nodes, count)
    K = MultiFlow.from_edges(links, [(0, nodes - 1, 1.0)], lengths=lengths)
    (one,) = singles_of(K)
    assert (K.dimension, K.shape) == (one.dimension, one.shape)
    for name in ("radius", "diameter", "inner_radius"):
        assert getattr(K, name) == pytest.approx(getattr(one, name), abs=1e-12)
    np.testing.assert_allclose(K.center, one.center, atol=1e-15)
    d = np.random.default_rng(seed).standard_normal(K.shape)
    np.testing.assert_allclose(K.tangent(d), one.tangent(d), atol=1e-12)


# --- geometry -------------------------------------------------------------------------------------


@given(K=multi_flows)
def test_sizes_are_those_of_all_choices_of_paths(K):
    if not few(K):
        return
    corners = corners_of(K)
    assert K.dimension == np.linalg.matrix_rank(corners - corners[0])
    assert K.radius == pytest.approx(np.linalg.norm(corners - K.center, axis=1).max(), abs=1e-12)
    apart = max(np.linalg.norm(corners - corner, axis=1).max() for corner in corners)
    assert apart <= K.diameter + 1e-12
    assert K.diameter <= 2 * K.radius + 1e-12
    ones = zip(singles_of(K), K.demands, strict=True)
    assert K.diameter == pytest.approx(
        math.sqrt(sum((demand * one.diameter) ** 2 for one, demand in ones)), abs=1e-9
    )


def test_all_ways_to_project_agree(monkeypatch):
    from tidewolf.sets import laplacian

    d, found = (
        np.random.default_rng(0).standard_normal((4, *random_multi_flow(2, 6, 8, 4).shape)),
        [],
    )
    methods = []
    for nodes, part, entries in ((10**6, 0, 0), (0, 10**6, 0), (0, 0, 10**9), (0, 0, 0)):
        monkeypatch.setattr(laplacian, "DENSE_NODES", nodes)
        monkeypatch.setattr(laplacian, "PART_NODES", part)
        monkeypatch.setattr(laplacian, "FACTOR_ENTRIES", entries)
        K = random_multi_flow(2, 6, 8, 4)
        found.append([K.tangent(direction) for direction in d])
        methods.append(K._hull.method)
    assert methods == [
        "dense inverse",
        "dense inverse of each part",
        "sparse factor",
        "conjugate gradients",
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)
    np.testing.assert_allclose(found[2], found[0], atol=1e-12)
    np.testing.assert_allclose(found[3], found[0], atol=1e-10)


# --- links ----------------------------------------------------------------------------------------


@given(K=multi_flows, seed=seeds)
def test_loads_add_up_what_a_link_carries(K, seed):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal(K.shape), rng.standard_normal(len(K.tails))
    np.testing.assert_allclose(
        K.loads(x), [x[K.links == e].sum() for e in range(len(K.tails))], atol=1e-12
    )
    np.testing.assert_allclose(K.incidence @ x, K.loads(x), atol=1e-12)
    np.testing.assert_array_equal(K.per_link(w), K.incidence.T @ w)
    assert K.per_link(w) @ x == pytest.approx(w @ K.loads(x), abs=1e-12)
    limit = MaxAffine.one(K.incidence.toarray(), w)
    assert limit.values(x) == pytest.approx(Capacity.one(w).values(K.loads(x)), abs=1e-12)
    assert K.loads(x.astype(np.float32)).dtype == np.float32


@given(K=multi_flows, seed=seeds)
def test_paths_recombine_to_the_flow(K, seed):
    rng = np.random.default_rng(seed)
    x = sum(
        w * K.lmo(d)
        for w, d in zip(rng.dirichlet(np.ones(6)), rng.standard_normal((6, *K.shape)), strict=True)
    )
    kept = x.copy()
    split = K.paths(x)
    np.testing.assert_array_equal(x, kept)
    assert len(split) == len(K.demands)
    again = np.zeros(K.shape)
    for j, (ways, demand) in enumerate(zip(split, K.demands, strict=True)):
        assert sum(path.weight for path in ways) == pytest.approx(demand)
        for weight, links, nodes in ways:
            assert nodes[0] == K.nodes[K.sources[j]]
            assert nodes[-1] == K.nodes[K.targets[j]]
            assert [K.nodes[K.tails[e]] for e in links] == list(nodes[:-1])
            again[[np.flatnonzero((K.owner == j) & (K.links == e))[0] for e in links]] += weight
    np.testing.assert_allclose(again, x, atol=1e-7)
    with pytest.raises(
        NotAMember,
    ):
        K.paths(x + 1.0)


# --- ways in --------------------------------------------------------------------------------------


def test_each_commodity_orients_the_cables_by_its_own_source():
    link_rows = [("a", "b"), ("b", "c"), ("c", "a")]
    links = [*link_rows, *((head, tail) for tail, head in link_rows)]
    K = MultiFlow.from_edges(
        links, [("a", "c", 1.0), Commodity("c", "a", 2.0)], lengths=[1.0, 1.0, 1.5] * 2
    )
    assert [links[e] for e in K.links] == [
        ("a", "b"),
        ("b", "c"),
        ("a", "c"),
        ("c", "a"),
        ("b", "a"),
        ("c", "b"),
    ]
    assert K.owner.tolist() == [0, 0, 0, 1, 1, 1]
    assert repr(K) == "MultiFlow(2 commodities, 6 links, 6 entries, dimension 2)"
    np.testing.assert_array_equal(
        K.lmo(K.per_link([1.0, 1.0, 9.0, 1.0, 1.0, 1.0])), [0, 0, 1, 0, 2, 2]
    )
    np.testing.assert_array_equal(K.loads(K.lmo(np.zeros(6))).sum(), 2 * 1 + 2)


def test_commodities_may_be_told_their_links():
    links = [("s", "a"), ("a", "s"), ("a", "t"), ("s", "t")]
    K = MultiFlow.from_edges(
        links, [("s", "t", 1.0, [2, 0]), ("a", "t", 1.0, (1, 3, 3)), ("s", "t", 1.0, [0, 2, 3])]
    )
    assert K.links.tolist() == [0, 2, 1, 3, 0, 2, 3]
    again = MultiFlow.from_edges(links, [("s", "t", 1.0, [0, 1, 2])], lengths=[1.0, 1.0, 1.0, 1.0])
    assert again.links.tolist() == [0, 2]


LINKS = [("s", "a"), ("a", "b"), ("b", "a"), ("b", "t"), ("x", "y")]


@pytest.mark.parametrize(
    ("commodities", "options", "error", "setting"),
    [
        ([], {}, InvalidInput, "commodities"),
        (7, {}, WrongType, "commodities"),
        (["st"], {}, WrongType, "commodities"),
        ([("s",)], {}, WrongType, "commodities"),
        ([("s", ["t"], 1.0)], {}, WrongType, "commodities"),
        ([("s", "t", 1.0)], {}, CyclicGraph, "commodities"),
        ([("s", "t", -1.0)], {}, InvalidInput, "commodities"),
        ([("s", "t", np.nan)], {}, NotFinite, "commodities"),
        ([("s", "t", "much")], {}, WrongType, "commodities"),
        (
            [("a", "b", 1.0, (1,)), ("s", "y", 1.0)],
            {"lengths": np.ones(5)},
            UnreachableTarget,
            "commodities",
        ),
        ([("s", "q", 1.0)], {"lengths": np.ones(5)}, UnknownNode, "commodities"),
        ([("q", "t", 1.0)], {"lengths": np.ones(5)}, UnknownNode, "commodities"),
        ([("s", "s", 1.0)], {"lengths": np.ones(5)}, InvalidInput, "commodities"),
        ([("s", "t", 1.0, [7])], {}, InvalidInput, "commodities"),
        ([("s", "t", 1.0, 7)], {}, InvalidInput, "commodities"),
        ([("s", "t", 1.0, [4])], {"lengths": [1.0]}, WrongShape, "lengths"),
        ([("s", "t", 1.0, [])], {}, EmptyGraph, "commodities"),
        ([("s", "t", 1.0)], {"lengths": np.ones(4)}, WrongShape, "lengths"),
        ([("s", "t", 1.0)], {"lengths": [1, 1, 0, 1, 1]}, InvalidInput, "lengths"),
    ],
)
def test_what_is_no_commodity_gets_its_sentence(commodities, options, error, setting):
    with refused(error, setting):
        MultiFlow.from_edges(LINKS, commodities, **options)
