"""Networks on pages: places of nodes, loads and utilisation of links, paths, in every kind of
network.
"""

from collections import Counter
from datetime import UTC, datetime

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf import experiments
from tidewolf.evaluation.formatting import number
from tidewolf.evaluation.metrics import broken_limits
from tidewolf.evaluation.recording import Recording
from tidewolf.files import read_graph
from tidewolf.networks.network import routes_of
from tidewolf.report import network, page
from tidewolf.report.charts import Clock, RunStyle, figure
from tidewolf.report.network import networks_of, node_places
from tidewolf.report.page import limits_context, shown_runs
from tidewolf.sets import CapacitatedFlow, FlowPolytope, MultiFlow, Simplex

FLOWS = [*FlowPolytope.examples(), *MultiFlow.examples(), *CapacitatedFlow.examples()]


def run_on(K, rounds=4, capacity=None, constraints=None):
    losses = tw.functions.Linear(np.ones((rounds, *K.shape)))
    if capacity is not None:
        constraints = tw.functions.Capacity(np.full((rounds, *K.shape), capacity))
    return tw.run(tw.LyapunovDescent(K), tw.Stream(losses, constraints))


def drawn(run, net=None):
    ((_, found),) = networks_of(shown_runs([run]), Clock(run.rounds), net)
    return found


def test_every_network_is_drawn():
    for K in FLOWS:
        found = drawn(run_on(K))
        assert (found.places >= 0.0).all()
        assert (found.places <= found.size).all()
        made = figure(network.network_chart(found, RunStyle("x")))
        assert "nan" not in made["svg"]
        assert len(made["tooltip"]["dots"]) == len(found.links) + len(found.nodes)
        assert all(f">{name}</text>" in made["svg"] for name in found.nodes)


@given(st.integers(2, 20), st.integers(0, 2**16))
@settings(max_examples=15)
def test_a_graph_is_laid_out_alike_from_left_to_right_and_nodes_keep_apart(count, seed):
    rng = np.random.default_rng(seed)
    pairs = [(int(rng.integers(i)), i) for i in range(1, count)]
    places = node_places(count, pairs, [0], [count - 1])
    np.testing.assert_array_equal(places, node_places(count, pairs, [0], [count - 1]))
    gaps = [np.hypot(*(700.0 * (p - q))) for i, p in enumerate(places) for q in places[:i]]
    assert min(gaps) > 8.0
    assert places[0, 0] < places[-1, 0]
    assert (np.abs(places - 0.5) <= 0.5 + 1e-9).all()
    apart = node_places(2 * count, [*pairs, *((i + count, j + count) for i, j in pairs)], [], [])
    assert np.isfinite(apart).all()


def test_utilisation_is_load_over_capacity():
    run = run_on(FlowPolytope.examples()[0], 6, capacity=0.8)
    found = drawn(run)
    assert found.limited
    for link, load in zip(found.links, run.trajectory.mean, strict=True):
        assert link.load == pytest.approx(load)
        assert link.used == pytest.approx(load / 0.8)
    assert "of 0.8" in found.links[0].words


@pytest.mark.parametrize("learner", [tw.LyapunovDescent, tw.Ensemble, tw.BanditPrimalDual])
@pytest.mark.parametrize("moving", [False, True])
def test_the_worst_utilisation_is_that_of_any_round_and_says_which(learner, moving):
    """Also if a kernel plays, if a round has capacity 0, and after a run was resumed."""
    rng, links = np.random.default_rng(3), [("a", "b"), ("b", "c"), ("a", "c")]
    net = tw.networks.Network(links, source="a", target="c", demand=4.0)
    rounds = 400  # more than a page has parts
    room = 4.0 * rng.uniform(0.3, 1.0, (rounds, 3))
    room[17, 2] = 0.0
    sent = 4.0 * rng.uniform(0.5, 1.0, (rounds, 1)) if moving else None
    stream = tw.Stream(net.losses(rng.uniform(1, 2, (rounds, 3)), sent), net.limits(room, sent))
    run = tw.run(learner(net.K, horizon=rounds), stream, decisions=True)
    demands = [None] * rounds if sent is None else sent
    loads = [net.loads(*each) for each in zip(run.decisions.points, demands, strict=True)]
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.nan_to_num(np.array(loads) / room, nan=0.0, posinf=np.inf)
    found = {link.name: link for link in drawn(run, net).links}
    for e, name in enumerate(net.link_names):
        assert found[name].worst == pytest.approx(used[:, e].max())
        assert found[name].when == f"round {used[:, e].argmax() + 1}"
    half = Recording(learner(net.K, horizon=rounds), stream)
    for _ in half.advance():
        if half.t > rounds // 3:
            break
    again = Recording.load(half.save(), half.learner, stream, "file")
    for _ in again.advance():
        pass
    np.testing.assert_allclose(again.peaks.used, run.peaks.used, rtol=1e-9)
    assert tw.run(half.learner, tw.Stream(stream.losses)).peaks is None


