"""Tunnels: the k shortest paths, in order, and what is made of them. Networks: what is decided on a
graph, and how loads, costs and limits follow from it.
"""

import math
from itertools import combinations, compress, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core import errors
from tidewolf.core.errors import InvalidInput, UnknownNode, UnreachableTarget, WrongShape
from tidewolf.networks import Network, Tunnels
from tidewolf.networks.network import PATHS, shortest_path_dag
from tidewolf.networks.tunnels import PathFinder
from tidewolf.sets import SimplexProduct, graph_tools

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


@given(st.integers(2, 6), st.integers(1, 14), st.integers(1, 9), st.booleans(), st.integers(0, 999))
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
        ("s", "a", 1.0, 2.0), ("a", "b", 1.0, 5.0), ("b", "t", 1.0, 5.0), ("a", "t", 1.0, 5.0),
    ]  # fmt: skip
    network = Network(narrow, source="s", target="t", paths="k-shortest")
    assert network.tunnels.shared_bottlenecks == (("s > t", 0),)
    assert any("s > a" in note and "disjoint" in note for note in network.notes)
    wide = [("s", "a", 1.0, 9.0), *narrow[1:3], ("a", "t", 1.0, 4.0)]
    other = Network(wide, source="s", target="t", paths="k-shortest")
    assert other.tunnels.shared_bottlenecks == ()
    alone = Network(narrow, source="s", target="t", paths="k-shortest", disjoint=True)
    assert len(alone.tunnels.paths) == 1
    assert alone.tunnels.shared_bottlenecks == ()
    with refused(errors.InvalidInput, "disjoint"):
        Network(narrow, source="s", target="t", disjoint=True)


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


# --- networks with demands ------------------------------------------------------------------------


NEXT = {
    "SEA": ("SFO", "DEN"), "SFO": ("LAX", "DEN"), "LAX": ("HOU",), "DEN": ("CHI", "HOU"),
    "HOU": ("ATL",), "CHI": ("ATL", "NYC"), "ATL": ("NYC",),
}  # fmt: skip
BACKBONE = [(tail, head) for tail, heads in NEXT.items() for head in heads]
BOTH_WAYS = [*BACKBONE, *((head, tail) for tail, head in BACKBONE)]
ONE = {"source": "SEA", "target": "NYC", "demand": 10.0}
SEVERAL = {"source": {"SEA": 0.6, "SFO": 0.4}, "target": {"NYC": 0.5, "ATL": 0.5}, "demand": 4.0}
MANY = {"commodities": [("SEA", "NYC", 10.0), ("NYC", "SEA", 5.0), ("LAX", "CHI", 0.0)]}
CASES = [(given, paths) for given in (ONE, SEVERAL, MANY) for paths in PATHS]
CASES.remove((SEVERAL, "k-shortest"))
each_case = pytest.mark.parametrize(("given_", "paths"), CASES)


def members(network, rng, count=3):
    """Vertices and mixtures of them."""
    K = network.K
    vertices = [K.lmo(rng.normal(size=K.shape)) for _ in range(count)]
    return [*vertices, rng.dirichlet(np.ones(count)) @ np.array(vertices), K.center]


@each_case
@pytest.mark.parametrize("moving", [False, True])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_costs_and_limits_are_those_of_the_loads(given_, paths, moving, seed):
    network, rng = Network(BOTH_WAYS, **given_, paths=paths), np.random.default_rng(seed)
    rounds, links = 3, len(BOTH_WAYS)
    costs = rng.normal(size=(rounds, links))
    capacities = rng.uniform(0.0, 12.0, (rounds, links))
    capacities[:, rng.random(links) < 0.3] = np.inf
    demands = rng.uniform(0.0, 9.0, (rounds, len(network.demands))) if moving else None
    losses, limits = network.losses(costs, demands), network.limits(capacities, demands)
    for x in members(network, rng):
        for t in range(rounds):
            loads = network.loads(x, None if demands is None else demands[t])
            assert losses.values(x)[t] == pytest.approx(costs[t] @ loads, abs=1e-9)
            over = (loads - capacities[t])[np.isfinite(capacities[t]) & used(network)]
            expected = -1.0 if not len(over) else over.max() / network.unit
            assert limits.values(x)[t] == pytest.approx(expected, abs=1e-9)


def used(network):
    return np.diff(network.incidence.indptr) > 0


@each_case
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_paths_carry_what_links_do_but_for_circles(given_, paths, seed):
    network, rng = Network(BOTH_WAYS, **given_, paths=paths), np.random.default_rng(seed)
    place = {link: i for i, link in enumerate(network.links)}
    for x in members(network, rng):
        shares, loads = network.path_shares(x), np.zeros(len(network.links))
        for path in shares:
            demand = next(each for each in network.demands if each.name == path.commodity)
            assert path.nodes[0] in demand.sources
            assert path.nodes[-1] in demand.targets
            assert len(set(path.nodes)) == len(path.nodes)
            assert path.volume == pytest.approx(path.share * demand.volume)
            for link in zip(path.nodes, path.nodes[1:], strict=False):
                loads[place[link]] += path.volume
        for demand in network.demands:
            own = [path for path in shares if path.commodity == demand.name]
            assert sum(path.share for path in own) == pytest.approx(1.0)
            for ends, at in ((demand.sources, 0), (demand.targets, -1)):
                for node, share in ends.items():
                    sent = sum(path.share for path in own if path.nodes[at] == node)
                    assert sent == pytest.approx(share, abs=1e-7)
        assert (loads <= network.loads(x) + 1e-6).all()
        if paths != "all" and given_ is not SEVERAL:  # no circles there
            np.testing.assert_allclose(loads, network.loads(x), atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), whole=st.booleans())
