"""Tunnels: the k shortest paths, in order, and what is made of them."""

import math
from itertools import combinations, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refused import refused
from tidewolf.core import errors
from tidewolf.networks import Network, Tunnels
from tidewolf.networks.tunnels import PathFinder
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
@settings(max_examples=150)
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
        assert len(set(found)) == len(found) == min(k, len(every))
        assert found == sorted(found, key=every.index)  # which has them all
        if whole:  # lengths are exact, and fewer links decide between equal ones
            assert ranks(found) == ranks(every)[:k]
        lengths_of = [[length for length, _ in ranks(paths)] for paths in (found, every[:k])]
        np.testing.assert_allclose(*lengths_of)


def test_a_pair_has_its_shortest_paths_and_no_more_than_there_are():
    tunnels = Tunnels(DIAMOND, [("s", "t"), ("a", "b"), ("b", "t")], k=3)
    assert tunnels.splits == SimplexProduct([3, 1, 1], tunnels.names)
    assert tunnels.path_pair.tolist() == [0, 0, 0, 1, 2]
    assert tunnels.names == ("s > t", "s > t via a", "s > t via b", "a > b", "b > t")
    assert len(Tunnels(DIAMOND, [("s", "t")], k=100).paths) == 4
    links = [("s", "t"), ("s", "t"), (1, "t"), ("1", "t"), ("s", "t", 2.0)]
    tunnels = Tunnels(links, [("s", "t"), (1, "t"), ("1", "t")])
    assert tunnels.names == ("s > t", "s > t (2)", "s > t (3)", "1 > t", "1 > t (2)")


def test_lengths_decide_and_capacities_are_kept():
    tunnels = Tunnels([("s", "t", 5.0, 10), ("s", "a", 1, 2.0), ("a", "t", 1.5, 4)], [("s", "t")])
    assert [path.length for path in tunnels.paths] == [2.5, 5.0]
    assert tunnels.lengths.tolist() == [5.0, 1.0, 1.5]
    assert tunnels.capacities.tolist() == [10.0, 2.0, 4.0]
    assert Tunnels([("s", "t", 5.0, 10), ("s", "a", 1)], [("s", "t")]).capacities is None


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


@pytest.mark.parametrize(
    ("graph", "pairs", "k", "error", "setting"),
    [
        (DIAMOND, [("t", "s")], 3, errors.UnreachableTarget, "pairs"),
        (DIAMOND, [("s", "z")], 3, errors.UnknownNode, "pairs"),
        (DIAMOND, [("s", "s")], 3, errors.InvalidInput, "pairs"),
        (DIAMOND, [("s", "t"), ("s", "t")], 3, errors.InvalidInput, "pairs"),
        (DIAMOND, [], 3, errors.InvalidInput, "pairs"),
        (DIAMOND, ["st"], 3, errors.WrongType, "pairs"),
        (DIAMOND, [("s", [])], 3, errors.WrongType, "pairs"),
        (DIAMOND, [("s", "t")], 0, errors.InvalidInput, "k"),
        ([], [("s", "t")], 3, errors.InvalidInput, "graph"),
        (["st"], [("s", "t")], 3, errors.WrongType, "graph"),
        ([("s", "t", 0.0)], [("s", "t")], 3, errors.InvalidInput, "graph"),
        ([("s", "t", 1.0, -1)], [("s", "t")], 3, errors.InvalidInput, "graph"),
        ([("s", "t", math.nan)], [("s", "t")], 3, errors.NotFinite, "graph"),
    ],
)
def test_an_error_names_the_setting(graph, pairs, k, error, setting):
    with refused(error, setting):
        Tunnels(graph, pairs, k)


@pytest.mark.parametrize("seed", range(12))
def test_disjoint_paths_are_as_many_as_can_be_and_the_shortest_together(seed):
    networkx, rng = pytest.importorskip("networkx"), np.random.default_rng(seed)
    every = [(i, j) for i in range(6) for j in range(6) if i != j]
    chosen = rng.choice(len(every), 14, replace=False)
    links = [(*every[i], float(rng.integers(1, 9))) for i in chosen]
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(links)
    if not graph.has_node(0) or not graph.has_node(5) or not networkx.has_path(graph, 0, 5):
        return
    most = len(list(networkx.edge_disjoint_paths(graph, 0, 5)))
    simple = [[*pairwise(path)] for path in networkx.all_simple_paths(graph, 0, 5)]
    length = {link[:2]: link[2] for link in links}
    for k in range(1, most + 2):
        tunnels = Tunnels(links, [(0, 5)], k, disjoint=True)
        used = [link for path in tunnels.paths for link in path.links]
        assert len(tunnels.paths) == min(k, most)
        assert len(set(used)) == len(used)
        best = min(
            sum(length[link] for path in some for link in path)
            for some in combinations(simple, min(k, most))
            if len({link for path in some for link in path}) == sum(map(len, some))
        )
        assert sum(path.length for path in tunnels.paths) == pytest.approx(best)


def test_tunnels_that_share_their_narrowest_link_are_reported():
    narrow = [
        ("s", "a", 1.0, 2.0),
        ("a", "b", 1.0, 5.0),
        ("b", "t", 1.0, 5.0),
        ("a", "t", 1.0, 5.0),
    ]
    network = Network(narrow, source="s", target="t", paths="k-shortest")
    assert network.tunnels.shared_bottlenecks == (("s > t", 0),)
    assert any("s > a" in note and "disjoint" in note for note in network.notes)
    wide = [("s", "a", 1.0, 9.0), *narrow[1:3], ("a", "t", 1.0, 4.0)]
    other = Network(wide, source="s", target="t", paths="k-shortest")
    assert other.tunnels.shared_bottlenecks == ()
    alone = Network(narrow, source="s", target="t", paths="k-shortest", disjoint=True)
    assert len(alone.tunnels.paths) == 1
    assert alone.tunnels.shared_bottlenecks == ()
    with pytest.raises(errors.InvalidInput) as error:
        Network(narrow, source="s", target="t", disjoint=True)
    assert error.value.setting == "disjoint"


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
    with refused(errors.InvalidInput, "capacities"):
        Tunnels(RING, [(0, 2)]).max_utilization([[1.0]])
    with refused(errors.WrongShape, "demands"):
        tunnels.max_utilization(np.ones((1, 5)))