def test_nodes_are_drawn_where_they_are_if_that_is_known(tmp_path):
    """In a table beside the edge list, in the attributes of a graph, on the built-in backbone; else
    distances in the graph decide.
    """
    where = {"a": (-122.0, 47.0), "b": (-105.0, 40.0), "c": (-74.0, 41.0)}
    table = "".join(f"{name},{x},{y}\n" for name, (x, y) in where.items())
    (tmp_path / "nodes.csv").write_text(f"name,longitude,latitude\n{table}")
    (tmp_path / "links.csv").write_text("tail,head\na,b\nb,c\na,c\n")
    (tmp_path / "costs.csv").write_text("a > b,b > c,a > c\n1,1,3\n1,2,2\n")
    text = '[set]\ngraph = "links.csv"\nsource = "a"\ntarget = "c"\nnodes = "nodes.csv"\n'
    (tmp_path / "own.toml").write_text(f'{text}[stream]\ncosts = "costs.csv"\n')
    problem = experiments.load(tmp_path / "own.toml").problem(0)
    assert problem.node_places == where
    run = tw.run(tw.LyapunovDescent(problem.K), problem.stream)
    shown = shown_runs([run])
    ((_, found),) = networks_of(shown, Clock(2), problem.network, problem.node_places)
    across, down = dict(zip(found.nodes, found.places, strict=True)), 1
    assert across["a"][0] < across["b"][0] < across["c"][0]
    assert across["a"][down] < across["c"][down] < across["b"][down]
    assert (found.places >= 0.0).all()
    assert (found.places <= found.size).all()
    del where["b"]
    ((_, other),) = networks_of(shown, Clock(2), problem.network, where)
    np.testing.assert_array_equal(other.places, drawn(run, problem.network).places)
    graph = networkx.DiGraph([("a", "b")])
    assert read_graph(graph).node_places == {}
    graph.add_node("a", Longitude=1.0, Latitude="2.5")
    assert read_graph(graph).node_places == {}
    graph.add_node("b", Longitude=3, Latitude=4)
    assert read_graph(graph).node_places == {"a": (1.0, 2.5), "b": (3.0, 4.0)}
    assert {*tw.problems.routing(4).K.nodes} <= tw.problems.routing(4).node_places.keys()


