"""Tunnels: the k shortest paths, in order, and what is made of them."""

from __future__ import annotations

import math
import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewolf.core.errors import (
    InvalidInput,
    NotFinite,
    UnknownNode,
    UnreachableTarget,
    WrongShape,
    WrongType,
)
from tidewolf.networks import Tunnels
from tidewolf.networks.shortest_paths import PathFinder
from tidewolf.sets import SimplexProduct

DIAMOND = [("s", "a"), ("a", "t"), ("s", "b"), ("b", "t"), ("s", "t"), ("a", "b")]
RING = [(i, (i + step) % 5) for step in (1, 4) for i in range(5)]


def every_path(tails, heads, lengths, source, target):
    """All paths without loops, by walking, in the order they are wanted in."""
    found, walks = [], [((), (source,))]
    while walks:
        path, nodes = walks.pop()
        if nodes[-1] == target:
            found.append((math.fsum(lengths[e] for e in path), len(path), path))
            continue
        for e, (tail, head) in enumerate(zip(tails, heads, strict=True)):
            if tail == nodes[-1] and head not in nodes:
                walks.append(((*path, e), (*nodes, head)))
    return [path for *_, path in sorted(found)]


@given(
    nodes=st.integers(2, 6),
    count=st.integers(1, 14),
    k=st.integers(1, 9),
    whole=st.booleans(),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=300)
def test_paths_are_the_shortest_of_all_in_order(nodes, count, k, whole, seed):
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, nodes, (2, count)).tolist()  # loops and parallel links too
    lengths = (rng.integers(1, 4, count).astype(float) if whole else rng.random(count)).tolist()
    finder = PathFinder(nodes, tails, heads, lengths)

    def ranks(paths):
        return [(math.fsum(lengths[e] for e in path), len(path)) for path in paths]

    for source, target in permutations(range(nodes), 2):
        every = every_path(tails, heads, lengths, source, target)
        found = finder.shortest_paths(source, target, k)
        assert set(found) <= set(every)
        assert len(set(found)) == len(found) == min(k, len(every))
        assert found == sorted(found, key=every.index)
        if whole:  # lengths are exact, and fewer links decide between equal ones
            assert ranks(found) == ranks(every)[:k]
        np.testing.assert_allclose(
            *([length for length, _ in ranks(p)] for p in (found, every[:k]))
        )


def test_a_pair_has_its_shortest_paths_and_no_more_than_there_are():
    tunnels = Tunnels(DIAMOND, [("s", "t"), ("a", "b"), ("b", "t")], k=3)
    assert [path.nodes for path in tunnels.paths] == [
        ("s", "t"),
        ("s", "a", "t"),
        ("s", "b", "t"),
        ("a", "b"),
        ("b", "t"),
    ]
    assert [path.length for path in tunnels.paths] == [1.0, 2.0, 2.0, 1.0, 1.0]
    assert tunnels.splits == SimplexProduct([3, 1, 1], tunnels.names)
    assert tunnels.path_pair.tolist() == [0, 0, 0, 1, 2]
    assert tunnels.names == ("s > t", "s > t via a", "s > t via b", "a > b", "b > t")
    assert len(Tunnels(DIAMOND, [("s", "t")], k=100).paths) == 4
    assert repr(tunnels) == "Tunnels(6 links, 3 pairs, 5 paths)"


def test_incidence_says_which_links_a_path_uses():
    tunnels = Tunnels(RING, [(0, 2), (3, 1)], k=2)
    table = tunnels.incidence.toarray()
    assert table.shape == (10, 4)
    for p, path in enumerate(tunnels.paths):
        assert np.flatnonzero(table[:, p]).tolist() == sorted(path.links)
        assert [RING[link] for link in path.links] == list(
            zip(path.nodes, path.nodes[1:], strict=False)
        )


def test_names_are_unique():
    links = [("s", "t"), ("s", "t"), (1, "t"), ("1", "t"), ("s", "t", 2.0)]
    tunnels = Tunnels(links, [("s", "t"), (1, "t"), ("1", "t")])
    assert tunnels.names == ("s > t", "s > t (2)", "s > t (3)", "1 > t", "1 > t (2)")


def test_lengths_decide_and_capacities_are_kept():
    tunnels = Tunnels([("s", "t", 5.0, 10), ("s", "a", 1, 2.0), ("a", "t", 1.5, 4)], [("s", "t")])
    assert [path.length for path in tunnels.paths] == [2.5, 5.0]
    assert tunnels.lengths.tolist() == [5.0, 1.0, 1.5]
    assert tunnels.capacities.tolist() == [10.0, 2.0, 4.0]
    assert Tunnels([("s", "t", 5.0, 10), ("s", "a", 1)], [("s", "t")]).capacities is None


def test_it_is_a_value():
    tunnels = Tunnels(iter(DIAMOND), iter([("s", "t")]))
    again = Tunnels([list(link) for link in DIAMOND], [["s", "t"]])
    assert tunnels == again == pickle.loads(pickle.dumps(tunnels))
    assert hash(tunnels) == hash(again)
    assert tunnels != Tunnels(DIAMOND, [("s", "t")], k=2)
    assert Tunnels(np.array([[0, 1], [1, 2]]), [(0, 2)]).names == ("0 > 2 via 1",)