def test_what_leads_outward_has_no_cycle_and_all_that_leads_away(seed, whole):
    rng = np.random.default_rng(seed)
    nodes, count = int(rng.integers(2, 8)), int(rng.integers(1, 25))
    links = [(int(u), int(v)) for u, v in rng.integers(0, nodes, (count, 2)) if u != v]
    links += [(0, nodes - 1)] if not {0, nodes - 1} <= {n for link in links for n in link} else []
    lengths = rng.integers(1, 3, len(links)).astype(float) if whole else rng.random(len(links)) + 1
    try:
        kept = shortest_path_dag(links, lengths, 0, nodes - 1)
    except UnreachableTarget:
        with pytest.raises(UnreachableTarget):
            graph_tools.useful(links, source=0, target=nodes - 1)
        return
    some = [links[i] for i in kept]
    assert graph_tools.count_paths(some, source=0, target=nodes - 1) >= 1  # refuses cycles
    assert set(graph_tools.away(links, source=0, target=nodes - 1, lengths=lengths)) <= set(kept)


@each_case
def test_every_link_is_used_or_cut_and_learners_play_the_rest(given_, paths):
    network, rng = Network(BOTH_WAYS, **given_, paths=paths), np.random.default_rng(0)
    cut = [each.link for each in network.cut]
    assert cut == list(compress(network.link_names, ~used(network)))
    assert network.notes == () if not cut else f"{len(cut)} of 22 links" in network.notes[0]
    assert len(set(network.names)) == network.K.shape[0]
    if paths != "k-shortest":
        assert network.names == network.K.names
    capacities = network.unit * (0.4 + rng.random((12, len(BOTH_WAYS))))
    losses = network.losses(1.0 + rng.random((12, len(BOTH_WAYS))))
    stream = tw.Stream(losses, network.limits(capacities))
    resolving = tw.Ensemble(network.K, experts=[tw.experts.Resolve()])
    for learner in (resolving, tw.baselines.SinhaVaze(network.K)):
        run = tw.run(learner, stream)
        assert run.certificate.holds in (True, None)
        assert run.max_infeasibility < 1e-9


def test_names_say_whose_entry_is_where():
    assert "SEA > NYC: SEA > DEN" in Network(BOTH_WAYS, **MANY).names
    assert "SEA > DEN" in Network(BOTH_WAYS, **ONE).names
    assert "SEA > NYC via DEN, CHI" in Network(BOTH_WAYS, **ONE, paths="k-shortest").names
    named = Network([("SEA", "NYC", 1.0, None, "cable 7")], source="SEA", target="NYC")
    assert named.names == ("cable 7",)


@pytest.mark.parametrize(
    ("given_", "error", "setting"),
    [
        ({"source": "SEA"}, InvalidInput, None),
        ({}, InvalidInput, None),
        ({**ONE, **MANY}, InvalidInput, None),
        ({"source": "SAE", "target": "NYC"}, UnknownNode, "source"),
        ({"source": "SEA", "target": "SEA"}, InvalidInput, "target"),
        ({"source": {"SEA": 0.6}, "target": "NYC"}, InvalidInput, "source"),
        ({**SEVERAL, "paths": "k-shortest"}, InvalidInput, "paths"),
        ({"commodities": [("SEA", "NYC", 1), ("SEA", "NYC", 2)]}, InvalidInput, "commodities"),
        ({**ONE, "paths": "some"}, InvalidInput, "paths"),
    ],
)
def test_what_is_wrong_is_refused(given_, error, setting):
    with refused(error, setting):
        Network(BOTH_WAYS, **given_)


@pytest.mark.parametrize("paths", PATHS)
def test_a_target_that_nothing_reaches_is_refused(paths):
    with refused(tw.core.errors.TidewolfError):
        Network([("s", "a"), ("t", "a")], source="s", target="t", paths=paths)


@pytest.mark.parametrize("what", ["costs", "capacities", "demands"])
def test_rows_of_another_width_are_refused(what):
    network = Network(BOTH_WAYS, **MANY)
    full, narrow = np.ones((2, len(BOTH_WAYS))), np.ones((2, 5))
    make = network.limits if what == "capacities" else network.losses
    rows = (full, narrow) if what == "demands" else (narrow,)
    with refused(WrongShape, what):
        make(*rows)
    with refused(InvalidInput, "demands"):
        network.losses(full, -np.ones((2, 3)))
