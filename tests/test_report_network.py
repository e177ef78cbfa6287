"""Networks on pages: places of nodes, labels that nothing crosses, loads and utilisation of links,
paths, in every kind of network.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.evaluation.formatting import number
from tidewolf.evaluation.limits import broken_limits
from tidewolf.report import network, page
from tidewolf.report.clock import Clock
from tidewolf.report.heat import shown_runs
from tidewolf.report.labels import Box, place, text_width
from tidewolf.report.network import (
    networks_context,
    networks_of,
    node_places,
    paths_context,
    paths_in_use,
)
from tidewolf.report.sections import limits_context
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


def backbone(count, extra, seed):
    """Links both ways: a ring with chords."""
    rng = np.random.default_rng(seed)
    pairs = {(i, i + 1) for i in range(count - 1)} | {(0, count - 1)}
    while len(pairs) < count + extra:
        pairs.add(tuple(sorted(rng.choice(count, 2, replace=False).tolist())))
    one_way = [(f"node {i}", f"node {j}") for i, j in sorted(pairs)]
    return [*one_way, *((head, tail) for tail, head in one_way)]


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", FLOWS, ids=repr)
def test_every_network_is_drawn(K):
    found = drawn(run_on(K))
    for down in (False, True):
        made = network.plan(found, down=down)
        assert len(set(made.places)) == len(found.nodes)
        assert all(0 <= x <= made.width and 0 <= y <= made.height for x, y in made.places)
    across, down = network.drawings(found, 1.0)
    assert (across.kind, down.kind) == ("across", "down")
    assert len(across.links) == len(down.links) == len(found.links)
    assert "nan" not in str(across) + str(down)


def test_flow_goes_from_left_to_right_or_from_top_to_bottom():
    pairs = tuple((i, i + 1) for i in range(6))
    for down in (False, True):
        places = node_places(7, pairs, (0,), (6,), (600.0, 300.0), down)
        along = [at[1 if down else 0] for at in places]
        assert along[0] < along[3] < along[6]


@given(st.integers(2, 20), st.integers(0, 2**16))
@settings(max_examples=15)
def test_the_same_graph_is_laid_out_alike_and_nodes_keep_apart(count, seed):
    rng = np.random.default_rng(seed)
    pairs = tuple((int(rng.integers(i)), i) for i in range(1, count))
    places = node_places(count, pairs, (0,), (count - 1,), (700.0, 400.0))
    assert places == node_places.__wrapped__(count, pairs, (0,), (count - 1,), (700.0, 400.0))
    gaps = [np.hypot(*np.subtract(p, q)) for i, p in enumerate(places) for q in places[:i]]
    assert min(gaps) > 8.0
    assert np.isfinite(places).all()


def test_another_seed_is_another_layout():
    pairs = ((0, 1), (1, 2), (2, 3))
    first, other = (node_places(4, pairs, (), (), (700.0, 400.0), seed=i) for i in (0, 1))
    assert first != other


@pytest.mark.parametrize("seed", range(8))
def test_trees_that_nothing_joins_do_not_cross(seed):
    rng, half = np.random.default_rng(seed), 7
    nodes = rng.permutation(2 * half).tolist()
    trees = [(int(rng.integers(i)) + at, i + at) for at in (0, half) for i in range(1, half)]
    pairs = tuple(sorted((nodes[i], nodes[j]) for i, j in trees))
    places = np.array(node_places(2 * half, pairs, (), (), (700.0, 400.0)))

    def side(a, b, c):
        return np.sign(np.linalg.det(places[[b, c]] - places[a]))

    for a, b in pairs:
        for c, d in pairs:
            crossing = side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
            assert len({a, b, c, d}) < 4 or not crossing


# --- labels ---------------------------------------------------------------------------------------


def crosses(box, segment):
    """Whether a segment passes a box, by points along it."""
    along = np.linspace(0.0, 1.0, 400)[:, None]
    points = (1 - along) * segment[:2] + along * segment[2:]
    inside = (points > [box.left, box.top]) & (points < [box.right, box.bottom])
    return bool(inside.all(axis=1).any())


@given(st.integers(1, 30), st.integers(0, 2**16))
@settings(max_examples=25)
def test_labels_called_free_are_free(count, seed):
    rng = np.random.default_rng(seed)
    points = [tuple(p) for p in rng.uniform(30.0, [770.0, 470.0], (count, 2)).tolist()]
    ends = rng.integers(count, size=(count, 2))
    lines = np.array([[*points[i], *points[j]] for i, j in ends])
    sizes = [(float(width), 15.0) for width in rng.uniform(20.0, 90.0, count)]
    found = place(points, sizes, lines, Box(0.0, 0.0, 800.0, 500.0))
    if not found.free:
        return
    for i, box in enumerate(found.boxes):
        assert (box.right - box.left, box.bottom - box.top) == pytest.approx(sizes[i])
        assert not any(crosses(box, line) for line in lines)
        for other in found.boxes[:i]:
            apart = box.right <= other.left or other.right <= box.left
            assert apart or box.bottom <= other.top or other.bottom <= box.top


def test_a_point_alone_has_its_label_beside_it():
    found = place([(100.0, 100.0)], [(50.0, 15.0)], np.zeros((0, 4)), Box(0.0, 0.0, 400.0, 400.0))
    assert found.free
    assert found.boxes[0].left == pytest.approx(110.0)
    assert text_width("Palo Alto", 12.0) > 50.0


def test_labels_give_way_to_each_other():
    points = [(100.0, 100.0), (100.0, 112.0), (100.0, 124.0)]  # all would go to the right
    sizes = [(60.0, 15.0)] * 3
    found = place(points, sizes, np.zeros((0, 4)), Box(0.0, 0.0, 400.0, 400.0))
    assert found.free


@pytest.mark.parametrize(("count", "extra"), [(6, 3), (20, 21), (30, 12)])
def test_names_have_room_up_to_thirty_nodes(count, extra):
    links = backbone(count, extra, seed=count)
    net = tw.networks.Network(links, source="node 0", target=f"node {count // 2}", paths="all")
    found = drawn(run_on(net.K), net)
    across, down = network.drawings(found, 1.0)
    for each in (across, down):
        said = [node for node in each.nodes if node["label"] or node["number"]]
        assert len(said) == count
        assert len(each.key) in (0, count)


def test_beyond_thirty_nodes_names_are_said_at_the_pointer():
    net = tw.networks.Network(backbone(34, 10, 1), source="node 0", target="node 9", paths="all")
    across, _ = network.drawings(drawn(run_on(net.K), net), 1.0)
    assert not any(node["label"] or node["number"] for node in across.nodes)
    assert across.key == []
    assert across.nodes[0]["name"] == "node 0"


# --- loads ----------------------------------------------------------------------------------------


def test_utilisation_is_load_over_capacity():
    run = run_on(FlowPolytope.examples()[0], 6, capacity=0.8)
    found = drawn(run)
    assert found.limited
    for link, load in zip(found.links, run.trajectory.mean, strict=True):
        assert link.load == pytest.approx(load)
        assert link.used == pytest.approx(load / 0.8)
    worst = max(float(np.max(run.trajectory.means)), 0.0) / 0.8
    assert max(link.worst for link in found.links) == pytest.approx(worst)
    assert f"{100 * worst:.0f} %" in network.summary(found)
    assert "of 0.8" in found.links[0].words
    assert network.level(0.0) == 0
    assert [network.level(share) for share in (0.55, 1.0, 1.01)] == [5, 9, 10]
    assert network.level(None) is None


def test_links_of_several_commodities_add_up():
    K = MultiFlow.examples()[1]
    run = run_on(K)
    assert [link.load for link in drawn(run).links] == pytest.approx(K.loads(run.trajectory.mean))
    shares = {}
    for commodity, _, share in paths_in_use(run, K.center):
        shares[commodity] = shares.get(commodity, 0.0) + share
    assert all(0.9 < share <= 1.0 + 1e-9 for share in shares.values())


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
    sent = net.volumes if demands is None else None
    if sent is not None:
        loads = net.loads(run.trajectory.mean, sent)
        by_name = dict(zip(net.link_names, loads, strict=True))
        assert {name: link.load for name, link in found.items()} == pytest.approx(by_name)
    assert found["a > c"].capacity is None
    assert found["b > c"].capacity == pytest.approx(4.0)
    assert found["b > c"].used == pytest.approx(found["b > c"].load / 4.0)
    text = page(
        [run], name="<n>", about="", seed=0, date=datetime(2026, 1, 2, tzinfo=UTC), network=net
    )
    assert "a &gt; b" in text
    assert "&lt;n&gt;" in text
    assert ("links are cut" in text or "is cut" in text) == bool(net.cut)
    assert ("not used, for it" in text) == bool(net.cut)


def test_of_a_large_network_the_busy_links_are_drawn():
    edges = [*(("s", i) for i in range(160)), *((i, "t") for i in range(160))]
    K = FlowPolytope.from_edges(edges, source="s", target="t")
    x = np.zeros(320)
    x[[3, 163]], x[[4, 164]] = 0.75, 0.25
    run = run_on(K, 1)
    run.trajectory.means[:] = x
    found = drawn(run)
    assert sorted(link.load for link in found.links) == [0.25, 0.25, 0.75, 0.75]
    assert set(found.nodes) == {"s", "3", "4", "t"}
    assert found.left_out == 316


def test_other_sets_have_no_network():
    run = run_on(Simplex(3))
    assert networks_of(shown_runs([run]), Clock(4)) == []
    assert paths_in_use(run, np.ones(3) / 3) == []


def narrow(both_ways=False):
    """A run over two links side by side, and a network of it, whose limits cannot be kept."""
    links = [("a", "c"), ("a", "b"), ("b", "c"), *([("b", "a")] if both_ways else [])]
    net = tw.networks.Network(links, source="a", target="c", demand=80.0)
    limits = net.limits(np.full((4, len(links)), 20.0))
    losses = net.losses(np.ones((4, len(links))))
    return net, tw.run(tw.LyapunovDescent(net.K), tw.Stream(losses, limits))


def test_limits_of_links_have_volumes_and_may_add_up_to_more_than_the_headline():
    net, run = narrow()
    found = limits_context([run], net)
    assert found["table"].titles[-1] == "first, last"
    (group,) = found["table"].groups
    for row, limit in zip(group.rows, broken_limits(run), strict=True):
        assert row[1].text == number(limit.total)
        assert row[1].lines == (f"volume {number(80.0 * limit.total)}",)
        assert row[3].lines == (f"volume {number(80.0 * limit.breach.worst)}",)
    assert any("most in each round" in sentence for sentence in found["sentences"])
    assert limits_context([run])["table"].groups[0].rows[0][1].lines == ()
    one = run_on(Simplex(2), capacity=0.5)
    assert limits_context([one])["sentences"] == ["LyapunovDescent: no limit was broken."]


def test_links_both_ways_are_explained_and_tables_say_when():
    for both_ways in (False, True):
        net, run = narrow(both_ways)
        found = networks_context([run], net.names, net)
        assert ("each direction is drawn as its half" in found["about"]) is both_ways
        assert found["runs"][0]["links"].titles[3] == "when"


def test_paths_that_are_not_listed_are_counted_with_what_they_carry():
    edges = [link for i in range(20) for link in (("s", i), (i, "t"))]
    net = tw.networks.Network(edges, source="s", target="t")
    stream = tw.Stream(net.losses(np.ones((1, 40))), net.limits(np.ones((1, 40))))
    run = tw.run(tw.LyapunovDescent(net.K), stream)
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.094, *[0.002] * 3, *[0.0] * 11])
    x = dict(zip(range(20), shares, strict=True))
    run.trajectory.means[:] = [x[tail if head == "t" else head] for tail, head in net.links]
    found = paths_context(run, run.trajectory, net, Clock(1))
    assert [one["share_text"] for one in found["listed"]] == ["0.4", "0.2", *["0.1"] * 3, "0.094"]
    assert found["more"] == "and 3 more paths with 0.6 % of the demand"