def test_networkx_graphs():
    import networkx

    graph = networkx.Graph()
    graph.add_edge("s", "a", weight=2.0, capacity=7.0)
    graph.add_edge("a", "t", length=1.0, weight=9.0, capacity=3.0)
    tunnels = Tunnels(graph, [("s", "t"), ("t", "s")])
    assert tunnels.links == (("s", "a"), ("a", "s"), ("a", "t"), ("t", "a"))
    assert tunnels.lengths.tolist() == [2.0, 2.0, 1.0, 1.0]
    assert tunnels.capacities.tolist() == [7.0, 7.0, 3.0, 3.0]
    directed = Tunnels(networkx.MultiDiGraph([("s", "t"), ("s", "t")]), [("s", "t")])
    assert directed.names == ("s > t", "s > t (2)")
    plain = Tunnels([(u, v) for u, v in networkx.DiGraph(RING).edges()], [(0, 3)])
    assert plain == Tunnels(networkx.DiGraph(RING), [(0, 3)])


def test_k_shortest_paths_agree_with_networkx():
    import networkx

    rng = np.random.default_rng(0)
    graph = networkx.gnp_random_graph(20, 0.2, seed=3, directed=True)
    for _, _, said in graph.edges(data=True):
        said["length"] = float(rng.random() + 0.1)
    pairs = [(s, t) for s in (0, 5) for t in range(20) if networkx.has_path(graph, s, t) and s != t]
    tunnels = Tunnels(graph, pairs, k=6)
    for i, (source, target) in enumerate(pairs):
        paths = networkx.shortest_simple_paths(graph, source, target, weight="length")
        ours = [path.nodes for p, path in enumerate(tunnels.paths) if tunnels.path_pair[p] == i]
        assert ours == [tuple(path) for path, _ in zip(paths, ours, strict=False)]


@pytest.mark.parametrize(
    ("graph", "pairs", "k", "error", "setting", "words"),
    [
        (DIAMOND, [("t", "s")], 3, UnreachableTarget, "pairs", "No path leads from 't' to 's'"),
        (DIAMOND, [("s", "z")], 3, UnknownNode, "pairs", "target of a pair, 'z' is not a node"),
        (DIAMOND, [("z", "s")], 3, UnknownNode, "pairs", "source of a pair, 'z' is not a node"),
        (DIAMOND, [("s", "s")], 3, InvalidInput, "pairs", "both its source and its target"),
        (DIAMOND, [("s", "t"), ("s", "t")], 3, InvalidInput, "pairs", "twice, at 0 and 1"),
        (DIAMOND, [], 3, InvalidInput, "pairs", "at least one"),
        (DIAMOND, ["st"], 3, WrongType, "pairs", "Pair 0 of pairs of Tunnels is 'st'"),
        (DIAMOND, [("s", [])], 3, WrongType, "pairs", "two names"),
        (DIAMOND, 5, 3, WrongType, "pairs", "must be a list"),
        (DIAMOND, [("s", "t")], 0, InvalidInput, "k", "at least 1"),
        ([], [("s", "t")], 3, InvalidInput, "graph", "no links"),
        (["st"], [("s", "t")], 3, WrongType, "graph", "Link 0 of graph of Tunnels is 'st'"),
        ([("s",)], [("s", "t")], 3, WrongType, "graph", "perhaps its length"),
        ([("s", "t", 0.0)], [("s", "t")], 3, InvalidInput, "graph", "length must be greater"),
        (
            [("s", "t", 1.0, -1)],
            [("s", "t")],
            3,
            InvalidInput,
            "graph",
            "capacity must be at least 0",
        ),
        ([("s", "t", math.nan)], [("s", "t")], 3, NotFinite, "graph", "must be finite"),
        ("links", [("s", "t")], 3, WrongType, "graph", "must be a list"),
    ],
)
def test_what_is_wrong_is_said(graph, pairs, k, error, setting, words):
    with pytest.raises(error, match=words) as caught:
        Tunnels(graph, pairs, k)
    assert caught.value.setting == setting


def test_max_utilization_is_load_over_capacity():
    links = [(*link, 1.0, 2.0 + i) for i, link in enumerate(RING)]
    tunnels = Tunnels(links, [(0, 2), (3, 1), (4, 2)], k=2)
    rng = np.random.default_rng(1)
    demands, x = rng.random((4, 3)), rng.dirichlet(np.ones(2), 3).reshape(-1)
    f = tunnels.max_utilization(demands)
    assert f.shape == tunnels.splits.shape
    for t, value in enumerate(f.values(x)):
        load = np.zeros(10)
        for share, path, pair in zip(x, tunnels.paths, tunnels.path_pair, strict=True):
            load[list(path.links)] += share * demands[t, pair]
        assert value == pytest.approx((load / (2.0 + np.arange(10))).max())
    assert tunnels.max_utilization(demands, np.ones(10)).values(x)[0] > f.values(x)[0]
    with pytest.raises(InvalidInput, match="link 0 > 1 has no capacity; give capacities="):
        Tunnels(RING, [(0, 2)]).max_utilization([[1.0]])


def test_demands_have_a_column_for_each_pair():
    tunnels = Tunnels([("a", "b", 1.0, 2.0), ("b", "c", 1.0, 2.0)], [("a", "b")])
    with pytest.raises(WrongShape, match="a column for each of the 1 pairs"):
        tunnels.max_utilization(np.array([[1.0, 5.0, 7.0]]))
