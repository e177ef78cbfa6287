"""Networks: what is decided on a graph, and how loads, costs and limits follow from it."""

from itertools import compress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from refused import refused
from tidewolf.core.errors import InvalidInput, UnknownNode, UnreachableTarget, WrongShape
from tidewolf.networks import Network
from tidewolf.networks.network import PATHS, shortest_path_dag
from tidewolf.sets import graph_tools

NEXT = {
    "SEA": ("SFO", "DEN"),
    "SFO": ("LAX", "DEN"),
    "LAX": ("HOU",),
    "DEN": ("CHI", "HOU"),
    "HOU": ("ATL",),
    "CHI": ("ATL", "NYC"),
    "ATL": ("NYC",),
}
BACKBONE = [(tail, head) for tail, heads in NEXT.items() for head in heads]
BOTH_WAYS = [*BACKBONE, *((head, tail) for tail, head in BACKBONE)]
ONE = {"source": "SEA", "target": "NYC", "demand": 10.0}
SEVERAL = {"source": {"SEA": 0.6, "SFO": 0.4}, "target": {"NYC": 0.5, "ATL": 0.5}, "demand": 4.0}
MANY = {"commodities": [("SEA", "NYC", 10.0), ("NYC", "SEA", 5.0), ("LAX", "CHI", 0.0)]}
CASES = [
    (given, paths)
    for given in (ONE, SEVERAL, MANY)
    for paths in PATHS
    if (given, paths) != (SEVERAL, "k-shortest")
]
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