def test_links_of_several_commodities_add_up():
    K = MultiFlow.examples()[1]
    run = run_on(K)
    assert [link.load for link in drawn(run).links] == pytest.approx(K.loads(run.trajectory.mean))
    shares = Counter()
    for route in routes_of(K, None, K.center):
        shares[route.commodity] += route.share
    assert all(0.9 < share <= 1.0 + 1e-9 for share in shares.values())
    demands = np.array([[2.0] * len(K.demands), [4.0] * len(K.demands)])
    owner = np.repeat(np.arange(len(K.demands)), K.shape[0] // len(K.demands))
    limits = tw.functions.MaxUtilization(K.incidence, demands, np.full(len(K.tails), 8.0), owner)
    moving = run_on(K, 2, constraints=limits)
    x = moving.trajectory.means
    loads = (2.0 * K.incidence @ x[0] + 4.0 * K.incidence @ x[1]) / 2.0
    links = drawn(moving).links
    assert [link.load for link in links] == pytest.approx(loads)
    assert [link.used for link in links] == pytest.approx(loads / 8.0)


@pytest.mark.parametrize("paths", ["away", "all", "k-shortest"])
@pytest.mark.parametrize("moving", [False, True])
def test_a_network_with_demands_says_volumes(paths, moving):
    links = [("a", "b", 1.0, 6.0), ("b", "a", 1.0, 6.0), ("b", "c", 1.0, 4.0), ("a", "c", 2.0)]
    net = tw.networks.Network(links, commodities=[("a", "c", 4.0), ("a", "b", 2.0)], paths=paths)
    rounds = 6
    demands = np.array([[4.0 + t, 2.0] for t in range(rounds)]) if moving else None
    limits = net.limits(np.tile(net.capacities, (rounds, 1)), demands)
    losses = net.losses(np.tile(net.lengths, (rounds, 1)), demands)
    run = tw.run(tw.LyapunovDescent(net.K), tw.Stream(losses, limits))
    found = {link.name: link for link in drawn(run, net).links}
    if demands is None:
        loads = dict(zip(net.link_names, net.loads(run.trajectory.mean, net.volumes), strict=True))
        assert {name: link.load for name, link in found.items()} == pytest.approx(loads)
    assert found["a > c"].capacity is None
    assert found["b > c"].capacity == pytest.approx(4.0)
    assert found["b > c"].used == pytest.approx(found["b > c"].load / 4.0)
    date = datetime(2026, 1, 2, tzinfo=UTC)
    text = page([run], name="<n>", about="", seed=0, date=date, network=net)
    assert "a &gt; b" in text
    assert "&lt;n&gt;" in text
    assert ("links are not used" in text) == bool(net.cut)
    assert ("not used, for it" in text) == bool(net.cut)


def test_of_a_large_network_the_busy_links_are_drawn_and_names_are_at_the_pointer():
    edges = [*(("s", i) for i in range(160)), *((i, "t") for i in range(160))]
    K = FlowPolytope.from_edges(edges, source="s", target="t")
    run, x = run_on(K, 1), np.zeros(320)
    x[[3, 163]], x[[4, 164]] = 0.75, 0.25
    run.trajectory.means[:] = x
    found = drawn(run)
    assert sorted(link.load for link in found.links) == [0.25, 0.25, 0.75, 0.75]
    assert set(found.nodes) == {"s", "3", "4", "t"}
    ring = [(i, (i + 1) % 40) for i in range(40)]
    net = tw.networks.Network(ring, source=0, target=9, paths="all")
    made = figure(network.network_chart(drawn(run_on(net.K), net), RunStyle()))
    assert "<text" not in made["svg"]
    assert {str(i) for i in range(40)} <= {dot[3] for dot in made["tooltip"]["dots"]}


def test_other_sets_have_no_network():
    run = run_on(Simplex(3))
    assert networks_of(shown_runs([run]), Clock(4)) == []
    assert routes_of(Simplex(3), None, np.ones(3) / 3) is None


def test_limits_of_links_have_volumes_and_may_add_up_to_more_than_the_headline():
    links = [("a", "c"), ("a", "b"), ("b", "c")]
    net = tw.networks.Network(links, source="a", target="c", demand=80.0)
    stream = tw.Stream(net.losses(np.ones((4, 3))), net.limits(np.full((4, 3), 20.0)))
    run = tw.run(tw.LyapunovDescent(net.K), stream)
    found = limits_context([run], net)
    (group,) = found["table"].groups
    for row, limit in zip(group.rows, broken_limits(run), strict=True):
        assert row[1].text == number(limit.total)
        assert row[1].lines == (f"volume {number(80.0 * limit.total)}",)
        assert row[3].lines == (f"volume {number(80.0 * limit.breach.worst)}",)
    assert any("largest violation of each round" in sentence for sentence in found["sentences"])
    assert limits_context([run])["table"].groups[0].rows[0][1].lines == ()
    one = run_on(Simplex(2), capacity=0.5)
    assert limits_context([one])["sentences"] == ["LyapunovDescent: no constraint was violated."]
